import { expect } from 'chai';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { type Answer, type ApiCaller, aFilm, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film, keyedCalls, unknownId } from '../support/calls.ts';
import { endJob } from '../support/job-steps.ts';
import { failed } from '../support/record.ts';
import { until } from '../support/until.ts';

/** The closed set of D70. */
const codes =
  'invalid_api_key inactive_api_key expired_api_key key_quota_exceeded rate_limited payment_required ip_blocked forbidden bad_request not_found method_not_allowed payload_too_large idempotency_conflict not_ended topup_incomplete internal_error unavailable'.split(
    ' ',
  );

/** A row of the contract's table of errors: how a caller meets it, with these parameters besides. */
interface Row {
  readonly status: number;
  readonly code: string;
  readonly error: string | RegExp;
  readonly meet: (api: TestApi, caller: ApiCaller, more: Record<string, string>) => Promise<Answer>;
}

const setAlias = (api: TestApi, caller: ApiCaller, change: object) =>
  setKey(api.store, caller.account, `k${caller.keyId}`, change);
const download = (api: TestApi, caller: ApiCaller, more: Record<string, string>) =>
  api.get('/v1/video/download', caller.key, { query: film, ...more });

const rows: Record<string, Row> = {
  'error-400 D6: a wrong parameter': {
    status: 400,
    code: 'bad_request',
    error: 'Bad Request: video_quality must be one of best, 1080p, 720p, 480p, 360p',
    meet: (api, caller, more) => download(api, caller, { video_quality: '4k', ...more }),
  },
  'audio-query error-400: a missing parameter': {
    status: 400,
    code: 'bad_request',
    error: 'Bad Request: query is required',
    meet: (api, caller, more) => api.get('/v1/audio/download', caller.key, more),
  },
  'error-401-invalid: no key': {
    status: 401,
    code: 'invalid_api_key',
    error: 'Invalid API Key',
    meet: (api, _, more) => api.get('/v1/usage', null, more),
  },
  'error-401-inactive: an inactive key': {
    status: 401,
    code: 'inactive_api_key',
    error: 'Inactive API Key',
    meet: async (api, caller, more) => {
      await setAlias(api, caller, { active: false });
      return api.get('/v1/usage', caller.key, more);
    },
  },
  'error-401-expired: an expired key': {
    status: 401,
    code: 'expired_api_key',
    error: 'Expired API Key',
    meet: async (api, caller, more) => {
      await setAlias(api, caller, { expires: 1 });
      return api.get('/v1/usage', caller.key, more);
    },
  },
  'error-401-quota: a reached quota': {
    status: 401,
    code: 'key_quota_exceeded',
    error: 'Rate limit exceeded for the API key: quota monthly',
    meet: async (api, caller, more) => {
      await setAlias(api, caller, { quotas: { monthly: 0 } });
      return download(api, caller, more);
    },
  },
  'error-402: no credit': {
    status: 402,
    code: 'payment_required',
    error: 'Payment required',
    meet: async (api, _, more) => download(api, await api.addCaller({ credits: 0 }), more),
  },
  'error-403-forbidden: a feature that is not enabled': {
    status: 403,
    code: 'forbidden',
    error: 'Forbidden',
    meet: (api, caller, more) => api.get('/v1/stats', caller.key, { engine: 'video', ...more }),
  },
  'error-404: an unknown job': {
    status: 404,
    code: 'not_found',
    error: 'Not Found',
    meet: (api, caller, more) => api.get(`/v1/jobs/${unknownId}`, caller.key, more),
  },
  'error-404: an unknown engine': {
    status: 404,
    code: 'not_found',
    error: 'Not Found',
    meet: async (api, _, more) =>
      api.get('/v1/stats', (await api.addCaller({ stats: true })).key, { engine: 'x', ...more }),
  },
  'an unknown route': {
    status: 404,
    code: 'not_found',
    error: 'Not Found',
    meet: (api, caller, more) => api.get('/v1/nothing', caller.key, more),
  },
  'another method': {
    status: 405,
    code: 'method_not_allowed',
    error: 'Method Not Allowed',
    meet: (api, caller, params) => api.call('PUT', '/v1/usage', { key: caller.key, params }),
  },
  'a job that has not ended': {
    status: 409,
    code: 'not_ended',
    error: 'The job has not ended yet',
    meet: async (api, caller, params) => {
      const { json } = await download(api, caller, {});
      return api.call('POST', `/v1/jobs/${json.job_id}/retry`, { key: caller.key, params });
    },
  },
  'an Idempotency-Key of another request': {
    status: 409,
    code: 'idempotency_conflict',
    error: 'This Idempotency-Key was used with other parameters',
    meet: async (api, caller, more) => {
      const ask = (params: Record<string, string>) =>
        api.call('GET', '/v1/video/download', { key: caller.key, params, headers: { 'idempotency-key': 'i' } });
      await ask({ query: `${film}?1` });
      return ask({ query: film, ...more });
    },
  },
  'error-413: a body that is too large': {
    status: 413,
    code: 'payload_too_large',
    error: 'Payload Too Large',
    meet: (api, caller, params) =>
      api.call('POST', '/v1/video/download', { key: caller.key, params, body: { a: 'x'.repeat(17_000) } }),
  },
  'error-429: too many calls': {
    status: 429,
    code: 'rate_limited',
    error: 'You have exceeded the per-minute rate limit on your subscription',
    meet: async (api, _, more) => {
      const { key } = await api.addCaller({ perMinute: 1 });
      await api.get('/v1/usage', key);
      return api.get('/v1/usage', key, more);
    },
  },
  'error-500: an inspector that answers something else': {
    status: 500,
    code: 'internal_error',
    error: 'Internal Error',
    meet: (api, caller, more) => {
      api.inspect(() => ({ nonsense: true }));
      return api.get('/v1/media/metadata', caller.key, { query: film, ...more });
    },
  },
  'error-503: an inspector that is away': {
    status: 503,
    code: 'unavailable',
    error: 'Service Unavailable',
    meet: (api, caller, more) => {
      api.inspect(() => ({ status: 503 }));
      return api.get('/v1/media/metadata', caller.key, { query: film, ...more });
    },
  },
};

describe('answers', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_AUTH_FAILURES: '1000000' });
  });
  afterEach(() => api.inspect(() => ({ metadata: aFilm })));
  after(() => api.stop());

  const used = async (caller: ApiCaller) => (await readSnapshot(api.store, caller.account)).balances.credits_consumed;

  for (const [name, { status, code, error, meet }] of Object.entries(rows)) {
    it(`billing-6 error-body D7 D70: ${name} answers ${status}, its sentence and ${code}, and bills nothing`, async () => {
      const caller = await api.addCaller();
      expectRefused(await meet(api, caller, {}), status, code, error);
      expect(codes).to.include(code);
      expect(await used(caller)).to.equal(0);
    });

    it(`billing-7 global-soft_fail rule-2 D8: ${name} under soft_fail answers 200 with the same body and x-original-status ${status}`, async () => {
      const caller = await api.addCaller();
      const answer = await meet(api, caller, { soft_fail: 'true' });
      expectRefused(answer, 200, code, error);
      expect(answer.headers.get('x-original-status')).to.equal(String(status));
      expect(await used(caller)).to.equal(0);
    });
  }

  it('D8: log and metrics show the real status under soft_fail, and a good answer is unchanged', async () => {
    const caller = await api.addCaller({ credits: 0 });
    await download(api, caller, { soft_fail: '1' });
    const usage = await api.get('/v1/usage', caller.key, { soft_fail: 'TRUE' });
    expect([usage.status, usage.headers.get('x-original-status')]).to.deep.equal([200, null]);
    expect(usage.json).to.have.property('remaining');
    await until(async () => (await readLines(api.store, caller.account, 9)).length === 2, 5, 'the lines');
    const statuses = (await readLines(api.store, caller.account, 9)).map(({ status }) => status);
    expect(statuses.sort()).to.deep.equal([200, 402]);
    const counted = await api.metrics.registry.metrics();
    expect(counted).to.match(/^trawl_http_requests_total\{route="video",status="402"\} \d+$/m);
  });

  it('D8 D96: soft_fail in the body of a POST turns a refusal into 200', async () => {
    const caller = await api.addCaller();
    const answer = await api.call('POST', '/v1/video/download', { key: caller.key, body: { soft_fail: true } });
    expectRefused(answer, 200, 'bad_request', 'Bad Request: query is required');
    expect(answer.headers.get('x-original-status')).to.equal('400');
  });

  it('D5 D77: a wrong soft_fail or is_async is 400 on every route, and starts nothing', async () => {
    const caller = await api.addCaller({ stats: true });
    const { job_id } = (await download(api, caller, {})).json;
    await endJob(api.store, job_id, failed);
    for (const { method, path } of keyedCalls) {
      for (const flag of ['soft_fail', 'is_async']) {
        const params = { query: film, engine: 'video', [flag]: 'yes' };
        const answer = await api.call(method, path.replace(unknownId, job_id), { key: caller.key, params });
        expectRefused(answer, 400, 'bad_request', `Bad Request: ${flag} must be true, false, 1 or 0`);
      }
    }
    expect((await api.get('/v1/jobs', caller.key)).json.jobs).to.have.length(1);
  });

  it('global-is_async D2: is_async is ignored on free routes', async () => {
    const caller = await api.addCaller({ stats: true });
    const { job_id } = (await download(api, caller, {})).json;
    for (const path of ['/v1/usage', '/v1/stats?engine=video', `/v1/jobs/${job_id}`, '/v1/jobs']) {
      const answer = await api.get(`${path}${path.includes('?') ? '&' : '?'}is_async=true`, caller.key);
      expect([answer.status, Object.keys(answer.json).includes('job_id')], path).to.deep.equal([200, false]);
    }
  });

  it('D5: a parameter given twice is 400, and an unknown one is ignored', async () => {
    const caller = await api.addCaller();
    const twice = await api.get(`/v1/video/download?query=${film}&query=${film}`, caller.key);
    expectRefused(twice, 400, 'bad_request', 'Bad Request: query must be a single value, given once');
    expect((await download(api, caller, { unknown: 'x', 'query[]': 'y' })).status).to.equal(202);
    const nested = await api.get('/v1/video/download', caller.key, { 'query[a]': film });
    expectRefused(nested, 400, 'bad_request', 'Bad Request: query is required');
  });

  describe('fields', () => {
    const filtered: [fields: string, body: object][] = [
      ['account.slug,api_key.quotas.daily', { account: { slug: '' }, api_key: { quotas: { daily: null } } }],
      [' held , remaining ', { remaining: 100, held: 0 }],
      ['held,nothing,account.nothing', { held: 0, account: {} }],
      ['packs.items.title', { packs: { items: [{ title: 'Pack 0' }, { title: 'Pack 1' }] } }],
      ['__proto__,constructor,toString,account.__proto__', { account: {} }],
    ];
    for (const [fields, body] of filtered) {
      it(`global-fields fields-* D9: ${fields} keeps the named fields alone, through objects and arrays`, async () => {
        const caller = await api.addCaller({ packs: [1, 1], credits: 98 });
        const { json } = await api.get('/v1/usage', caller.key, { fields });
        if (json.account?.slug) json.account.slug = '';
        expect(json).to.deep.equal(body);
      });
    }

    it('D9: fields never filter a job_id of a 202 or an error, and too long a list is 400', async () => {
      const caller = await api.addCaller();
      expect(Object.keys((await download(api, caller, { fields: 'nothing' })).json)).to.deep.equal(['job_id']);
      const error = await download(api, caller, { fields: 'job_id', video_quality: 'x' });
      expect(Object.keys(error.json)).to.deep.equal(['error']);
      const many = await download(api, caller, { fields: 'a,'.repeat(1025) });
      expectRefused(many, 400, 'bad_request', /^Bad Request: fields must be at most 2048 characters/);
    });

    it('fields-price D9: a filtered answer costs one credit, and its repeat with other fields none', async () => {
      const caller = await api.addCaller();
      const ask = (fields: string) => {
        const headers = { 'idempotency-key': 'f' };
        return api.call('GET', '/v1/media/metadata', { key: caller.key, params: { query: film, fields }, headers });
      };
      expect((await ask('metadata.title')).json).to.deep.equal({ metadata: { title: aFilm.title } });
      expect((await ask('metadata.ext')).json).to.deep.equal({ metadata: { ext: aFilm.ext } });
      expect(await used(caller)).to.equal(1);
    });
  });

  it('D12: a call that failed runs again with the same Idempotency-Key', async () => {
    const caller = await api.addCaller();
    const ask = () => {
      const headers = { 'idempotency-key': 'again' };
      return api.call('GET', '/v1/media/metadata', { key: caller.key, params: { query: film }, headers });
    };
    api.inspect(() => ({ failure: { code: 'source_error' } }));
    expect((await ask()).status).to.equal(500);
    api.inspect(() => ({ metadata: aFilm }));
    expect((await ask()).status).to.equal(200);
    expect(await used(caller)).to.equal(1);
  });
});
