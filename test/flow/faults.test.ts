import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { isEnded } from '../../src/model/job.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { makeService, type Service, signal } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';

const isLong = process.env.ROUNDS !== undefined;
const stoppedSeconds = isLong ? 30 : 4;
const goneSeconds = isLong ? 60 : 3;
const hour = 3_600;

describe('a part of one machine that is away for some time', () => {
  const service: Service = makeService({ TRAWL_WORKERS: '4' });
  const clock = join(service.folder, 'clock');
  const objects = join(service.data, 'objects');
  let films: Source;
  before(async () => {
    films = await startSource();
    writeFileSync(clock, '0');
    await service.start({ TRAWL_CLOCK_FILE: clock });
  });
  after(async () => {
    await service.close();
    await films.stop();
  });

  const film = (path: string) => `/v1/video/download?query=${films.url}${path}`;
  const words = (path: string) => `/v1/media/metadata?is_async=true&query=${films.url}${path}`;
  const jobOf = async (id: string) => {
    const job = await service.withStore((store) => readJob(store, id));
    if (!job) throw new Error(`there is no job ${id}`);
    return job;
  };
  /** Jobs that fetch a film for some seconds. */
  const startSlow = async (key: string): Promise<string[]> => {
    films.forget();
    const ids = await Promise.all([1, 2].map(() => service.submit(key, film('/rate/100000/clip.mp4'))));
    await until(() => films.asked.filter((path) => path.startsWith('/rate')).length >= 2, 20, 'the films are fetched');
    return ids;
  };
  /** Asks again and again for so long; answers what was said, and how long the slowest answer took. */
  const keepAsking = async (key: string, path: string, seconds: number) => {
    const said = new Set<string>();
    let slowest = 0;
    for (const end = performance.now() + seconds * 1000; performance.now() < end; await pause(50)) {
      const began = performance.now();
      const { status, headers, json } = await service.ask(key, path);
      slowest = Math.max(slowest, (performance.now() - began) / 1000);
      said.add(`${status} ${json.error} retry-after=${headers.get('retry-after') !== null}`);
    }
    return { said: [...said], slowest };
  };

  it(`while Redis is stopped for ${stoppedSeconds} s callers are refused with a sentence, and jobs end as usual after that`, async () => {
    const { account, key } = await service.aCustomer();
    const ids = await startSlow(key);
    const [redis = 0] = service.processes(/^redis-server/);
    signal(redis, 'SIGSTOP');
    const { said, slowest } = await keepAsking(key, words('/films/clip.mp4'), stoppedSeconds).finally(() =>
      signal(redis, 'SIGCONT'),
    );
    expect(said).to.deep.equal(['503 Service Unavailable retry-after=true']);
    expect(slowest, 'seconds of the slowest refusal').to.be.below(5);
    await until(async () => (await service.ask(key, '/v1/usage')).status === 200, 10, 'an answer');
    ids.push(await service.submit(key, film('/films/clip.mp4')));
    const began = performance.now();
    const jobs = await service.ended(ids, 60);
    expect((performance.now() - began) / 1000, 'seconds until all have ended').to.be.below(25);
    const how = jobs.map(({ status, failures, interruptions }) => [status, failures, interruptions].join(' '));
    expect(how).to.deep.equal(ids.map(() => 'CompletedJob 0 0'));
    // The request of a refused caller may have been admitted all the same: then it is a job like every other.
    const all = (await service.ask(key, '/v1/jobs?limit=100')).json;
    const others = await service.ended(
      all.jobs.map((job: { id: string }) => job.id),
      30,
    );
    expect(others.length).to.be.at.least(ids.length);
    await service.checkLedger(account, others);
  });

  it(`D75: a job whose object store is away for ${goneSeconds} s after the upload is charged once when the store is back`, async () => {
    const { account, key } = await service.aCustomer();
    const isCaught = async (): Promise<boolean> => {
      const id = await service.submit(key, film('/films/clip.mp4'));
      while (!existsSync(join(objects, id, '1', 'media.mp4'))) await pause(1);
      renameSync(objects, `${objects}.away`);
      try {
        const find = async () => {
          const job = await jobOf(id);
          return isEnded(job.status) || job.storing_since !== null ? job : null;
        };
        // An upload that was cut in its last step is sent again when the store is back, and proves nothing.
        const stored = await until(find, 1, 'the job waits for the store').catch(() => null);
        if (!stored || isEnded(stored.status)) return false;
        for (const end = performance.now() + goneSeconds * 1000; performance.now() < end; await pause(200)) {
          expect((await jobOf(id)).status).to.equal('Running');
        }
        const { balances } = await service.withStore((store) => readSnapshot(store, account));
        expect([balances.held, balances.credits_consumed]).to.deep.equal([1, ids.length]);
        return true;
      } finally {
        renameSync(`${objects}.away`, objects);
        ids.push(id);
        await service.ended([id], 15);
      }
    };
    const ids: string[] = [];
    // A job that was quicker than we are is charged too, and proves nothing.
    await until(isCaught, 60, 'a job whose file was stored and not yet confirmed');
    const jobs = await service.ended(ids, 15);
    expect(jobs.map(({ status, attempt }) => `${status} ${attempt}`)).to.deep.equal(ids.map(() => 'CompletedJob 1'));
    await service.checkLedger(account, jobs);
  });

  it('jobs end as usual when the clock moves an hour on and two back while they run', async () => {
    const { account, key } = await service.aCustomer({ perMinute: 1_000 });
    const ids: string[] = [];
    for (const seconds of [hour, -hour]) {
      ids.push(...(await startSlow(key)));
      writeFileSync(clock, String(seconds));
      ids.push(await service.submit(key, film('/films/clip.mp4')), await service.submit(key, words('/films/clip.mp4')));
      const jobs = await service.ended(ids, 40);
      const how = jobs.map(({ status, failures, interruptions }) => [status, failures, interruptions].join(' '));
      expect(how, `moved to ${seconds} s`).to.deep.equal(ids.map(() => 'CompletedJob 0 0'));
      const call = await service.ask(key, `/v1/media/metadata?query=${films.url}/films/clip.mp4`);
      expect(call.status, JSON.stringify(call.json)).to.equal(200);
      const last = (await service.ask(key, `/v1/jobs/${ids.at(-2)}`)).json;
      expect((await fetch(last.result.response)).status, 'its file').to.equal(200);
    }
    const { balances } = await service.withStore((store) => readSnapshot(store, account));
    expect([balances.held, balances.credits_consumed + balances.used]).to.deep.equal([0, ids.length + 2]);
  });
});
