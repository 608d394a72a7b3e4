import { expect } from 'chai';
import { refusals } from '../../src/base/errors.ts';
import { beginDrain, endDrain } from '../../src/store/access/drain.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import type { Answer } from '../support/api.ts';
import { type Dashboard, eachWithDashboard } from '../support/browser-session.ts';
import { creditPaths, expectRefused, film } from '../support/calls.ts';
import { endJob } from '../support/job-steps.ts';

const { sentence } = refusals.draining;

describe('an API while a drain lasts', () => {
  let api: Dashboard['api'];
  let caller: Dashboard['caller'];
  let owner: Dashboard['owner'];
  eachWithDashboard((dashboard) => {
    ({ api, caller, owner } = dashboard);
  });

  const submit = () => api.get(creditPaths[0]!, caller.key, { query: film });
  const refused = (answer: Answer) => {
    expectRefused(answer, 503, 'draining', sentence);
    expect(answer.headers.get('retry-after')).to.equal('30');
  };
  const useTool = (name: string, given: object) =>
    api.call('POST', '/mcp', {
      key: caller.key,
      headers: { accept: 'application/json, text/event-stream' },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } },
    });

  it('admits nothing by any way, and says so in a sentence', async () => {
    const ended = String((await submit()).json.job_id);
    await endJob(api.store, ended);
    const before = (await api.get('/v1/usage', caller.key)).json;
    await beginDrain(api.store);
    for (const path of creditPaths) {
      refused(await api.get(path, caller.key, { query: film }));
      refused(await api.call('POST', path, { key: caller.key, body: { query: film } }));
    }
    refused(await api.get('/v1/media/metadata', caller.key, { query: film, is_async: 'true' }));
    refused(await api.call('POST', `/v1/jobs/${ended}/retry`, { key: caller.key }));
    const body = { endpoint: 'audio', items: [{ query: film }] };
    refused(await api.call('POST', '/v1/batches', { key: caller.key, body }));
    for (const tool of ['metadata', 'download']) {
      expect((await useTool(tool, { query: film })).text, tool)
        .to.include(sentence)
        .and.include('draining');
    }
    const byHand = await owner.ask('POST', '/api/jobs', { endpoint: 'video', query: film });
    expect([byHand.status, byHand.json.error]).to.deep.equal([503, sentence]);
    expect((await api.get('/v1/usage', caller.key)).json).to.deep.equal(before);
    await endDrain(api.store);
    expect((await submit()).status).to.equal(202);
  });

  it('finishes, charges and cancels what it has, a call in hand included', async () => {
    const [completes, cancelled] = [String((await submit()).json.job_id), String((await submit()).json.job_id)];
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<object>();
    api.inspect(() => {
      asked.resolve();
      return answer.promise;
    });
    const inHand = api.get('/v1/media/metadata', caller.key, { query: film });
    await asked.promise;
    await beginDrain(api.store);
    answer.resolve({ metadata: { title: 'A film' } });
    expect((await inHand).status).to.equal(200);
    expect((await api.get(`/v1/jobs/${cancelled}`, caller.key)).json.status).to.equal('QueuedJob');
    expect((await api.call('DELETE', `/v1/jobs/${cancelled}`, { key: caller.key })).json.status).to.equal('Error');
    await endJob(api.store, completes);
    expect((await api.get(`/v1/jobs/${completes}`, caller.key)).json.status).to.equal('CompletedJob');
    expect((await api.get('/v1/usage', caller.key)).json).to.include({ held: 0 });
    expect((await verifyLedger(api.store, caller.account)).problems).to.deep.equal([]);
    await endDrain(api.store);
  });
});
