import { expect } from 'chai';
import { keys } from '../../src/store/keys.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film } from '../support/calls.ts';
import { endJob, submitApart } from '../support/job-steps.ts';
import { failed } from '../support/record.ts';

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
  const list = async () => (await api.get('/v1/jobs', caller.key)).json.jobs as { id: string }[];
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

  it('are cancelled by their caller, who gets the credit back', async () => {
    const id = await submit();
    await damageOpen(id);
    const { status, json } = await api.call('DELETE', `/v1/jobs/${id}`, { key: caller.key });
    expect([status, json.error_code]).to.deep.equal([200, 'cancelled']);
    expect((await api.get('/v1/usage', caller.key)).json).to.include({ held: 0 });
  });

  it('are not started again without their parameters', async () => {
    const id = await submit();
    await endJob(api.store, id, failed);
    await damageEnded(id);
    const answer = await api.call('POST', `/v1/jobs/${id}/retry`, { key: caller.key });
    expectRefused(answer, 400, 'bad_request', /damaged/);
    expect(await list()).to.have.length(1);
  });
});
