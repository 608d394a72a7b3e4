import { expect } from 'chai';
import { makeMetrics, renderMetrics } from '../../src/base/metrics.ts';
import { startController } from '../../src/controller/controller.ts';
import type { Delivered } from '../../src/model/outcome.ts';
import { sharesOf } from '../../src/model/preemption.ts';
import { takeLead } from '../../src/store/jobs/leadership.ts';
import { keys } from '../../src/store/keys.ts';
import { type Connection, connect } from '../../src/store/redis/connection.ts';
import { scripts } from '../../src/store/script.ts';
import { advanceWith, aRunner, emptyObjects, type PlayedRunner } from '../support/advance.ts';
import { type CutRedis, startCutRedis } from '../support/cut-redis.ts';
import { jobLimits } from '../support/job-limits.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';
import {
  admitted,
  anAccount,
  aRunningJob,
  holder,
  lead,
  storeOf,
  type TestStore,
  takeJob,
  theJob,
} from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('a controller whose answer from Redis is lost', () => {
  let redis: TestRedis;
  let proxy: CutRedis;
  let connection: Connection;
  let store: TestStore;
  beforeEach(async () => {
    redis = await startTestRedis();
    proxy = await startCutRedis(redis);
    connection = await connect(proxy.url, { log: aLog().log });
    store = storeOf(connection);
  });
  afterEach(async () => {
    await connection.close();
    await proxy.stop();
    await redis.stop();
  });

  /** Has the next run of a script carried out, and its connection break in place of the answer. */
  const loseAnswerTo = async (name: string) => {
    const { lua, sha } = scripts.find((script) => script.name === name)!;
    await connection.send(['SCRIPT', 'LOAD', lua]);
    proxy.cutAt(sha);
  };

  it('starts the attempt that it has recorded, and counts no interruption', async () => {
    const id = await admitted(store, await anAccount(store, { credits: 1 }));
    await lead(store, holder);
    expect(await takeJob(store, holder, 1)).to.equal(id);
    const runner = aRunner({});
    const advance = advanceWith(store, runner);
    await loseAnswerTo('start-attempt');
    expect(await advance(id).catch((error) => error)).to.include({ code: 'unavailable' });
    await until(() => connection.ready(), 10, 'the next connection');
    expect(await theJob(store, id)).to.include({ attempt: 1, interruptions: 0 });
    await advance(id);
    await advance(id);
    expect(runner.started).to.deep.equal([`${id}-1`]);
    expect(await theJob(store, id)).to.include({ attempt: 1, interruptions: 0, status: 'Running' });
  });

  it('counts an interruption when another controller has started the attempt since and its worker is gone', async () => {
    const id = await admitted(store, await anAccount(store, { credits: 1 }));
    await lead(store, holder);
    await takeJob(store, holder, 1);
    const runner = aRunner({});
    const advance = advanceWith(store, runner);
    await loseAnswerTo('start-attempt');
    expect(await advance(id).catch((error) => error)).to.include({ code: 'unavailable' });
    await until(() => connection.ready(), 10, 'the next connection');
    const other = advanceWith(storeOf(redis.connection), runner);
    await runner.start({ name: `${id}-1`, jobId: id, attempt: 1, maxMs: 1 });
    await other(id);
    expect(await theJob(store, id)).to.include({ attempt: 1, status: 'Running' });
    await runner.stop(`${id}-1`);
    await advance(id);
    expect(await theJob(store, id)).to.include({ attempt: 1, interruptions: 1 });
    expect(runner.started).to.deep.equal([`${id}-1`]);
  });

  /** Has the leader of a new term advance jobs; `counted` returns what it has counted of their ends. */
  const aLeader = async (own: TestStore, runner: PlayedRunner, { bytes, sha256 }: Delivered) => {
    await redis.connection.send(['DEL', keys.lead]);
    const term = await takeLead(own, { holder: 'a-leader', term: '', isOff: false });
    const metrics = makeMetrics();
    const see = async () => ({ bytes, checksum: sha256 });
    const objects = { finish: async () => false, see, remove: async () => {} };
    const advance = advanceWith(own, runner, { holder: term!, metrics, objects });
    const ends = /^trawl_(?:jobs|charges|attempts)_total\{.* [1-9]\d*$/gm;
    return { advance, counted: async () => (await renderMetrics(metrics)).match(ends) ?? [] };
  };
  const aDeliveredJob = async () => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const delivered = { ...someDelivered(1), key: `${job.id}/1/media.mp4` };
    const runner = aRunner({ [`${job.id}-1`]: { is: 'done', metadata: someMetadata, delivered } });
    return { job, delivered, runner };
  };
  const countedOnce = [
    'trawl_jobs_total{endpoint="video",outcome="completed",code="",blame=""} 1',
    'trawl_charges_total{endpoint="video",balance="credits"} 1',
    'trawl_attempts_total{class="done"} 1',
  ];

  it('counts a job that it has ended, and its charge, once', async () => {
    const { job, delivered, runner } = await aDeliveredJob();
    const { advance, counted } = await aLeader(store, runner, delivered);
    await loseAnswerTo('settle-job');
    await advance(job.id);
    expect(proxy.isCut()).to.equal(true);
    await until(() => connection.ready(), 10, 'the next connection');
    expect(await theJob(store, job.id)).to.include({ status: 'CompletedJob' });
    for (let n = 0; n < 2; n++) await advance(job.id);
    expect(await counted()).to.deep.equal(countedOnce);
  });

  it('leaves a job to the count of the controller that led and ended it since', async () => {
    const { job, delivered, runner } = await aDeliveredJob();
    const { advance, counted } = await aLeader(store, runner, delivered);
    proxy.dropAt(scripts.find(({ name }) => name === 'settle-job')!.sha);
    await advance(job.id);
    expect(proxy.isCut()).to.equal(true);
    await until(() => connection.ready(), 10, 'the next connection');
    expect(await theJob(store, job.id)).to.include({ status: 'Running' });
    const next = await aLeader(storeOf(redis.connection), runner, delivered);
    await next.advance(job.id);
    expect(await next.counted()).to.deep.equal(countedOnce);
    await advance(job.id);
    expect(await counted()).to.deep.equal([]);
  });

  it('starts a job that it has taken by a full pass within seconds', async () => {
    const runner = aRunner({});
    const metrics = makeMetrics();
    const controller = await startController({
      ...{ store, limits: jobLimits, metrics, traces: null, log: aLog().log, shares: sharesOf(1, 0, 30) },
      times: { fullPassMs: 3_600_000 },
      ...{ runners: [runner], runnerOf: () => runner },
      objects: emptyObjects,
    });
    try {
      const passes = () => metrics.registry.getSingleMetricAsString('trawl_reconcile_seconds');
      await until(async () => /_count 1$/m.test(await passes()), 10, 'the first full pass');
      const direct = storeOf(redis.connection);
      const caller = await anAccount(direct, { credits: 1 });
      proxy.cutAt(caller.accountId);
      const id = await admitted(direct, caller);
      await until(() => runner.started.length > 0, 30, 'the job starts');
      expect(proxy.isCut()).to.equal(true);
      expect(await theJob(direct, id)).to.include({ attempt: 1, interruptions: 0 });
    } finally {
      await controller.close();
    }
  });
});
