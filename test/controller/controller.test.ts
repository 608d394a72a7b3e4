import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { type Controller, type ControllerOptions, startController } from '../../src/controller/controller.ts';
import type { Seen } from '../../src/model/next.ts';
import type { Delivered } from '../../src/model/outcome.ts';
import { sharesOf } from '../../src/model/preemption.ts';
import { jobIdOf, type Runner, StartDelayed } from '../../src/runners/runner.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { readActiveJobs } from '../../src/store/jobs/open-work.ts';
import { keys } from '../../src/store/keys.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { emptyObjects } from '../support/advance.ts';
import { jobLimits } from '../support/job-limits.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';
import { admitted, anAccount, storeOf, type TestStore, theJob } from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';
import { readAttempts } from '../support/stored-job.ts';
import { until } from '../support/until.ts';

describe('the controller', () => {
  let redis: TestRedis;
  let store: TestStore;
  let controller: Controller;
  /** The workers of the runner, by the names of attempts. */
  let workers: Map<string, Seen>;
  /** Delays the answers of the runner about a worker. */
  let hung: Promise<void> | null;
  /** Delays only that a worker is made. */
  let hungStart: Promise<void> | null;
  let starting: number;
  let metrics: ReturnType<typeof makeMetrics>;
  let objects: ControllerOptions['objects'];
  let begin: (slots: number, times?: ControllerOptions['times']) => Promise<Controller>;
  beforeEach(async () => {
    redis = await startTestRedis();
    store = storeOf(redis.connection);
    workers = new Map();
    metrics = makeMetrics();
    hung = null;
    hungStart = null;
    starting = 0;
    const runner: Runner = {
      start: async ({ name }) => {
        starting++;
        await (hungStart ?? hung);
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
    objects = emptyObjects;
    begin = (slots, times = {}) =>
      startController({
        ...{
          store,
          limits: jobLimits,
          metrics,
          traces: null,
          log: aLog().log,
          shares: sharesOf(slots, 0, 30),
          times,
          runners: [runner],
        },
        objects,
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

  it('counts a step that fails, and the time of each full pass', async () => {
    hung = Promise.reject(new Error('the cluster is away'));
    hung.catch(() => undefined);
    await admitted(store, await anAccount(store, { credits: 1 }));
    const errors = async () => (await metrics.reconcile_errors_total.get()).values[0]?.value ?? 0;
    await until(async () => (await errors()) > 0, 20, 'a step has failed');
    const passes = await metrics.registry.getSingleMetricAsString('trawl_reconcile_seconds');
    expect(passes).to.match(/^trawl_reconcile_seconds_count [1-9]/m);
  });

  it('counts no failed step while the quota of the cluster delays a start, and starts the job then', async () => {
    const reason = 'The quota of the cluster is used up';
    hungStart = Promise.reject(new StartDelayed(reason, new Error('exceeded quota')));
    hungStart.catch(() => undefined);
    const id = await admitted(store, await anAccount(store, { credits: 1 }));
    await until(async () => starting >= 3 && (await theJob(store, id)).stage === reason, 20, 'it is tried again');
    expect((await metrics.reconcile_errors_total.get()).values[0]?.value ?? 0).to.equal(0);
    hungStart = null;
    await isRunning(id);
  });

  it('takes no more jobs than the work queue has free slots, so that ended attempts are settled first', async () => {
    await controller.close();
    controller = await begin(50);
    const { promise, resolve } = Promise.withResolvers<void>();
    hung = promise;
    const caller = await anAccount(store, { credits: 40, max_open: 40 });
    for (let n = 0; n < 40; n++) await admitted(store, caller);
    await until(async () => (await readActiveJobs(store)).length >= 32, 5, 'as many are taken as can');
    expect(await readActiveJobs(store)).to.have.length(32);
    resolve();
    await until(() => workers.size === 40, 5, 'all begin');
  });

  it('settles other jobs while a webhook of the cluster holds up the starts of 40, and starts each of these then', async () => {
    await controller.close();
    controller = await begin(50);
    const caller = await anAccount(store, { credits: 50, max_open: 50 });
    const others = await Promise.all(Array.from({ length: 10 }, () => admitted(store, caller)));
    await until(() => workers.size === 10, 5, 'the others run');
    const { promise, resolve } = Promise.withResolvers<void>();
    hungStart = promise;
    for (let n = 0; n < 40; n++) await admitted(store, caller);
    await until(() => starting >= 10 + 16, 5, 'as many begin as can');
    for (const id of others) {
      workers.set(`${id}-1`, { is: 'ended', outcome: { is: 'failed', code: 'private' } });
      controller.hint(id);
    }
    const codeOf = async (id: string) => (await theJob(store, id)).error_code;
    for (const id of others) await until(async () => (await codeOf(id)) === 'private', 5, 'the others end');
    expect(starting).to.equal(10 + 16);
    resolve();
    await until(() => workers.size === 40, 5, 'all begin');
  });

  it('offers a turn at each full pass to an account that waits because its jobs could not be interrupted', async () => {
    await controller.close();
    const caller = await anAccount(store, { credits: 9 });
    await anAccount(store);
    const jobs = [await admitted(store, caller), await admitted(store, caller)];
    // As jobs stand there that were interrupted.
    for (const [n, id] of jobs.entries()) {
      await store.connection.send(['ZADD', keys.queue(caller.accountId), String(1_000 * (n + 1)), id]);
    }
    const field = ['HSET', keys.account(caller.accountId), 'bound'] as const;
    await store.connection.send([...field, '2']);
    controller = await begin(2, { fullPassMs: 10 });
    await until(() => workers.size === 1, 5, 'the first runs');
    // The turns of its admissions are over: only a full pass offers another one.
    await store.connection.send(['DEL', keys.ready]);
    // As many are bound as before, but there are more workers: no event of the account tells it.
    await store.connection.send([...field, '1']);
    await until(() => jobs.every((id) => workers.has(`${id}-1`)), 5, 'both run');
  });

  it('starts and ends other jobs while 40 wait for an object store that swallows requests, and confirms each then', async () => {
    await controller.close();
    let away = Promise.withResolvers<void>();
    const files = new Map<string, Delivered>();
    const kept = (key: string) => files.get(key);
    const see = async (key: string) => {
      await away.promise;
      const { bytes, sha256 } = kept(key) ?? {};
      return bytes === undefined ? null : { bytes, checksum: String(sha256) };
    };
    objects = { ...emptyObjects, finish: () => away.promise.then(() => false), see, remove: () => away.promise };
    controller = await begin(50);
    const caller = await anAccount(store, { credits: 45, max_open: 45 });
    const films = await Promise.all(Array.from({ length: 40 }, () => admitted(store, caller)));
    await until(() => workers.size === 40, 10, 'all begin');
    for (const id of films) {
      const delivered = { ...someDelivered(1), key: `${id}/1/media.mp4` };
      files.set(delivered.key, delivered);
      workers.set(`${id}-1`, { is: 'ended', outcome: { is: 'done', metadata: someMetadata, delivered } });
      controller.hint(id);
    }
    const others = await Promise.all([1, 2, 3].map(() => admitted(store, caller)));
    await until(() => others.every((id) => workers.has(`${id}-1`)), 5, 'the others begin');
    for (const id of others) {
      workers.set(`${id}-1`, { is: 'ended', outcome: { is: 'failed', code: 'private' } });
      controller.hint(id);
    }
    const codeOf = async (id: string) => (await theJob(store, id)).error_code;
    for (const id of others) await until(async () => (await codeOf(id)) === 'private', 5, 'the others end');
    away.reject(new Error('no answer'));
    away = Promise.withResolvers<void>();
    away.resolve();
    const statusOf = async (id: string) => (await theJob(store, id)).status;
    for (const id of films) await until(async () => (await statusOf(id)) === 'CompletedJob', 30, 'the films complete');
    expect((await verifyLedger(store, caller.accountId)).problems).to.deep.equal([]);
    expect((await readSnapshot(store, caller.accountId)).balances).to.include({ held: 0, credits_consumed: 40 });
  });

  it('ends no job and no attempt for its age while the clock of Redis is not steady', async () => {
    await controller.close();
    let isSteady = false;
    const { clock: real } = store.connection;
    const clock = { now: () => real.now(), machineAheadMs: () => 0, isSteady: () => isSteady };
    store = { ...store, connection: { ...store.connection, clock } };
    controller = await begin(1);
    const caller = await anAccount(store, { credits: 2 });
    const [first, waits] = [await admitted(store, caller), await admitted(store, caller)];
    await isRunning(first);
    store.advance(100 * 3_600_000);
    const look = async () => {
      for (const id of [first, waits]) controller.hint(id);
      await controller.close();
      controller = await begin(1);
      return Promise.all([first, waits].map(async (id) => (await theJob(store, id)).error_code));
    };
    for (let n = 0; n < 2; n++) expect(await look()).to.deep.equal([null, null]);
    isSteady = true;
    const ended = async () => (await look()).filter((code) => code !== null);
    await until(async () => (await ended()).includes('queue_timeout'), 10, 'the job that waits to end');
  });

  it('gives up leadership while Redis is away and makes a full pass once Redis answers', async () => {
    const leaderGauge = async () => (await metrics.leader.get()).values[0]?.value;
    const id = await admitted(store, await anAccount(store, { credits: 1 }));
    await isRunning(id);
    process.kill(redis.pid(), 'SIGSTOP');
    try {
      await until(() => !controller.isLeading(), 10, 'it does not lead');
      expect(await leaderGauge()).to.equal(0);
      // Nobody hears of it.
      workers.set(`${id}-1`, { is: 'ended', outcome: { is: 'failed', code: 'private' } });
    } finally {
      process.kill(redis.pid(), 'SIGCONT');
    }
    await until(() => controller.isLeading(), 10, 'it leads again');
    await until(async () => (await leaderGauge()) === 1, 10, 'trawl_leader is 1');
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
