import { expect } from 'chai';
import { findOldFiles } from '../../src/store/jobs/kept-files.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { keys } from '../../src/store/keys.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film } from '../support/calls.ts';
import { endJob, submitApart } from '../support/job-steps.ts';
import { completed, failed } from '../support/record.ts';

describe('jobs whose record is damaged', () => {
  let api: TestApi;
  let caller: ApiCaller;
  before(async () => {
    api = await startApi();
  });
  after(() => api.stop());
  beforeEach(async () => {
    caller = await api.addCaller();
  });

  const submit = async () => String((await api.get('/v1/video/download', caller.key, { query: film })).json.job_id);
  const list = async () =>
    (await api.get('/v1/jobs', caller.key)).json.jobs as { id: string; success: boolean | null }[];
  const poll = async (id: string) => (await api.get(`/v1/jobs/${id}`, caller.key)).json;
  const damageOpen = (id: string) =>
    api.store.connection.send(['HSET', keys.job(id), 'asked', '{"endpoint":"video","path":"/v1']);
  const damageEnded = async (id: string) => {
    const [stored] = await api.store.connection.readBytes([keys.endedJob(id)]);
    const [words] = stored!.toString('latin1').split('\n');
    await api.store.connection.send(['SET', keys.endedJob(id), `${words}\n{\nno texts`]);
  };

  it('are listed and polled with what can be read of them, beside the other jobs', async () => {
    const [whole, open, ended] = await submitApart(3, submit);
    await endJob(api.store, ended!, failed);
    await damageOpen(open!);
    await damageEnded(ended!);
    expect((await list()).map(({ id }) => id)).to.deep.equal([ended, open, whole]);
    const known = { id: open, endpoint: '/v1/video/download', status: 'QueuedJob', args: {} };
    expect((await list())[1]).to.deep.include(known);
    expect(await poll(open!)).to.deep.include(known);
    expect(await poll(ended!)).to.include({ id: ended, status: failed.status, error_code: failed.code, error: null });
  });

  for (const field of ['created_at', 'started_at']) {
    it(`are listed and polled beside the other jobs when ${field} is no number`, async () => {
      const [whole, open] = await submitApart(2, submit);
      const was = await api.store.connection.read(['HGET', keys.job(open!), field]);
      await api.store.connection.send(['HSET', keys.job(open!), field, '17x']);
      expect((await list()).map(({ id }) => id)).to.deep.equal([open, whole]);
      expect(await poll(open!)).to.include({ id: open, status: 'QueuedJob' });
      // Other tests start every job that waits.
      await api.store.connection.send(['HSET', keys.job(open!), field, was ?? '']);
    });
  }

  const cuts: Readonly<Record<string, (stored: string) => string>> = {
    'in its error code': (stored) => stored.slice(0, stored.indexOf('private') + 4),
    'in its words': (stored) => stored.slice(0, 30),
    'before its first word': () => '',
    'by zeros': (stored) => '\0'.repeat(stored.length),
  };
  for (const [where, cut] of Object.entries(cuts)) {
    it(`hide no other job from the list when one that has ended is cut ${where}`, async () => {
      const [whole, ended] = await submitApart(2, submit);
      await endJob(api.store, ended!, failed);
      const [stored] = await api.store.connection.readBytes([keys.endedJob(ended!)]);
      await api.store.connection.send(['SET', keys.endedJob(ended!), cut(stored!.toString('latin1'))]);
      const listed = (await list()).map(({ id, success }) => ({ id, success }));
      expect(listed).to.deep.equal([
        { id: ended, success: false },
        { id: whole, success: null },
      ]);
    });
  }

  it('have their file removed by DELETE when they are completed, although the record names it no more', async () => {
    const id = await submit();
    await endJob(api.store, id, completed);
    await damageEnded(id);
    const { status } = await api.call('DELETE', `/v1/jobs/${id}`, { key: caller.key });
    expect(status).to.equal(200);
    expect((await readJob(api.store, id))?.removed_at).to.be.a('number');
    expect(await findOldFiles(api.store, 3_600_000)).to.include(id);
  });

  it('are cancelled by their caller, who gets the credit back', async () => {
    const id = await submit();
    await damageOpen(id);
    const { status, json } = await api.call('DELETE', `/v1/jobs/${id}`, { key: caller.key });
    expect([status, json.error_code]).to.deep.equal([200, 'cancelled']);
    expect((await api.get('/v1/usage', caller.key)).json).to.include({ held: 0 });
  });

  for (const field of ['created_at', 'attempt', 'status', 'revision', 'started_at']) {
    it(`are cancelled by their caller, who gets the credit back, when ${field} cannot be read`, async () => {
      const id = await submit();
      await api.store.connection.send(['HSET', keys.job(id), field, '17x']);
      expect(await poll(id)).to.include({ id, success: null });
      const { status, json } = await api.call('DELETE', `/v1/jobs/${id}`, { key: caller.key });
      expect([status, json.error_code]).to.deep.equal([200, 'cancelled']);
      expect((await api.get('/v1/usage', caller.key)).json).to.include({ held: 0 });
      expect(await poll(id)).to.include({ status: 'Error', error_code: 'cancelled' });
    });
  }

  it('are not started again without their parameters', async () => {
    const id = await submit();
    await endJob(api.store, id, failed);
    await damageEnded(id);
    const answer = await api.call('POST', `/v1/jobs/${id}/retry`, { key: caller.key });
    expectRefused(answer, 400, 'bad_request', /damaged/);
    expect(await list()).to.have.length(1);
  });
});
