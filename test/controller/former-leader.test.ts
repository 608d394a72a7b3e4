import { expect } from 'chai';
import { advanceWith, aRunner } from '../support/advance.ts';
import { admitted, anAccount, aRunningJob, holder, lead, storeOf, takeJob, theJob } from '../support/record.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';

describe('a controller that has lost the lead', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());

  it('removes neither the worker nor the file that the next leader has not read', async () => {
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const runner = aRunner({ [`${job.id}-1`]: { is: 'interrupted', reason: 'its node was shut down' } });
    const removed: string[] = [];
    const objects = {
      finish: async () => false,
      see: async () => null,
      remove: async (prefix: string) => void removed.push(prefix),
    };
    await advanceWith(store, runner, { objects, holder: 'who led before' })(job.id);
    expect([runner.stopped, removed]).to.deep.equal([[], []]);
    expect((await theJob(store, job.id)).interruptions).to.equal(0);
    await advanceWith(store, runner, { objects })(job.id);
    expect([runner.stopped, removed]).to.deep.equal([[`${job.id}-1`], [`${job.id}/1/`]]);
    expect((await theJob(store, job.id)).interruptions).to.equal(1);
  });

  it('leaves the worker and the file of a job that it would end', async () => {
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const runner = aRunner({ [`${job.id}-1`]: { is: 'failed', code: 'private' } });
    const removed: string[] = [];
    const objects = { remove: async (prefix: string) => void removed.push(prefix) };
    await advanceWith(store, runner, { objects, holder: 'who led before' })(job.id);
    expect([runner.stopped, removed]).to.deep.equal([[], []]);
    expect((await theJob(store, job.id)).error_code).to.equal(null);
    await advanceWith(store, runner, { objects })(job.id);
    expect([runner.stopped, removed]).to.deep.equal([[`${job.id}-1`], [`${job.id}/1/`]]);
    expect((await theJob(store, job.id)).error_code).to.equal('private');
  });

  it('starts no worker for an attempt that the record refuses', async () => {
    const store = storeOf(redis.connection);
    const id = await admitted(store, await anAccount(store, { credits: 1 }));
    await lead(store, holder);
    expect(await takeJob(store, holder, 1_000_000)).to.equal(id);
    const runner = aRunner({});
    await advanceWith(store, runner, { holder: 'who led before' })(id);
    expect(runner.started).to.deep.equal([]);
    await advanceWith(store, runner)(id);
    expect(runner.started).to.deep.equal([`${id}-1`]);
  });

  it('carries out no step of a job that it read before it got the lead back, since another leader may have changed it', async () => {
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const runner = aRunner({ [`${job.id}-1`]: { is: 'interrupted', reason: 'its node was shut down' } });
    let term = 'who led before';
    const read: typeof store.connection.read = async (command) => {
      const reply = await store.connection.read(command);
      term = holder;
      return reply;
    };
    const late = { ...store, connection: { ...store.connection, read } };
    const advance = advanceWith(late, runner, { term: () => term });
    await advance(job.id);
    expect((await theJob(store, job.id)).interruptions).to.equal(0);
    await advance(job.id);
    expect((await theJob(store, job.id)).interruptions).to.equal(1);
  });
});
