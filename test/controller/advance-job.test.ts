import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { noteStoring } from '../../src/store/jobs/note-storing.ts';
import { recordVerdict } from '../../src/store/jobs/record-verdict.ts';
import { keys } from '../../src/store/keys.ts';
import { advanceWith, aRunner } from '../support/advance.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';
import { admitted, anAccount, aRunningJob, holder, lead, storeOf, takeJob, theJob } from '../support/record.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';

const hour = 3_600_000;

describe('advancing a job', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());

  it('D75: a job whose file cannot be confirmed waits for the object store and completes once it answers', async () => {
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const delivered = { ...someDelivered(1), key: `${job.id}/1/media.mp4` };
    const runner = aRunner({ [`${job.id}-1`]: { is: 'done', metadata: someMetadata, delivered } });
    let isAway = true;
    const see = async () => {
      if (isAway) throw new Error('the store is away');
      return { bytes: delivered.bytes, checksum: delivered.sha256 };
    };
    const advance = advanceWith(store, runner, { objects: { finish: async () => false, see, remove: async () => {} } });
    // The first look at a worker that has ended says that it ran.
    await advance(job.id);
    await advance(job.id);
    expect(await theJob(store, job.id)).to.deep.include({ status: 'Running', delivered });
    expect(runner.stopped).to.deep.equal([]);
    isAway = false;
    await advance(job.id);
    expect(await theJob(store, job.id)).to.deep.include({ status: 'CompletedJob', delivered });
    expect(runner.stopped).to.deep.equal([`${job.id}-1`]);
  });

  it('a verdict that is recorded after the job was read, but before the runner is asked, counts', async () => {
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const runner = aRunner({ [`${job.id}-1`]: { is: 'failed', code: 'worker_failed' } });
    const see = async (name: string) => {
      await recordVerdict(store, job.id, 1, { is: 'failed', code: 'private' });
      return runner.see(name);
    };
    await advanceWith(store, { ...runner, see })(job.id);
    expect(await theJob(store, job.id)).to.include({ error_code: 'private', failures: 0 });
  });

  it('the metadata of a verdict wins over the partial metadata of the runner', async () => {
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const delivered = { ...someDelivered(1), key: `${job.id}/1/media.mp4` };
    const metadata = { ...someMetadata, title: null };
    const runner = aRunner({ [`${job.id}-1`]: { is: 'done', metadata, delivered } });
    const see = async (name: string) => {
      await recordVerdict(store, job.id, 1, { is: 'done', metadata: someMetadata, delivered });
      return runner.see(name);
    };
    const found = async () => ({ bytes: delivered.bytes, checksum: delivered.sha256 });
    const objects = { finish: async () => false, see: found, remove: async () => {} };
    await advanceWith(store, { ...runner, see }, { objects })(job.id);
    const completed = await theJob(store, job.id);
    expect([completed.status, completed.metadata?.title]).to.deep.equal(['CompletedJob', someMetadata.title]);
  });

  it('a job with a verdict completes instead of starting again, although its start seemed to fail', async () => {
    const store = storeOf(redis.connection);
    const id = await admitted(store, await anAccount(store, { credits: 1 }));
    await lead(store, holder);
    while ((await takeJob(store, holder, 1_000_000)) !== id);
    const runner = aRunner({});
    runner.refuse = 'the answer was lost';
    const delivered = { ...someDelivered(1), key: `${id}/1/media.mp4` };
    const see = async () => ({ bytes: delivered.bytes, checksum: delivered.sha256 });
    const advance = advanceWith(store, runner, { objects: { finish: async () => false, see, remove: async () => {} } });
    await advance(id).catch(() => undefined);
    await recordVerdict(store, id, 1, { is: 'done', metadata: someMetadata, delivered });
    await advance(id);
    expect(await theJob(store, id)).to.deep.include({ status: 'CompletedJob', attempt: 1, delivered });
    expect(runner.started).to.deep.equal([]);
  });

  it('an attempt whose start failed is started again without counting an interruption', async () => {
    const store = storeOf(redis.connection);
    const id = await admitted(store, await anAccount(store, { credits: 1 }));
    await lead(store, holder);
    while ((await takeJob(store, holder, 1_000_000)) !== id);
    const runner = aRunner({});
    runner.refuse = 'the API server is away';
    const advance = advanceWith(store, runner);
    for (let n = 0; n < 3; n++) {
      expect(await advance(id).catch((error: Error) => error.message)).to.equal('the API server is away');
    }
    const waiting = await theJob(store, id);
    expect(waiting).to.include({ attempt: 1, interruptions: 0, failures: 0, stage: 'It cannot be started now' });
    runner.refuse = null;
    await advance(id);
    await advance(id);
    expect(runner.started).to.deep.equal([`${id}-1`]);
    expect(await theJob(store, id)).to.include({ attempt: 1, interruptions: 0, status: 'Running' });
  });

  it('no worker is started while the controller is paused, nor without a claim, the first time or again', async () => {
    const store = storeOf(redis.connection);
    const id = await admitted(store, await anAccount(store, { credits: 1 }));
    await lead(store, holder);
    while ((await takeJob(store, holder, 1_000_000)) !== id);
    const runner = aRunner({});
    await advanceWith(store, runner, { mayStart: () => false })(id);
    const advance = advanceWith(store, runner);
    await advance(id, false);
    expect([runner.started, (await theJob(store, id)).attempt]).to.deep.equal([[], 0]);
    runner.refuse = 'the quota is used up';
    await advance(id).catch(() => undefined);
    runner.refuse = null;
    await advance(id, false);
    expect(runner.started).to.deep.equal([]);
    await advance(id);
    expect(runner.started).to.deep.equal([`${id}-1`]);
  });

  it('D72: a job whose worker could not be started for as long as a job may wait ends as queue_timeout', async () => {
    const store = storeOf(redis.connection);
    const id = await admitted(store, await anAccount(store, { credits: 1 }));
    await lead(store, holder);
    while ((await takeJob(store, holder, 1_000_000)) !== id);
    const runner = aRunner({});
    runner.refuse = 'exceeded quota';
    const advance = advanceWith(store, runner);
    await advance(id).catch(() => undefined);
    store.advance(23 * hour);
    await lead(store, holder);
    await advance(id).catch(() => undefined);
    expect(await theJob(store, id)).to.include({ attempt: 1, interruptions: 0, status: 'QueuedJob' });
    store.advance(hour);
    await lead(store, holder);
    await advance(id);
    expect(await theJob(store, id)).to.include({ attempt: 1, interruptions: 0, error_code: 'queue_timeout' });
  });

  it('an attempt that has waited longer for its pod than it may run has its whole time once that runs', async () => {
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const runner = aRunner({}, [`${job.id}-1`]);
    let isPending = true;
    const see = async (name: string) =>
      isPending ? ({ is: 'waiting', reason: 'No node of the cluster has room for it' } as const) : runner.see(name);
    const advance = advanceWith(store, { ...runner, see });
    for (let waited = 0; waited < 5; waited++) {
      await advance(job.id);
      store.advance(hour);
      await lead(store, holder);
    }
    const stage = 'No node of the cluster has room for it';
    expect(await theJob(store, job.id)).to.include({ attempt: 1, failures: 0, status: 'QueuedJob', stage });
    isPending = false;
    const delay = await advance(job.id);
    expect(delay).to.be.within(hour - 60_000, hour);
    expect(await theJob(store, job.id)).to.include({ attempt: 1, failures: 0, status: 'Running' });
    store.advance(hour);
    await lead(store, holder);
    await advance(job.id);
    expect(await theJob(store, job.id)).to.include({ attempt: 1, failures: 1 });
  });

  describe('after the clock of Redis has gone back by a day since the controller read it', () => {
    const begin = async () => {
      const store = storeOf(redis.connection);
      const old = { ...store, clock: { ...store.clock, now: () => store.clock.now() + 24 * hour } };
      return { store, old, caller: await anAccount(store, { credits: 1 }) };
    };

    it('a new job that looks a day old is started, and does not end as queue_timeout', async () => {
      const { store, old, caller } = await begin();
      const id = await admitted(store, caller);
      await lead(store, holder);
      while ((await takeJob(store, holder, 1_000_000)) !== id);
      const runner = aRunner({});
      await advanceWith(old, runner)(id);
      expect(runner.started).to.deep.equal([`${id}-1`]);
      expect(await theJob(store, id)).to.include({ attempt: 1, failures: 0, error_code: null });
    });

    for (const failures of [0, 2]) {
      it(`an attempt after ${failures} failures that seems to be past its deadline goes on until then`, async () => {
        const { store, old, caller } = await begin();
        const { id } = await aRunningJob(store, caller);
        const deadline = store.clock.now() + hour;
        await store.connection.send(['HSET', keys.job(id), 'failures', String(failures)]);
        await store.connection.send(['HSET', keys.job(id), 'attempt', String(failures + 1)]);
        await store.connection.send(['HSET', keys.job(id), 'deadline', String(deadline), 'status', 'Running']);
        const runner = aRunner({}, [`${id}-${failures + 1}`]);
        const delay = await advanceWith(old, runner)(id);
        expect(delay)
          .to.be.within(1, hour)
          .and.above(hour / 2);
        expect(await theJob(store, id)).to.include({ failures, error_code: null, deadline });
        expect(runner.stopped).to.deep.equal([]);
      });
    }

    it('a file that seems to wait a day for the object store is confirmed once that answers', async () => {
      const { store, old, caller } = await begin();
      const job = await aRunningJob(store, caller);
      const delivered = { ...someDelivered(1), key: `${job.id}/1/media.mp4` };
      await noteStoring(store, holder, job, { metadata: someMetadata, delivered });
      const see = async () => ({ bytes: delivered.bytes, checksum: delivered.sha256 });
      const objects = { finish: async () => false, see, remove: async () => {} };
      await advanceWith(old, aRunner({}), { objects })(job.id);
      expect(await theJob(store, job.id)).to.deep.include({ status: 'CompletedJob', error_code: null, delivered });
    });
  });

  it('a job whose last attempt left its worker is started again as soon as that worker is stopped', async () => {
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const runner = aRunner({ [`${job.id}-1`]: { is: 'interrupted', reason: 'its node was shut down' } });
    const { stop } = runner;
    runner.stop = async () => {
      throw new Error('the API server is away');
    };
    const advance = advanceWith(store, runner);
    await advance(job.id).catch(() => undefined);
    while ((await takeJob(store, holder, 1_000_000)) !== job.id);
    runner.stop = stop;
    // No hint comes any more: only the delay that a step returns brings the job back before the next full pass.
    for (let delay: number | null = 1; delay !== null && runner.started.length === 0; ) delay = await advance(job.id);
    expect([runner.stopped, runner.started]).to.deep.equal([[`${job.id}-1`], [`${job.id}-2`]]);
  });

  it('a worker that has sent its verdict and does not end is stopped a minute later, and the verdict counts', async () => {
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const delivered = { ...someDelivered(1), key: `${job.id}/1/media.mp4` };
    const runner = aRunner({}, [`${job.id}-1`]);
    const see = async () => ({ bytes: delivered.bytes, checksum: delivered.sha256 });
    const advance = advanceWith(store, runner, { objects: { finish: async () => false, see, remove: async () => {} } });
    await store.connection.send(['HSET', keys.job(job.id), 'deadline', String(store.clock.now() + 2 * hour)]);
    await recordVerdict(store, job.id, 1, { is: 'done', metadata: someMetadata, delivered });
    await advance(job.id);
    store.advance(30_000);
    await advance(job.id);
    expect([(await theJob(store, job.id)).status, runner.stopped]).to.deep.equal(['Running', []]);
    store.advance(30_000);
    await lead(store, holder);
    await advance(job.id);
    expect(await theJob(store, job.id)).to.deep.include({ status: 'CompletedJob', delivered });
    expect(runner.stopped).to.deep.equal([`${job.id}-1`]);
  });

  it('workers of other attempts than the last one, and of unknown jobs, are stopped', async () => {
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const unknown = randomUUID();
    const runner = aRunner({}, [`${job.id}-0`, `${job.id}-1`, `${job.id}-2`, `${unknown}-1`]);
    const advance = advanceWith(store, runner);
    await advance(job.id);
    await advance(unknown);
    expect(runner.stopped).to.deep.equal([`${job.id}-0`, `${job.id}-2`, `${unknown}-1`]);
  });

  it('a worker of an attempt that was recorded after the job was read is not stopped', async () => {
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const runner = aRunner({}, [`${job.id}-2`]);
    const { list } = runner;
    runner.list = async (jobId) => {
      await store.connection.send(['HSET', keys.job(job.id), 'attempt', '2']);
      return list(jobId);
    };
    await advanceWith(store, runner)(job.id);
    expect(runner.stopped).to.deep.equal([]);
  });
});
