import { expect } from 'chai';
import { archiveDays } from '../../src/archive/archive-days.ts';
import { readJsonLines } from '../../src/archive/json-lines.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { readKey } from '../../src/model/api-key.ts';
import { type LineCursor, listKeyNames, pageLines } from '../../src/store/log/page-lines.ts';
import { openRequestLog } from '../../src/store/log/write-lines.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { type Dashboard, eachWithDashboard } from '../support/browser-session.ts';
import { anotherKey } from '../support/record.ts';
import { aLog } from '../support/redis.ts';

const day = 86_400_000;

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
  const read = async (store: RecordStore, limit: number, after: LineCursor | null, isWanted?: () => boolean) => {
    const names = await listKeyNames(store, caller.account);
    return pageLines(store, names, { limit, after, isWanted, open });
  };

  it('are shown by a page that reads no more lines of 300 keys than of a few', async () => {
    const keyIds = await addKeys(300);
    await write(keyIds.map((keyId) => [keyId, 30]));
    let lines = 0;
    const { connection } = api.store;
    const readAll: typeof connection.readAll = async (commands) => {
      const replies = await connection.readAll(commands);
      for (const [n, command] of commands.entries()) if (command[0] === 'XREVRANGE') lines += (replies[n] as []).length;
      return replies;
    };
    const { lines: shown } = await read({ ...api.store, connection: { ...connection, readAll } }, 50, null);
    expect(shown).to.have.length(50);
    expect(lines).to.be.at.most(5_000);
  });

  it('are on pages of any size in the order of one, whichever keys are busy, archived lines included', async () => {
    const keyIds = await addKeys(15);
    const counts = keyIds.map((keyId, n) => [keyId, n === 7 ? 150 : (n * 5) % 12] as const);
    const early = await write(counts);
    api.store.advance(3 * day);
    const parts = { store: api.store, objects: api.objects, lifetimes: { job: 30 * day }, goOn: () => true };
    expect(await archiveDays({ ...parts, metrics: makeMetrics(), log: aLog().log })).to.be.at.least(early);
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
