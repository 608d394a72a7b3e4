import { expect } from 'chai';
import { archiveDays } from '../../src/archive/archive-days.ts';
import { readJsonLines } from '../../src/archive/json-lines.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { readKey } from '../../src/model/api-key.ts';
import { deleteKey } from '../../src/store/accounts/delete-key.ts';
import { keys } from '../../src/store/keys.ts';
import { type LineCursor, listKeyNames, pageLines } from '../../src/store/log/page-lines.ts';
import { freeLineStream, paidLineStream } from '../../src/store/log/read-lines.ts';
import { openRequestLog } from '../../src/store/log/write-lines.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { type Dashboard, eachWithDashboard } from '../support/browser-session.ts';
import { makeRandom } from '../support/random.ts';
import { anotherKey } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import { seed } from '../support/seed.ts';

const day = 86_400_000;

/** A line that a test wrote, by its number. */
interface WrittenLine {
  readonly stream: string;
  readonly keyId: string;
  readonly entry: readonly [ms: number, number: number];
}

type NumberedLine = Readonly<Record<'duration_ms', number>>;
/** Returns a random whole number from 0 up to another one. */
type Below = (most: number) => number;

/** Returns the numbers of lines in the order of their entries, newest first, then of their streams. */
function inOrder(written: readonly WrittenLine[]): number[] {
  const compare = (a: WrittenLine, b: WrittenLine) =>
    b.entry[0] - a.entry[0] || b.entry[1] - a.entry[1] || (a.stream < b.stream ? -1 : 1);
  const numbers = new Map(written.map((line, n) => [line, n]));
  return written.toSorted(compare).map((line) => numbers.get(line)!);
}

describe('the requests of an account with many keys', () => {
  let api: Dashboard['api'];
  let caller: Dashboard['caller'];
  eachWithDashboard((dashboard) => {
    ({ api, caller } = dashboard);
  });

  const addKeys = async (count: number): Promise<string[]> => {
    const made: string[] = [];
    while (made.length < count) made.push(readKey(await anotherKey(api.store, caller.account))!.keyId);
    return made;
  };
  /** Writes so many lines of each key, each with a number of its own. */
  const write = async (counts: readonly (readonly [keyId: string, count: number])[], from = 0) => {
    const log = openRequestLog(api.store, 1_000_000, aLog().log);
    let number = from;
    for (const [keyId, count] of counts) {
      for (let n = 0; n < count; n++) {
        const line = { endpoint: 'GET /v1/x', status: 200, duration_ms: number++, ip: '192.0.2.1', credits: 0 };
        log.add({ keyId, accountId: caller.account }, { at: api.store.clock.now(), ...line });
      }
    }
    await log.close();
    return number;
  };
  const open = (object: string) => readJsonLines(api.objects, object);
  const read = async (
    store: RecordStore,
    limit: number,
    after: LineCursor | null,
    isWanted?: (line: NumberedLine) => boolean,
  ) => {
    const names = await listKeyNames(store, caller.account);
    return pageLines(store, names, { limit, after, isWanted, open });
  };

  /** A store that counts the calls for a page of the log, and the lines that they bring. */
  const counting = () => {
    const counts = { calls: 0, lines: 0 };
    const { connection } = api.store;
    const readAll: typeof connection.readAll = async (commands) => {
      const replies = await connection.readAll(commands);
      counts.calls++;
      for (const [n, command] of commands.entries())
        if (command[0] === 'XREVRANGE') counts.lines += (replies[n] as []).length;
      return replies;
    };
    return { counts, store: { ...api.store, connection: { ...connection, readAll } } };
  };

  it('are shown by a page that reads no more lines of 300 keys than of a few', async () => {
    const keyIds = await addKeys(300);
    await write(keyIds.map((keyId) => [keyId, 30]));
    const { counts, store } = counting();
    const { lines: shown } = await read(store, 50, null);
    expect(shown).to.have.length(50);
    expect(counts.lines).to.be.at.most(5_000);
  });

  it('are shown by a page with two calls of Redis where one of 300 keys has written all lines of it', async () => {
    const keyIds = await addKeys(300);
    await write(keyIds.map((keyId, n) => [keyId, n === 7 ? 1_200 : 1]));
    for (const [limit, isWanted] of [[50], [200], [1_000], [50, () => false]] as const) {
      const { counts, store } = counting();
      await read(store, limit, null, isWanted);
      expect(counts.calls, `${limit}`).to.be.at.most(2);
    }
  });

  const archive = () => {
    const parts = { store: api.store, objects: api.objects, lifetimes: { job: 30 * day }, goOn: () => true };
    return archiveDays({ ...parts, metrics: makeMetrics(), log: aLog().log });
  };

  /** Writes up to some lines of each key from a time on, in few milliseconds: entries of several streams have one id. */
  const writeRandomly = async (
    written: WrittenLine[],
    { keyIds, from, below }: { readonly keyIds: readonly string[]; readonly from: number; readonly below: Below },
  ) => {
    const spanMs = 1 + below(60);
    const { connection } = api.store;
    const streams = keyIds.flatMap((keyId) =>
      [freeLineStream(keyId), paidLineStream(keyId)].map((of) => ({ of, keyId })),
    );
    for (const { of, keyId } of streams) {
      const count = below(5) === 0 ? 1 + below(260) : below(12);
      const times = Array.from({ length: count }, () => from + below(spanMs)).sort((a, b) => a - b);
      const sent = times.map((ms, n) => {
        const entry = [ms, n - times.indexOf(ms)] as const;
        const fields = { at: ms, endpoint: 'GET /v1/x', status: 200, duration_ms: written.length, ip: '', credits: 0 };
        written.push({ stream: of.stream, keyId, entry });
        return connection.send(['XADD', of.stream, entry.join('-'), ...Object.entries(fields).flat().map(String)]);
      });
      if (count > 0) sent.push(connection.send(['ZADD', keys.lineStreams, 'NX', String(times[0]), of.stream]));
      await Promise.all(sent);
    }
  };

  it('are compared a few times each where a page reaches the archived parts of many keys', async () => {
    const keyIds = await addKeys(60);
    for (let n = 0; n < 60; n++) await write(keyIds.map((keyId) => [keyId, 1]));
    api.store.advance(3 * day);
    await archive();
    let [lines, compared] = [0, 0];
    // Ids are split where they are compared.
    const splitting = (entry: string) => (by: string) => {
      compared++;
      return entry.split(by);
    };
    const openCounted = async (object: string) => {
      const found = (await open(object)) as { readonly entry: string }[];
      lines += found.length;
      return found.map(({ entry, ...line }) => ({
        ...line,
        entry: { split: splitting(entry), toString: () => entry },
      }));
    };
    const names = await listKeyNames(api.store, caller.account);
    await pageLines(api.store, names, { limit: 1_000, after: null, open: openCounted });
    expect(compared / lines).to.be.at.most(20);
  });

  const rounds = Number(process.env.ROUNDS ?? 12);
  for (let round = 0; round < rounds; round++) {
    it(`are on pages once and in order while others are written and a key is deleted: ${round} of random ones`, async () => {
      const random = makeRandom(`${seed} ${round}`);
      const below: Below = (most) => Math.floor(random() * most);
      const keyIds = await addKeys(1 + below(20));
      const written: WrittenLine[] = [];
      const writeFrom = (from: number) => writeRandomly(written, { keyIds, from, below });
      for (let times = below(3); times > 0; times--) {
        await writeFrom(Math.floor(api.store.clock.now()));
        api.store.advance(3 * day);
        await archive();
      }
      await writeFrom(Math.floor(api.store.clock.now()));
      const [limit, divisor] = [1 + below(below(2) === 0 ? 20 : 300), 1 + below(4)];
      const isWanted = below(2) === 0 ? ({ duration_ms }: NumberedLine) => duration_ms % divisor === 0 : undefined;
      const deleted = keyIds[below(keyIds.length)]!;
      const all = inOrder(written);
      const isAt = (n: number, { entry, stream }: LineCursor) =>
        written[n]!.entry.join('-') === entry && written[n]!.stream === stream;
      const first = await read(api.store, limit, null, isWanted);
      const shown = first.next === null ? all.length : 1 + all.findIndex((n) => isAt(n, first.next!));
      await writeFrom(Math.floor(api.store.clock.now()) + 1_000);
      await deleteKey(api.store, caller.account, `k${deleted}`, true);
      const found = [...first.lines];
      for (let after = first.next; after !== null; ) {
        const page = await read(api.store, limit, after, isWanted);
        found.push(...page.lines);
        after = page.next;
      }
      const left = all.filter((n, place) => place < shown || written[n]!.keyId !== deleted);
      const expected = left.filter((duration_ms) => isWanted?.({ duration_ms }) ?? true);
      expect(
        found.map(({ duration_ms }) => duration_ms),
        `seed ${seed}`,
      ).to.deep.equal(expected);
    });
  }

  it('are on pages of any size in the order of one, whichever keys are busy, archived lines included', async () => {
    const keyIds = await addKeys(15);
    const counts = keyIds.map((keyId, n) => [keyId, n === 7 ? 150 : (n * 5) % 12] as const);
    const early = await write(counts);
    api.store.advance(3 * day);
    expect(await archive()).to.be.at.least(early);
    const all = await write(counts.toReversed(), early);
    const whole = (await read(api.store, 10_000, null)).lines.map(({ duration_ms }) => duration_ms);
    expect(whole.toSorted((a, b) => a - b)).to.deep.equal(Array.from({ length: all }, (_, n) => n));
    expect(whole.slice(0, all - early).every((number) => number >= early)).to.equal(true);
    for (const [limit, isWanted] of [[12], [40], [12, () => true]] as const) {
      const found: number[] = [];
      for (let after: LineCursor | null = null; ; ) {
        const page = await read(api.store, limit, after, isWanted);
        expect(page.lines.length).to.be.at.most(limit);
        found.push(...page.lines.map(({ duration_ms }) => duration_ms));
        after = page.next;
        if (after === null) break;
      }
      expect(found, `${limit}`).to.deep.equal(whole);
    }
  });
});
