import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { type Controller, startController } from '../../src/controller/controller.ts';
import type { Seen } from '../../src/model/next.ts';
import { jobIdOf, type Runner } from '../../src/runners/runner.ts';
import { listActive } from '../../src/store/jobs/open-work.ts';
import { readAttempts } from '../../src/store/jobs/read-job.ts';
import { keys } from '../../src/store/keys.ts';
import { jobLimits } from '../support/job-limits.ts';
import { admitted, anAccount, storeOf, type TestStore, theJob } from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('the controller', function () {
  this.timeout(120_000);
  let redis: TestRedis;
  let store: TestStore;
  let controller: Controller;
  /** What the one runner has, by the names of attempts. */
  let workers: Map<string, Seen>;
  /** What the runner waits for before it says anything of a worker. */
  let hung: Promise<void> | null;
  let starting: number;
  let begin: (slots: number) => Promise<Controller>;
  beforeEach(async () => {
    redis = await startTestRedis();
    store = storeOf(redis.connection);
    workers = new Map();
    hung = null;
    starting = 0;
    const runner: Runner = {
      start: async ({ name }) => {
        starting++;
        await hung;
        workers.set(name, { is: 'running' });
      },
      stop: async (name) => void workers.delete(name),
      see: async (name) => {
        await hung;
        return workers.get(name) ?? { is: 'absent' };
      },
      watch: () => () => {},
      list: async (job) => [...workers.keys()].filter((name) => job === undefined || jobIdOf(name) === job),
      close: async () => {
        const names = [...workers.keys()];
        workers.clear();
        return names;
      },
    };
    begin = (slots) =>
      startController({
        ...{ store, limits: jobLimits, metrics: makeMetrics(), log: aLog().log, slots, runners: [runner] },
        objects: { finish: async () => {}, see: async () => null, remove: async () => {} },
        runnerOf: () => runner,
      });
    controller = await begin(1);
  });
  afterEach(async () => {
    await controller.close();
    await redis.stop();
  });

  const isRunning = (id: string) =>
    until(async () => (await theJob(store, id)).status === 'Running', 5, 'the job runs');

  it('takes no more jobs than the work queue has free slots, so that ended attempts are settled first', async () => {
    await controller.close();
    controller = await begin(50);
    const { promise, resolve } = Promise.withResolvers<void>();
    hung = promise;
    const caller = await anAccount(store, { credits: 40, max_open: 40 });
    for (let n = 0; n < 40; n++) await admitted(store, caller);
    await until(() => starting >= 32, 5, 'as many begin as can');
    expect(await listActive(store)).to.have.length(32);
    resolve();
    await until(() => workers.size === 40, 5, 'all begin');
  });

  it('gives up leadership while Redis is away and makes a full pass once Redis answers', async () => {
    const id = await admitted(store, await anAccount(store, { credits: 1 }));
    await isRunning(id);
    process.kill(redis.pid(), 'SIGSTOP');
    try {
      await until(() => !controller.isLeading(), 10, 'it does not lead');
      // Nobody hears of it.
      workers.set(`${id}-1`, { is: 'ended', outcome: { is: 'failed', code: 'private' } });
    } finally {
      process.kill(redis.pid(), 'SIGCONT');
    }
    await until(() => controller.isLeading(), 10, 'it leads again');
    await until(async () => (await theJob(store, id)).error_code === 'private', 10, 'the job ends');
  });

  it('on close, records cut-off attempts as interrupted, starts no more, and gives up leadership', async () => {
    const caller = await anAccount(store, { credits: 2 });
    const [id, next] = [await admitted(store, caller), await admitted(store, caller)];
    await isRunning(id);
    await controller.close();
    expect([...workers.keys()]).to.deep.equal([]);
    expect(await theJob(store, id)).to.include({ attempt: 1, failures: 0, interruptions: 1 });
    expect((await readAttempts(store, id)).at(-1)).to.include({ counts: 'interruption', code: 'worker_lost' });
    expect(await theJob(store, next)).to.include({ attempt: 0, status: 'QueuedJob' });
    expect(await redis.connection.read(['GET', keys.lead])).to.equal(null);
  });

  it('on close, closes the runners and gives up leadership although a step of a job hangs', async () => {
    const id = await admitted(store, await anAccount(store, { credits: 1 }));
    await isRunning(id);
    const { promise, resolve } = Promise.withResolvers<void>();
    hung = promise;
    controller.hint(id);
    try {
      await controller.close();
      expect([...workers.keys()]).to.deep.equal([]);
      expect(await redis.connection.read(['GET', keys.lead])).to.equal(null);
    } finally {
      resolve();
    }
  });
});
