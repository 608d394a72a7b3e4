import { expect } from 'chai';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { type ApiCaller, aFilm, startApi, type TestApi } from '../support/api.ts';
import { completed, holder, lead, startNext, theJob } from '../support/record.ts';
import { until } from '../support/until.ts';

const film = 'https://example.com/film.mp4';
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('the routes that cost a credit', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.stop());
  const money = async (caller: ApiCaller) => {
    const { balances } = await readSnapshot(api.store, caller.account);
    return [balances.credits_consumed, balances.held];
  };
  const lines = async (caller: ApiCaller) => {
    const seen = await until(async () => (await readLines(api.store, caller.account, 50)).reverse(), 5, 'lines');
    return seen.map((line) => [line.endpoint, line.status, line.credits]);
  };

  for (const path of ['/v1/video/download', '/api/v1/video/download', '/v1/audio/download', '/api/v1/audio/download']) {
    it(`video-answer audio-answer D1 D13: GET ${path} answers 202 with only job_id, and Location`, async () => {
      const caller = await api.addCaller();
      const answer = await api.get(path, caller.key, { query: film });
      expect(answer.status).to.equal(202);
      expect(Object.keys(answer.json)).to.deep.equal(['job_id']);
      expect(answer.json.job_id).to.match(uuid);
      expect(answer.headers.get('location')).to.equal(`/v1/jobs/${answer.json.job_id}`);
      expect(answer.headers.get('x-credits-held')).to.equal('1');
      expect(answer.headers.get('cache-control')).to.equal('no-store');
    });
  }

  it('billing-2 D25: a job is logged as 202 without a credit and as 201 with one, and charged once', async () => {
    const caller = await api.addCaller();
    const began = performance.now();
    const { json } = await api.get('/v1/video/download', caller.key, { query: film });
    await lead(api.store, holder);
    while ((await theJob(api.store, json.job_id)).attempt === 0) await startNext(api.store);
    api.store.advance(1500);
    await settleJob(api.store, holder, await theJob(api.store, json.job_id), completed);
    const tookMs = Math.ceil(performance.now() - began);
    await until(async () => (await lines(caller)).length === 2, 5, 'two lines');
    expect((await lines(caller)).toSorted()).to.deep.equal([
      ['GET /v1/video/download', 201, 1],
      ['GET /v1/video/download', 202, 0],
    ]);
    const [paid] = await readLines(api.store, caller.account, 1);
    expect(paid?.duration_ms).to.be.within(1500, 1501 + tookMs);
    expect(await money(caller)).to.deep.equal([1, 0]);
  });

  it('job-args D22: args shows the parameters with defaults and is_async, and no secret', async () => {
    const caller = await api.addCaller();
    const params = { query: film, webhook_url: 'https://example.com/hook', webhook_authorization: 'Bearer hush-hush' };
    const { json } = await api.get('/v1/video/download', caller.key, params);
    const job = await api.get(`/v1/jobs/${json.job_id}`, caller.key);
    expect(job.json.args).to.deep.equal({
      query: film,
      download_type: 'audio_video',
      video_quality: 'best',
      video_format: 'mp4',
      webhook_url: 'https://example.com/hook',
      webhook_authorization: '***',
      is_async: true,
    });
    const audio = await api.get('/v1/audio/download', caller.key, {
      query: film,
      max_duration: '2.5',
      is_async: 'false',
    });
    const { args } = (await api.get(`/v1/jobs/${audio.json.job_id}`, caller.key)).json;
    expect(args).to.deep.equal({
      query: film,
      download_type: 'audio',
      max_duration: 2.5,
      audio_quality: 'best',
      audio_format: 'mp3',
      is_async: true,
    });
  });

  it('D4 D96: POST takes a JSON body, which wins over the query', async () => {
    const caller = await api.addCaller();
    const answer = await api.call('POST', '/v1/video/download', {
      key: caller.key,
      params: { query: 'nonsense', video_quality: '480p' },
      body: { query: film, max_duration: 3 },
    });
    expect(answer.status).to.equal(202);
    const { args } = (await api.get(`/v1/jobs/${answer.json.job_id}`, caller.key)).json;
    expect(args).to.deep.include({ query: film, video_quality: '480p', max_duration: 3 });
  });

  it('error-413 limit-size D4: a body above 16 KiB is 413 before every other check, and one just below is read', async () => {
    const big = { a: 'x'.repeat(17_000) };
    const answer = await api.call('POST', '/v1/video/download', { key: 'wrong', body: big });
    expect([answer.status, answer.json, answer.headers.get('x-error-code')]).to.deep.equal([
      413,
      { error: 'Payload Too Large' },
      'payload_too_large',
    ]);
    const chunked = await fetch(`${api.url}/v1/video/download`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      duplex: 'half',
      body: new Blob([JSON.stringify(big)]).stream(),
    });
    expect(chunked.status).to.equal(413);
    const caller = await api.addCaller();
    const fits = await api.call('POST', '/v1/video/download', {
      key: caller.key,
      body: { video_quality: 'x', a: 'x'.repeat(16_000) },
    });
    expect(fits.json.error).to.match(/^Bad Request: query/);
  });

  const broken: [name: string, body: string, type: string][] = [
    ['cut JSON', '{"query":', 'application/json'],
    ['a number', '7', 'application/json'],
    ['a list', '[]', 'application/json'],
    ['null', 'null', 'application/json'],
    ['deep nesting', '['.repeat(5000), 'application/json'],
    ['a form', `query=${film}`, 'application/x-www-form-urlencoded'],
    ['text', 'x', 'text/plain'],
    ['UTF-16', '{}', 'application/json; charset=utf-16'],
  ];
  for (const [name, body, type] of broken) {
    it(`D4 D77: ${name} as a body is 400 after the key was judged, and starts nothing`, async () => {
      const caller = await api.addCaller();
      const headers = { 'content-type': type };
      const answer = await api.call('POST', '/v1/video/download', { key: caller.key, body, headers });
      expect([answer.status, answer.headers.get('x-error-code')]).to.deep.equal([400, 'bad_request']);
      expect(answer.json.error).to.match(/^Bad Request: the body/);
      const unknown = await api.call('POST', '/v1/video/download', { key: 'wrong', body, headers });
      expect(unknown.status).to.equal(401);
      expect((await api.get('/v1/jobs', caller.key)).json.jobs).to.deep.equal([]);
    });
  }

  it('D3: HEAD is 405 with Allow and a prefetch 400, and neither starts anything', async () => {
    const caller = await api.addCaller();
    for (const path of ['/v1/video/download', '/v1/audio/download', '/v1/media/metadata']) {
      const head = await api.call('HEAD', path, { key: caller.key, params: { query: film } });
      expect([head.status, head.headers.get('allow')]).to.deep.equal([405, 'GET, POST']);
      const prefetch = await api.call('GET', path, {
        key: caller.key,
        params: { query: film },
        headers: { 'sec-purpose': 'prefetch;prerender' },
      });
      expect([prefetch.status, prefetch.headers.get('x-error-code')]).to.deep.equal([400, 'bad_request']);
    }
    expect(await money(caller)).to.deep.equal([0, 0]);
  });

  it('D12: an Idempotency-Key gives the same job once, and 409 with other parameters', async () => {
    const caller = await api.addCaller();
    const { key } = caller;
    const once = (query: string) =>
      api.call('GET', '/v1/video/download', { key, params: { query }, headers: { 'idempotency-key': 'a1' } });
    const [first, second] = await Promise.all([once(film), once(film)]);
    expect(first.json).to.deep.equal(second.json);
    expect(await money(caller)).to.deep.equal([0, 1]);
    const other = await once(`${film}?x`);
    expect([other.status, other.headers.get('x-error-code')]).to.deep.equal([409, 'idempotency_conflict']);
    const headers = { 'idempotency-key': 'x'.repeat(300) };
    const odd = await api.call('GET', '/v1/video/download', { key, params: { query: film }, headers });
    expect(odd.json.error).to.match(/^Bad Request: Idempotency-Key/);
  });

  it('error-402 D43: an empty balance and an unpaid invoice are 402 on credit endpoints and retry only', async () => {
    const caller = await api.addCaller({ stats: true });
    const { json } = await api.get('/v1/video/download', caller.key, { query: film });
    await api.call('DELETE', `/v1/jobs/${json.job_id}`, { key: caller.key });
    await setAccount(api.store, caller.account, { invoice: 'unpaid' });
    for (const path of ['/v1/video/download', '/v1/audio/download', '/v1/media/metadata']) {
      const answer = await api.get(path, caller.key, { query: film });
      expect([answer.status, answer.json]).to.deep.equal([402, { error: 'Payment required' }]);
    }
    expect((await api.call('POST', `/v1/jobs/${json.job_id}/retry`, { key: caller.key })).status).to.equal(402);
    for (const path of ['/v1/usage', '/v1/jobs', `/v1/jobs/${json.job_id}`, '/v1/stats?engine=video']) {
      expect((await api.get(path, caller.key)).status, path).to.equal(200);
    }
  });

  describe('synchronous metadata', () => {
    afterEach(() => api.inspect(() => ({ metadata: aFilm })));

    it('price-metadata billing-1 metadata-answer: answers 200 with the 19 fields and charges one credit, logged once', async () => {
      const caller = await api.addCaller();
      const answer = await api.get('/v1/media/metadata', caller.key, { query: film });
      expect([answer.status, answer.json]).to.deep.equal([200, { metadata: aFilm }]);
      expect(await money(caller)).to.deep.equal([1, 0]);
      expect(await lines(caller)).to.deep.equal([['GET /v1/media/metadata', 200, 1]]);
      const [entry] = await readLedger(api.store, caller.account, 1);
      expect(entry).to.deep.include({ kind: 'charge', balance: 'credits' });
    });

    const ends: [code: string, status: number, error: RegExp][] = [
      ['deleted', 404, /deleted/],
      ['video_unavailable', 404, /unavailable/],
      ['private', 400, /^Bad Request: .*private/],
      ['age_restricted', 400, /^Bad Request: .*age/],
      ['unsupported_url', 400, /^Bad Request: .*not supported/],
      ['address_not_allowed', 400, /^Bad Request: .*address/],
      ['source_error', 500, /server error/],
      ['nonsense', 500, /not known/],
    ];
    for (const [code, status, error] of ends) {
      it(`billing-5 metadata-closed D27 D44 D58: ${code} is ${status} with its sentence, and free`, async () => {
        const caller = await api.addCaller();
        api.inspect(() => ({ failure: { code } }));
        const answer = await api.get('/v1/media/metadata', caller.key, { query: film });
        expect(answer.status).to.equal(status);
        expect(answer.json.error).to.match(error);
        expect(await money(caller)).to.deep.equal([0, 0]);
        await until(async () => (await lines(caller)).length === 1, 5, 'the line');
        expect(await lines(caller)).to.deep.equal([['GET /v1/media/metadata', status, 0]]);
      });
    }

    it('a call is 503 and free while the inspector is full or away', async () => {
      const caller = await api.addCaller();
      api.inspect(() => ({ status: 503 }));
      const answer = await api.get('/v1/media/metadata', caller.key, { query: film });
      expect([answer.status, answer.headers.get('x-error-code')]).to.deep.equal([503, 'unavailable']);
      expect(answer.headers.get('retry-after')).to.match(/^\d+$/);
      expect(await money(caller)).to.deep.equal([0, 0]);
    });

    it('D41: a caller that disconnects before the answer is not charged', async () => {
      const caller = await api.addCaller();
      const asked = Promise.withResolvers<void>();
      const go = Promise.withResolvers<void>();
      api.inspect(async () => {
        asked.resolve();
        await go.promise;
        return { metadata: aFilm };
      });
      const gone = new AbortController();
      const call = fetch(`${api.url}/v1/media/metadata?query=${film}&x_api_key=${caller.key}`, { signal: gone.signal });
      await asked.promise;
      expect(await money(caller)).to.deep.equal([0, 1]);
      gone.abort();
      await call.catch(() => 'gone');
      await until(async () => (await money(caller))[1] === 0, 5, 'the hold to end');
      go.resolve();
      expect(await money(caller)).to.deep.equal([0, 0]);
    });

    it('D41: a hold past its deadline is released by the sweep, and its late charge is refused', async () => {
      const caller = await api.addCaller();
      api.inspect(async () => {
        api.store.advance(66_000);
        await sweepRecord(api.store, { job: 1e12, line: 1e12 });
        return { metadata: aFilm };
      });
      const answer = await api.get('/v1/media/metadata', caller.key, { query: film });
      expect(answer.status).to.equal(500);
      expect(await money(caller)).to.deep.equal([0, 0]);
    });

    it('D12: a repeat is 409 while the first call runs, and afterwards the same answer without another charge', async () => {
      const caller = await api.addCaller();
      const go = Promise.withResolvers<void>();
      const asked = Promise.withResolvers<void>();
      api.inspect(async () => {
        asked.resolve();
        await go.promise;
        return { metadata: aFilm };
      });
      const options = { key: caller.key, params: { query: film }, headers: { 'idempotency-key': 'm1' } };
      const first = api.call('GET', '/v1/media/metadata', options);
      await asked.promise;
      expect((await api.call('GET', '/v1/media/metadata', options)).status).to.equal(409);
      go.resolve();
      expect((await first).status).to.equal(200);
      const again = await api.call('GET', '/v1/media/metadata', options);
      expect([again.status, again.json]).to.deep.equal([200, { metadata: aFilm }]);
      expect(await money(caller)).to.deep.equal([1, 0]);
    });

    it('global-is_async D2: is_async answers 202 with a job of its own endpoint', async () => {
      const caller = await api.addCaller();
      const answer = await api.get('/v1/media/metadata', caller.key, { query: film, is_async: 'true' });
      expect(answer.status).to.equal(202);
      const { endpoint, args } = (await api.get(`/v1/jobs/${answer.json.job_id}`, caller.key)).json;
      expect([endpoint, args]).to.deep.equal(['/v1/media/metadata', { query: film, is_async: true }]);
    });
  });
});
