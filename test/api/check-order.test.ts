import { expect } from 'chai';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { removeJob } from '../../src/store/jobs/remove-job.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film, unknownId } from '../support/calls.ts';
import { endJob, runJob } from '../support/job-steps.ts';
import { completed, failed } from '../support/record.ts';
import { until } from '../support/until.ts';

describe('the order of checks', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.stop());

  const wrongParameters = ['soft_fail=maybe', 'wait=31', 'fields=a&fields=b'];
  for (const wrong of wrongParameters) {
    it(`D10: a poll with ${wrong} is 400 for a job that nobody knows, after key and rate`, async () => {
      const caller = await api.addCaller({ perMinute: 1 });
      const path = `/v1/jobs/${unknownId}?${wrong}`;
      expectRefused(await api.get(path, 'wrong'), 401, 'invalid_api_key', 'Invalid API Key');
      const answer = await api.get(path, caller.key);
      expectRefused(answer, 400, 'bad_request', /^Bad Request: /);
      expect(answer.headers.get('ratelimit')).to.equal('"per-minute";r=0;t=60');
      expectRefused(await api.get(path, caller.key), 429, 'rate_limited', /per-minute|per minute/);
    });
  }

  it('D14: a poll of a job that nobody knows is 404 when its parameters are right', async () => {
    const { key } = await api.addCaller();
    expectRefused(await api.get(`/v1/jobs/${unknownId}?wait=1`, key), 404, 'not_found', 'Not Found');
  });

  it('D10 D12: an Idempotency-Key in use is 409 with parameters that are wrong, and one that is not in use 400', async () => {
    const { key, account } = await api.addCaller();
    const ask = (name: string, params: Record<string, string>) =>
      api.call('GET', '/v1/video/download', { key, params, headers: { 'idempotency-key': name } });
    const { status, json } = await ask('used', { query: film });
    expect(status).to.equal(202);
    expectRefused(await ask('used', { query: 'x' }), 409, 'idempotency_conflict', /other parameters/);
    expectRefused(await ask('new', { query: 'x' }), 400, 'bad_request', /^Bad Request: query/);
    // A refused call is not remembered.
    expectRefused(await ask('new', { query: 'x' }), 400, 'bad_request', /^Bad Request: query/);
    expect((await ask('new', { query: film })).status).to.equal(202);
    expect((await ask('used', { query: film })).json).to.deep.equal(json);
    expect((await readSnapshot(api.store, account)).balances.held).to.equal(2);
  });

  const retry = (id: string, key: string, name?: string) =>
    api.call('POST', `/v1/jobs/${id}/retry`, { key, headers: name === undefined ? {} : { 'idempotency-key': name } });

  it('D12: a repeated retry gives its job although the record of the job that it repeats has expired since', async () => {
    const { key, account } = await api.addCaller();
    const { job_id: id } = (await api.get('/v1/video/download', key, { query: film })).json;
    await endJob(api.store, id, failed);
    const first = await retry(id, key, 'again');
    expect(first.status).to.equal(202);
    // A job that ended in this millisecond is no older than 0 ms.
    await until(() => removeJob(api.store, id, 0), 5, 'the record of the job to be removed');
    const repeated = await retry(id, key, 'again');
    expect([repeated.status, repeated.json]).to.deep.equal([202, first.json]);
    expect(repeated.headers.get('location')).to.equal(`/v1/jobs/${first.json.job_id}`);
    expectRefused(await retry(id, key, 'new'), 404, 'not_found', 'Not Found');
    expectRefused(await retry(unknownId, key, 'again'), 409, 'idempotency_conflict', /other parameters/);
    expectRefused(await retry('x', key, 'again'), 409, 'idempotency_conflict', /other parameters/);
    expect((await readSnapshot(api.store, account)).balances.held).to.equal(1);
  });

  it('D10: a retry of a job that is unknown, open or no UUID is refused for the quota of its key before that', async () => {
    const { key, keyId, account } = await api.addCaller({ quotas: { total: 1 } });
    const { job_id: open } = (await api.get('/v1/video/download', key, { query: film })).json;
    const ids = [unknownId, open, 'x'];
    for (const id of ids) expectRefused(await retry(id, key), 401, 'key_quota_exceeded', /quota total$/);
    const { alias } = (await listKeys(api.store, account)).find((one) => one.id === keyId)!;
    await setKey(api.store, account, alias, { quotas: { total: null } });
    const codes = await Promise.all(ids.map(async (id) => (await retry(id, key)).headers.get('x-error-code')));
    expect(codes).to.deep.equal(['not_found', 'not_ended', 'bad_request']);
  });
});

describe('calls by POST', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.stop());

  it('D5: a parameter that stands twice in an object of the body is 400, under soft_fail of the body 200', async () => {
    const { key, account } = await api.addCaller();
    const headers = { 'content-type': 'application/json' };
    const body = `{"query":"${film}","max_duration":5,"max_duration":500}`;
    const answer = await api.call('POST', '/v1/video/download', { key, headers, body });
    const sentence = 'Bad Request: max_duration must be a single value, given once';
    expectRefused(answer, 400, 'bad_request', sentence);
    const soft = body.replace('{', '{"soft_fail":true,');
    expectRefused(
      await api.call('POST', '/v1/video/download', { key, headers, body: soft }),
      200,
      'bad_request',
      sentence,
    );
    expect((await readSnapshot(api.store, account)).balances.held).to.equal(0);
  });

  it('D5 D96: a parameter that stands twice in the query is 400, although the body has it too', async () => {
    const caller = await api.addCaller();
    const sentence = (name: string) => `Bad Request: ${name} must be a single value, given once`;
    const body = { query: film, video_quality: '360p' };
    const once = '/v1/video/download?video_quality=720p';
    const twice = await api.call('POST', `${once}&video_quality=720p`, { key: caller.key, body });
    expectRefused(twice, 400, 'bad_request', sentence('video_quality'));
    const batch = { endpoint: 'video', items: [{ query: film }] };
    const ofBatch = await api.call('POST', '/v1/batches?endpoint=audio&endpoint=audio', {
      key: caller.key,
      body: batch,
    });
    expectRefused(ofBatch, 400, 'bad_request', sentence('endpoint'));
    expect((await api.call('POST', `${once}&other=1&other=2`, { key: caller.key, body })).status).to.equal(202);
  });

  it('D1 D25: the line of a charge names the method of the call', async () => {
    const { key, account } = await api.addCaller();
    for (const method of ['POST', 'GET']) {
      const given = method === 'POST' ? { body: { query: film } } : { params: { query: film } };
      const { json } = await api.call(method, '/v1/audio/download', { key, ...given });
      await runJob(api.store, json.job_id);
      await endJob(api.store, json.job_id, completed);
    }
    await until(async () => (await readLines(api.store, account, 9)).length === 4, 10, 'four lines');
    const lines = await readLines(api.store, account, 9);
    expect(lines.map(({ endpoint, status }) => `${endpoint} ${status}`).toSorted()).to.deep.equal([
      'GET /v1/audio/download 201',
      'GET /v1/audio/download 202',
      'POST /v1/audio/download 201',
      'POST /v1/audio/download 202',
    ]);
  });
});

describe('metrics of synchronous calls', () => {
  it('charges_total and overdrafts_total count their charges', async () => {
    const api = await startApi();
    try {
      const { key } = await api.addCaller({ credits: 1 });
      expect((await api.get('/v1/media/metadata', key, { query: film })).status).to.equal(200);
      expect((await api.get('/v1/media/metadata', key, { query: film })).status).to.equal(402);
      const metrics = await api.metrics.registry.metrics();
      expect(metrics).to.match(/^trawl_charges_total\{endpoint="metadata",balance="credits"\} 1$/m);
      expect(metrics).to.match(/^trawl_overdrafts_total 0$/m);
    } finally {
      await api.stop();
    }
  });
});
