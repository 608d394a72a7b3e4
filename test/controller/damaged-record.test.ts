import { mock } from 'node:test';
import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { DamagedRecord } from '../../src/controller/attempt-workers.ts';
import { noteFailedSteps } from '../../src/controller/failed-steps.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { mendJob } from '../../src/store/jobs/mend-job.ts';
import { recordVerdict } from '../../src/store/jobs/record-verdict.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { advanceWith, aRunner } from '../support/advance.ts';
import {
  admitted,
  anAccount,
  aRunningJob,
  completed,
  holder,
  lead,
  storeOf,
  takeJob,
  theJob,
} from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';

describe('the controller, with a job whose record is damaged', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());

  const damaged = async (field: string) => {
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    await redis.connection.send(['HSET', keys.job(job.id), field, '{"is":"do']);
    return { store, job, attempt: `${job.id}-1` };
  };

  for (const field of ['asked', 'verdict', 'metadata', 'delivered']) {
    it(`names a job whose ${field} cannot be read once, leaves it, and stops its worker once it is cancelled`, async () => {
      const { store, job, attempt } = await damaged(field);
      const runner = aRunner({ [attempt]: { is: 'interrupted', reason: 'its node was shut down' } });
      const [metrics, { lines, log }] = [makeMetrics(), aLog()];
      const note = noteFailedSteps({ metrics, log });
      const advance = advanceWith(store, runner);
      for (let n = 0; n < 3; n++) await advance(job.id).catch((error) => note(job.id, error));
      const told = lines.map((line) => JSON.parse(line));
      expect(told.map(({ level, job: id, unreadable }) => ({ level, id, unreadable }))).to.deep.equal([
        { level: 'error', id: job.id, unreadable: [field] },
      ]);
      expect((await metrics.reconcile_errors_total.get()).values[0]?.value).to.equal(3);
      const read = await theJob(store, job.id);
      expect([read.status, read.attempt, read.interruptions]).to.deep.equal([job.status, 1, 0]);
      expect([runner.started, runner.stopped]).to.deep.equal([[], []]);
      await cancelJob(store, read);
      await advance(job.id);
      expect(runner.stopped).to.deep.equal([attempt]);
    });
  }

  it('starts no worker for a job whose parameters cannot be read', async () => {
    const store = storeOf(redis.connection);
    const id = await admitted(store, await anAccount(store, { credits: 1 }));
    await lead(store, holder);
    while ((await takeJob(store, holder, 1_000_000)) !== id);
    await redis.connection.send(['HSET', keys.job(id), 'asked', '{"is":"do']);
    const runner = aRunner({});
    const error = await advanceWith(store, runner)(id).catch((thrown) => thrown);
    expect(error).to.be.instanceOf(DamagedRecord);
    expect([runner.started, (await theJob(store, id)).attempt]).to.deep.equal([[], 0]);
  });

  it('names a job whose record is lost and that keeps a slot once, stops its worker, and names none that has ended', async () => {
    const { store, job, attempt } = await damaged('stage');
    const runner = aRunner({}, [attempt]);
    const { lines, log } = aLog();
    const note = noteFailedSteps({ metrics: makeMetrics(), log });
    const advance = advanceWith(store, runner);
    await redis.connection.send(['DEL', keys.job(job.id)]);
    for (let n = 0; n < 2; n++) await advance(job.id).catch((error) => note(job.id, error));
    expect(lines.map((line) => JSON.parse(line)).map(({ job: id, unreadable }) => ({ id, unreadable }))).to.deep.equal([
      { id: job.id, unreadable: ['record'] },
    ]);
    expect(runner.stopped).to.deep.equal([attempt]);
    await mendJob(store, job.id);
    await cancelJob(store, await theJob(store, job.id));
    await redis.connection.send(['DEL', keys.endedJob(job.id)]);
    expect(await advance(job.id)).to.equal(null);
  });

  it('names each of many damaged jobs, those beyond ten in a later minute', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const { lines, log } = aLog();
    const note = noteFailedSteps({ metrics: makeMetrics(), log });
    const ids = Array.from({ length: 12 }, (_, n) => `job ${n}`);
    const noteAll = () => {
      for (const id of ids) note(id, new DamagedRecord(['asked']));
    };
    noteAll();
    mock.timers.tick(60_000);
    noteAll();
    mock.timers.tick(60_000);
    mock.timers.reset();
    const named = lines.map((line) => JSON.parse(line).job).filter((id) => id !== undefined);
    expect(named).to.deep.equal(ids);
  });

  it('decides nothing without a verdict that was damaged after the job was read', async () => {
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const runner = aRunner({ [`${job.id}-1`]: { is: 'interrupted', reason: 'its node was shut down' } });
    const see = async (name: string) => {
      await redis.connection.send(['HSET', keys.job(job.id), 'verdict', '{"is":"do']);
      return runner.see(name);
    };
    const error = await advanceWith(store, { ...runner, see })(job.id).catch((thrown) => thrown);
    expect(error).to.be.instanceOf(DamagedRecord);
    expect(await theJob(store, job.id)).to.include({ status: job.status, attempt: 1, interruptions: 0 });
  });

  it('stops the worker of an ended job whose texts cannot be read, and removes no file that it may have delivered', async () => {
    const { store, job, attempt } = await damaged('stage');
    await settleJob(store, holder, job, completed);
    const key = keys.endedJob(job.id);
    const [words] = (await redis.connection.readBytes([key]))[0]!.toString('latin1').split('\n');
    await redis.connection.send(['SET', key, `${words}\n\nno texts`]);
    const [runner, removed] = [aRunner({}, [attempt]), [] as string[]];
    const remove = async (prefix: string) => void removed.push(prefix);
    await advanceWith(store, runner, { objects: { finish: async () => false, see: async () => null, remove } })(job.id);
    expect([runner.stopped, removed]).to.deep.equal([[attempt], []]);
  });

  it('ends a job although the marks of its attempts cannot be read, which decide nothing', async () => {
    const { store, job, attempt } = await damaged('attempts');
    await recordVerdict(store, job.id, 1, { is: 'failed', code: 'private' });
    await advanceWith(store, aRunner({ [attempt]: { is: 'failed', code: 'worker_failed' } }))(job.id);
    expect(await theJob(store, job.id)).to.include({ status: 'Error', error_code: 'private' });
  });
});
