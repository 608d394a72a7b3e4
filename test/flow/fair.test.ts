import { createConnection } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { keys } from '../../src/store/keys.ts';
import { findRecord, recordFolder } from '../../src/store/open-store.ts';
import { type Customer, makeService, type Service } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';

const isLong = process.env.ROUNDS !== undefined;
const jobsOfEach = isLong ? 667 : 100;

/**
 * Request and end of the nth job. All go through yt-dlp, but a job that has a worker of its own takes more than
 * a second of a processor, and one that finds a film half of one: in the short form these are few.
 */
const kinds = [
  ['/v1/media/metadata?is_async=true&query=', '/status/404', 'NotFound'],
  ['/v1/media/metadata?is_async=true&query=', '/films/clip.mp4', 'CompletedJob'],
  ['/v1/audio/download?query=', '/films/clip.mp4', 'CompletedJob'],
  ['/v1/video/download?query=', '/status/404', 'NotFound'],
] as const;
const kindOf = (n: number) => {
  if (isLong) return kinds[n % 4] ?? kinds[0];
  if (n === 30) return kinds[2];
  if (n === 60) return kinds[3];
  return kinds[n % 10 === 1 ? 1 : 0];
};

describe(`${3 * jobsOfEach} queued jobs of three accounts, and a restart in the middle`, function () {
  this.timeout(isLong ? 3_600_000 : 600_000);
  // A worker kept for accounts that have none goes to one of them whoever's turn it is.
  const service: Service = makeService({ TRAWL_WORKERS: '4', TRAWL_RESERVED_WORKERS: '0' });
  let source: Source;
  before(async () => {
    source = await startSource();
    await service.start();
  });
  after(async () => {
    await service.close();
    await source.stop();
  });

  it('are shared out fairly, and each ends and is charged once', async () => {
    const customers = await Promise.all([1, 2, 3].map(() => service.aCustomer()));
    const before = await watchTakes(service.data);
    const ids: string[] = [];
    const ownerOf = new Map<string, number>();
    for (const [owner, customer] of customers.entries()) {
      for (const id of await submitAll(customer)) {
        ownerOf.set(id, owner);
        ids.push(id);
      }
    }
    const early = before.taken.length;
    await until(() => before.taken.length >= early + jobsOfEach, 1_200, 'a third has begun');
    await service.killAll();
    const [after] = await Promise.all([watchTakes(service.data), service.start()]);
    const jobs = await service.ended(ids, isLong ? 3_000 : 120);

    for (const { end } of [before, after]) end();
    const heard = new Set([...before.taken, ...after.taken]);
    // A job that was taken before we could subscribe again is in neither list.
    const missed = ids.filter((id) => !heard.has(id));
    const owners = {
      before: untilOneIsThrough(before.taken.slice(early), ownerOf, before.taken.slice(0, early)),
      after: untilOneIsThrough(after.taken, ownerOf, [...before.taken, ...missed]),
    };
    for (const [when, turns] of Object.entries(owners)) {
      expect(turns.length, `jobs taken ${when} the restart`).to.be.above(jobsOfEach / 2);
      expect(mostAhead(turns), `slots ahead of its share, ${when} the restart`).to.be.at.most(1);
    }
    const ends = jobs.map(({ status, error_code }) => `${status} ${error_code}`);
    const wanted = ids.map((_, n) =>
      kindOf(n % jobsOfEach)[2] === 'NotFound' ? 'NotFound deleted' : 'CompletedJob null',
    );
    expect(ends).to.deep.equal(wanted);
    for (const [owner, { account }] of customers.entries()) {
      const own = jobs.filter(({ id }) => ownerOf.get(id) === owner);
      expect(own.length).to.equal(jobsOfEach);
      await service.checkLedger(account, own);
    }
  });

  const submitAll = async ({ key }: Customer): Promise<string[]> => {
    const ids: string[] = [];
    for (let from = 0; from < jobsOfEach; from += 10) {
      const asked = Array.from({ length: Math.min(10, jobsOfEach - from) }, (_, n) => {
        const [path, film] = kindOf(from + n);
        return service.submit(key, path + source.url + film);
      });
      ids.push(...(await Promise.all(asked)));
    }
    return ids;
  };
});

/** Owners of the jobs taken, in their order, up to when one of them has none that waits for the first time. */
function untilOneIsThrough(
  taken: readonly string[],
  ownerOf: ReadonlyMap<string, number>,
  begun: readonly string[],
): number[] {
  const owners: number[] = [];
  const seen = new Set(begun);
  const left = [0, 1, 2].map((owner) => [...ownerOf].filter(([id, of]) => of === owner && !seen.has(id)).length);
  for (const id of taken) {
    const owner = ownerOf.get(id) ?? 0;
    owners.push(owner);
    if (seen.has(id)) continue;
    seen.add(id);
    left[owner] = (left[owner] ?? 0) - 1;
    if (left[owner] === 0) break;
  }
  return owners;
}

/** The most turns that anybody was ahead of a third of them, at any moment. */
function mostAhead(owners: readonly number[]): number {
  const turns = [0, 0, 0];
  const ahead = owners.map((owner, n) => {
    turns[owner] = (turns[owner] ?? 0) + 1;
    return Math.max(...turns) - (n + 1) / 3;
  });
  return Math.max(...ahead);
}

/** Hears from Redis itself which jobs are given a slot, in their order. */
async function watchTakes(data: string): Promise<{ taken: string[]; end(): void }> {
  const taken: string[] = [];
  const path = join(recordFolder(data), 'redis.sock');
  for (;;) {
    const [, password] = /:([\w-]+)@/.exec((await findRecord({ redisUrl: null, data })) ?? '') ?? [];
    const wire = createConnection(path);
    let granted = 0;
    const isHeard = await new Promise<boolean>((resolve) => {
      wire.on('error', () => resolve(false)).on('close', () => resolve(false));
      const lines = createInterface({ input: wire });
      // The poll repeats the error of the connection.
      lines.on('error', () => {});
      lines.on('line', (line) => {
        if (line === '+OK' && ++granted === 2) resolve(true);
        // The password is that of the start before.
        if (line.startsWith('-')) resolve(false);
        const [, score, id] = /"ZADD" "[^"]*" "(-?\d+)" "([0-9a-f-]{36})"$/.exec(line) ?? [];
        if (id !== undefined && line.includes(`"ZADD" "${keys.openWork}"`) && Number(score) < 0) taken.push(id);
      });
      wire.write(`AUTH ${password}\r\nMONITOR\r\n`);
    });
    if (isHeard) return { taken, end: () => wire.destroy() };
    wire.destroy();
    // Redis does not listen yet, or still reads its file.
    await pause(5);
  }
}
