import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { failures } from '../../src/base/errors.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { dropFile } from '../../src/store/jobs/kept-files.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { type ApiCaller, aFilm, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film, unknownId } from '../support/calls.ts';
import { deliverBytes } from '../support/deliver-bytes.ts';
import { endJob, runJob, submitApart } from '../support/job-steps.ts';
import { anotherKey, completed, failed } from '../support/record.ts';
import { until } from '../support/until.ts';

const aliases = ['/v1/jobs', '/api/v1/jobs', '/jobs'];
const hour = 3_600_000;

describe('polling', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_PUBLIC_URL: 'https://media.example.com/base' });
  });
  after(() => api.stop());

  const submit = async (caller: ApiCaller, params = {}) =>
    String((await api.get('/v1/video/download', caller.key, { query: film, ...params })).json.job_id);
  const poll = async (caller: ApiCaller, id: string) => (await api.get(`/v1/jobs/${id}`, caller.key)).json;

  it('names the job at the path by which callers reach the API, where a proxy takes the beginning off', async () => {
    const caller = await api.addCaller();
    const { headers, json } = await api.get('/v1/video/download', caller.key, { query: film });
    expect(headers.get('location')).to.equal(`/base/v1/jobs/${json.job_id}`);
    const body = { endpoint: 'audio', items: [{ query: film }] };
    const batch = await api.call('POST', '/v1/batches', { key: caller.key, body });
    expect(batch.headers.get('location')).to.equal(`/base/v1/batches/${batch.json.batch_id}`);
  });

  const deliver = (id: string, body = 'The bytes of a film') => deliverBytes(api, id, Buffer.from(body));

  for (const path of aliases) {
    it(`operation-4 job-id job-endpoint jobs-answer D13 D15: GET ${path}/{id} shows a job to every key of its account, in any spelling of its id`, async () => {
      const caller = await api.addCaller();
      const id = await submit(caller);
      const other = await anotherKey(api.store, caller.account);
      for (const key of [caller.key, other]) {
        const { status, json } = await api.get(`${path}/${id}`, key);
        expect([status, json.id, json.endpoint]).to.deep.equal([200, id, '/v1/video/download']);
      }
      expect((await api.get(`${path}/${id.toUpperCase()}`, caller.key)).json.id).to.equal(id);
    });

    it(`jobs-id D14: ${path}/{id} answers 404 alike for unknown and others' ids, 400 for what is no UUID`, async () => {
      const [caller, stranger] = [await api.addCaller(), await api.addCaller()];
      const id = await submit(caller);
      for (const wrong of [id, unknownId]) {
        expectRefused(await api.get(`${path}/${wrong}`, stranger.key), 404, 'not_found', 'Not Found');
      }
      for (const wrong of [
        'x',
        `${id}a`,
        id.slice(1),
        id.replaceAll('-', ''),
        '%00',
        "1'--",
        '__proto__',
        '%25',
        '%ZZ',
        '%ff',
      ]) {
        const answer = await api.get(`${path}/${wrong}`, caller.key);
        expectRefused(answer, 400, 'bad_request', 'Bad Request: id must be a UUID');
      }
      // The key comes before the parameters (D10), however these are spelled.
      for (const key of [null, 'wrong'])
        expectRefused(await api.get(`${path}/%ZZ`, key), 401, 'invalid_api_key', 'Invalid API Key');
    });
  }

  it('D14 D24: a job whose record has expired is 404, and gone from the list', async () => {
    const caller = await api.addCaller();
    const id = await submit(caller);
    await endJob(api.store, id);
    await dropFile(api.store, id);
    api.store.advance(1000);
    await sweepRecord(api.store, { job: 500, line: 1e12 });
    expectRefused(await api.get(`/v1/jobs/${id}`, caller.key), 404, 'not_found', 'Not Found');
    expect((await api.get('/v1/jobs', caller.key)).json.jobs).to.deep.equal([]);
  });

  it('D24: a job whose file was removed for its age has no link once TRAWL_FILE_HOURS is raised', async () => {
    const caller = await api.addCaller();
    const id = await submit(caller);
    await endJob(api.store, id);
    expect((await poll(caller, id)).result.response).to.be.a('string');
    await dropFile(api.store, id);
    const { status, result } = await poll(caller, id);
    expect([status, result.response, result.sha256]).to.deep.equal(['CompletedJob', null, completed.delivered?.sha256]);
  });

  it('job-created_at D18 D19 D20 D21: a job that waits has no times but its creation, and shows its place', async () => {
    const caller = await api.addCaller();
    const job = await poll(caller, await submit(caller));
    expect(job).to.deep.include({ status: 'QueuedJob', success: null, started_at: null, completed_at: null });
    expect(job).to.deep.include({ duration_ms: null, progress: 0, result: null, error: null });
    expect(new Date(job.created_at).toISOString()).to.equal(job.created_at);
    expect(job.queue).to.deep.equal({ position: 1, eta_seconds: null, reason: 'It waits for a free worker' });
    expect(job).not.to.have.any.keys('stage', 'speed_bytes', 'eta_seconds');
  });

  it('job-started_at job-progress D18 D19 D20 D21: a job that runs has started_at and a progress that never falls nor reaches 100', async () => {
    const caller = await api.addCaller();
    const id = await submit(caller);
    const seen = [];
    for (const progress of [30, 20, 100]) {
      await runJob(api.store, id, { progress });
      seen.push((await poll(caller, id)).progress);
    }
    expect(seen).to.deep.equal([30, 30, 99]);
    const job = await poll(caller, id);
    expect(job).to.deep.include({ status: 'Running', success: null, completed_at: null, duration_ms: null });
    expect(job).to.deep.include({ stage: 'fetch', speed_bytes: 1000, eta_seconds: 9, result: null });
    expect(Date.parse(job.started_at)).to.be.at.least(Date.parse(job.created_at));
    expect(job).not.to.have.property('queue');
  });

  it('job-success job-completed_at job-duration_ms D18 D20 D21: a completed job is a success at 100, and took from its start to its end', async () => {
    const caller = await api.addCaller();
    const id = await submit(caller);
    await runJob(api.store, id);
    api.store.advance(2500);
    await endJob(api.store, id);
    const job = await poll(caller, id);
    expect(job).to.deep.include({ status: 'CompletedJob', success: true, progress: 100, error: null });
    expect(job).to.deep.include({ error_code: null, retryable: null });
    expect(job.duration_ms).to.equal(Date.parse(job.completed_at) - Date.parse(job.started_at));
    expect(job.duration_ms).to.be.at.least(2500);
  });

  for (const code of ['private', 'deleted', 'unsupported_url', 'source_error', 'timeout'] as const) {
    const { status, retryable, sentence, log } = failures[code];
    it(`job-status job-error rule-4 D16 D17 D18 D25: ${code} ends a job as ${status}, logged ${log}, with its text and code, unbilled`, async () => {
      const caller = await api.addCaller();
      const id = await submit(caller);
      await runJob(api.store, id, { progress: 42 });
      await endJob(api.store, id, { ...failed, status, code, text: sentence, log });
      const job = await poll(caller, id);
      expect(job).to.deep.include({ status, success: false, error: sentence, error_code: code, retryable });
      expect(job).to.deep.include({ result: null, progress: 42 });
      const lines = await readLines(api.store, caller.account, 9);
      const ended = lines.filter((line) => line.endpoint === 'GET /v1/video/download' && line.status !== 202);
      expect(ended.map((line) => [line.status, line.credits])).to.deep.equal([[log, 0]]);
      const { balances } = await readSnapshot(api.store, caller.account);
      expect([balances.held, balances.credits_consumed]).to.deep.equal([0, 0]);
    });
  }

  it('job-result jobs-answer D23: the result has metadata and a link that works without a key, with what was delivered', async () => {
    const caller = await api.addCaller();
    const id = await submit(caller);
    const bytes = await deliver(id);
    const { result, completed_at } = await poll(caller, id);
    expect(result.metadata).to.deep.equal(aFilm);
    expect(Date.parse(result.expires_at)).to.equal(Date.parse(completed_at) + 24 * hour);
    expect(result).to.include({ bytes: bytes.length, content_type: 'video/mp4' });
    expect(result.response).to.match(
      new RegExp(`^https://media\\.example\\.com/base/files/${id}/A%20film\\.mp4\\?exp=`),
    );
    const file = await fetch(result.response.replace('https://media.example.com/base', api.url));
    expect([file.status, file.headers.get('content-type')]).to.deep.equal([200, 'video/mp4']);
    const found = Buffer.from(await file.arrayBuffer());
    expect(createHash('sha256').update(found).digest('hex')).to.equal(result.sha256);
  });

  it('D24 D85: an expired file polls as completed with a null response, and its link is 410', async () => {
    const caller = await api.addCaller();
    const id = await submit(caller);
    await deliver(id);
    const path = (await poll(caller, id)).result.response.replace('https://media.example.com/base', '');
    api.store.advance(24 * hour - 60_000);
    expect((await poll(caller, id)).result.response).to.be.a('string');
    expect((await api.get(path)).status).to.equal(200);
    api.store.advance(60_000);
    const job = await poll(caller, id);
    expect([job.status, job.success, job.result.response]).to.deep.equal(['CompletedJob', true, null]);
    expect((await api.get(path)).status).to.equal(410);
  });

  it('D9: fields reaches into the result of a job', async () => {
    const caller = await api.addCaller();
    const id = await submit(caller);
    await deliver(id);
    const params = { fields: 'status, result.metadata.ext,result.nothing' };
    const { json } = await api.get(`/v1/jobs/${id}`, caller.key, params);
    expect(json).to.deep.equal({ status: 'CompletedJob', result: { metadata: { ext: 'mp4' } } });
  });

  describe('the place in the queue', () => {
    it('D19: is counted among the jobs of the account, with its reason and an estimate', async () => {
      const caller = await api.addCaller({ concurrency: 1 });
      const ids = await submitApart(3, () => submit(caller));
      const queues = async () => Promise.all(ids.map(async (id) => (await poll(caller, id)).queue));
      expect((await queues()).map(({ position }) => position)).to.deep.equal([1, 2, 3]);
      await runJob(api.store, ids[0]!);
      const [, second, third] = await queues();
      const reason = 'The account runs as many jobs at once as it may';
      expect([second.position, second.reason]).to.deep.equal([1, reason]);
      expect([third.position, third.reason]).to.deep.equal([2, reason]);
      api.store.advance(10_000);
      await endJob(api.store, ids[0]!);
      await until(async () => (await queues())[2].eta_seconds >= 10, 5, 'an estimate');
      const listed = (await api.get('/v1/jobs', caller.key)).json.jobs;
      expect(listed.map(({ queue }: { queue?: { position: number } }) => queue?.position)).to.deep.equal([
        2,
        1,
        undefined,
      ]);
    });

    it('is estimated by how long jobs ran, also those of more than a minute, without their wait', async () => {
      // The jobs of other tests leave the hour.
      api.store.advance(3_600_000);
      const caller = await api.addCaller({ concurrency: 1 });
      const ids = await submitApart(3, () => submit(caller));
      for (const [n, seconds] of [300, 100].entries()) {
        await runJob(api.store, ids[n]!);
        api.store.advance(seconds * 1000);
        await endJob(api.store, ids[n]!);
      }
      const estimate = async () => (await poll(caller, ids[2]!)).queue.eta_seconds;
      await until(async () => (await estimate()) >= 200, 5, 'an estimate of the newest jobs');
      expect(await estimate()).to.be.at.most(210);
    });

    it('is 0 for a job that is about to start', async () => {
      const caller = await api.addCaller();
      const id = await submit(caller);
      await runJob(api.store, await submit(caller));
      const { status, queue } = await poll(caller, id);
      expect([status, queue.position, queue.eta_seconds, queue.reason]).to.deep.equal([
        'QueuedJob',
        0,
        0,
        'It is about to start',
      ]);
    });
  });

  describe('waiting', () => {
    it('D84: answers at the end of the job', async () => {
      const caller = await api.addCaller();
      const id = await submit(caller);
      await runJob(api.store, id);
      const waiting = Promise.all(aliases.map((path) => api.get(`${path}/${id}`, caller.key, { wait: '30' })));
      await until(async () => (await watchers(id)) === 1, 5, 'one subscription for three who wait');
      await endJob(api.store, id);
      for (const { json } of await waiting) expect(json.status).to.equal('CompletedJob');
      await until(async () => (await watchers(id)) === 0, 5, 'the end of the subscription');
    });

    it('D84: answers after its time, and at once for a job that has ended or 0 seconds', async () => {
      const caller = await api.addCaller();
      const id = await submit(caller);
      expect((await api.get(`/v1/jobs/${id}`, caller.key, { wait: '0.05' })).json.status).to.equal('QueuedJob');
      expect((await api.get(`/v1/jobs/${id}`, caller.key, { wait: '0' })).json.status).to.equal('QueuedJob');
      await endJob(api.store, id);
      expect((await api.get(`/v1/jobs/${id}`, caller.key, { wait: '30' })).json.status).to.equal('CompletedJob');
    });

    it('D84: above 30 seconds is 400', async () => {
      const caller = await api.addCaller();
      const id = await submit(caller);
      for (const wait of ['30.1', '-1', 'x', '', '1e1']) {
        const answer = await api.get(`/v1/jobs/${id}`, caller.key, { wait });
        expectRefused(answer, 400, 'bad_request', 'Bad Request: wait must be a number from 0 to 30');
      }
    });

    it('ends its subscription when the caller leaves', async () => {
      const caller = await api.addCaller();
      const id = await submit(caller);
      const gone = new AbortController();
      const call = fetch(`${api.url}/v1/jobs/${id}?wait=30&x_api_key=${caller.key}`, { signal: gone.signal });
      await until(async () => (await watchers(id)) === 1, 5, 'the subscription');
      gone.abort();
      await call.catch(() => 'gone');
      await until(async () => (await watchers(id)) === 0, 5, 'the end of the subscription');
    });
  });

  async function watchers(id: string): Promise<number> {
    const channel = `{trawl}:changed:${id}`;
    const reply = await api.redis.connection.send(['PUBSUB', 'NUMSUB', channel]);
    return Number((reply as unknown[])[1]);
  }
});
