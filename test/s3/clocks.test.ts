import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { isEnded, type Job } from '../../src/model/job.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { type FakedClock, fakeClock, fakeTimeLibrary } from '../support/faked-clock.ts';
import { startFakedRedis } from '../support/faked-redis.ts';
import { anAccount, anotherKey, storeOf, type TestStore } from '../support/record.ts';
import { aFolder, type TestRecord } from '../support/redis.ts';
import { type RoleProcess, startRole } from '../support/role-process.ts';
import { startS3, type TestS3 } from '../support/s3.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';
import { processesIn, type RunningUp, startUp } from '../support/up.ts';

const isLong = process.env.ROUNDS !== undefined;
const [hour, day] = [3_600, 86_400];
const moves = isLong ? [-day, -hour, hour, day] : [day];
/** Jobs that are under way when the clock is moved; two more follow. */
const jobsAtOnce = isLong ? 50 : 1;
/** Longer than a sweep waits for the next one. */
const sweptSeconds = isLong ? 25 : 0;

if (fakeTimeLibrary !== undefined)
  describe('jobs that run while one clock is moved', function () {
    this.timeout(isLong ? 3_600_000 : 300_000);
    const secret = Buffer.alloc(32, 7).toString('base64');
    const clocks: Record<string, FakedClock> = {};
    const ids: string[] = [];
    let folder: string;
    let remove: () => void;
    let s3: TestS3;
    let source: Source;
    let redis: TestRecord;
    let store: TestStore;
    let up: RunningUp;
    let api: RoleProcess;
    let account: string;
    let key: string;

    before(async () => {
      ({ folder, remove } = aFolder());
      for (const name of ['controller', 'api', 'redis']) clocks[name] = fakeClock(folder, name);
      [s3, source] = [await startS3(), await startSource()];
      redis = await startFakedRedis(folder, clocks.redis);
      store = storeOf(redis.connection);
      const env = {
        ...{ ...s3.env, TRAWL_SECRET: secret, TRAWL_REDIS_URL: redis.url, TRAWL_LOG_LEVEL: 'debug' },
        ...{ TRAWL_EGRESS_ALLOW: '127.0.0.1:*', TRAWL_WORKERS: isLong ? '6' : '4' },
      };
      up = await startUp({ ...env, ...clocks.controller?.env, TRAWL_DATA: join(folder, 'data') });
      const inspector = `unix:${join(folder, 'data', 'inspector.sock')}`;
      const apart = { TRAWL_PUBLIC_URL: up.url, TRAWL_INSPECTOR_ADDRESS: inspector };
      api = await startRole('api', { ...env, ...apart, ...clocks.api?.env });
      const caller = await anAccount(store, { credits: 10_000, max_open: 1_000 });
      account = caller.accountId;
      key = await anotherKey(store, account);
    });
    after(async () => {
      await api?.end('SIGTERM');
      up?.process.kill('SIGTERM');
      await up?.ended;
      await until(() => processesIn(folder).length === 0, 20, 'no process is left');
      await redis?.stop();
      await source?.stop();
      await s3?.stop();
      remove();
    });

    const submit = async (url: string): Promise<string> => {
      const film = `${source.url}/rate/300000/clip.mp4`;
      const answer = await fetch(`${url}/v1/video/download?query=${film}`, { headers: { 'x-api-key': key } });
      expect(answer.status, 'an admission').to.equal(202);
      return (JSON.parse(await answer.text()) as { job_id: string }).job_id;
    };
    const read = async (id: string): Promise<Job> => {
      const job = await readJob(store, id);
      if (job === null) throw new Error(`there is no job ${id}`);
      return job;
    };
    const allEnded = (some: readonly string[]) =>
      until(
        async () => (await Promise.all(some.map(read))).every(({ status }) => isEnded(status)),
        300,
        'the jobs end',
      );

    for (const name of ['controller', 'api', 'redis']) {
      for (const seconds of moves) {
        it(`end as usual when that of ${name} moves by ${seconds / hour} h`, async () => {
          const clock = clocks[name]!;
          const some: string[] = [];
          for (let n = 0; n < jobsAtOnce; n++) some.push(await submit(n % 2 === 0 ? up.url : api.url));
          const isRunning = async () => (await Promise.all(some.map(read))).some(({ status }) => status === 'Running');
          await until(isRunning, 30, 'a job runs');
          clock.move(seconds);
          some.push(await submit(up.url), await submit(api.url));
          ids.push(...some);
          await pause(sweptSeconds * 1000);
          await allEnded(some);
          const jobs = await Promise.all(some.map(read));
          const ends = jobs.map(({ status, failures, error }) => [status, failures, error]);
          expect(ends).to.deep.equal(some.map(() => ['CompletedJob', 0, null]));
          const files = jobs.map(({ delivered }) => delivered?.key);
          expect((await s3.list()).objects).to.include.members(files);
          clock.move(0);
        });
      }
    }

    it('are charged once each, and every file is there', async () => {
      const { balances } = await readSnapshot(store, account);
      expect([balances.held, balances.credits_consumed]).to.deep.equal([0, ids.length]);
      expect((await verifyLedger(store, account)).problems).to.deep.equal([]);
      const files = (await Promise.all(ids.map(read))).map(({ delivered }) => delivered?.key);
      expect((await s3.list()).objects).to.include.members(files);
      expect(up.output()).to.contain('the clock of redis has jumped');
      for (const { output } of [up, api]) expect(output()).to.contain('the clock of this machine differs');
    });
  });
