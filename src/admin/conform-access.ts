import { randomBytes } from 'node:crypto';
import { makeAccountId, makeKey } from '../model/api-key.ts';
import { answered, type Check, check, headed, notVisible, refused, same, want } from './conform-check.ts';
import { type ConformClient, pick } from './conform-client.ts';

const unknownId = '00000000-0000-4000-8000-000000000000';
const creditPaths = ['/v1/video/download', '/v1/audio/download', '/v1/media/metadata'];
const tooLong = { query: 'x'.repeat(17_000) };

/** A key of the right form that nobody has. */
const strangeKey = makeKey(makeAccountId(randomBytes(16)), randomBytes(32));

/**
 * Checks that precede every route. Failed authentications are counted by address (D38), and enough of them block it: these
 * rows make five.
 */
export const accessChecks: readonly Check[] = [
  check('auth-1', 'The key is taken from the header x-api-key and from the parameter x_api_key', async (ask) => {
    answered(await ask.get('/v1/usage'), 200);
    answered(await ask.call('GET', '/v1/usage', { key: null, query: { x_api_key: ask.key } }), 200);
  }),
  check('auth-2', 'A missing, unknown or malformed key is 401 Invalid API Key', async (ask) => {
    for (const key of [null, strangeKey, 'nonsense']) {
      refused(await ask.call('GET', '/v1/usage', { key }), 'invalid_api_key');
    }
  }),
  notVisible('auth-3', 'A deactivated key is 401 Inactive API Key', 'it needs a key that is deactivated'),
  notVisible('auth-4', 'A key past its expiry date is 401 Expired API Key', 'it needs a key that has expired'),
  notVisible('D34', 'A reached key quota is 401', 'it needs a key whose quota is reached'),
  notVisible('D38', 'Twenty failed authentications block an address', 'it would block the address of this machine'),
  notVisible('D43', 'An empty balance is 402 where a call costs a credit', 'it needs an account without credits'),
  notVisible('D76', 'A suspended account is 403 everywhere', 'it needs an account that is suspended'),
  check('D11', 'The header wins over the parameter', async (ask) => {
    answered(await ask.call('GET', '/v1/usage', { query: { x_api_key: 'nonsense' } }), 200);
    refused(await ask.call('GET', '/v1/usage', { key: 'nonsense', query: { x_api_key: ask.key } }), 'invalid_api_key');
  }),
  check('D8', 'soft_fail answers an error with 200, its body unchanged, and x-original-status', async (ask) => {
    const missing = await ask.get(`/v1/jobs/${unknownId}`, { soft_fail: 'true' });
    refused(missing, 'not_found', undefined, 200);
    same(missing.headers.get('x-original-status'), '404', 'x-original-status');
    const wrong = await ask.get('/v1/video/download', { soft_fail: '1', query: 'nonsense' });
    refused(wrong, 'bad_request', /^Bad Request: query /, 200);
    same(wrong.headers.get('x-original-status'), '400', 'x-original-status');
  }),
  check('D10', 'The checks come in their order: size, key, parameters', async (ask) => {
    const path = '/v1/video/download';
    refused(await ask.call('POST', path, { key: 'nonsense', body: tooLong }), 'payload_too_large');
    refused(await ask.call('POST', path, { key: 'nonsense', body: { query: 'nonsense' } }), 'invalid_api_key');
  }),
  check(
    'D77',
    'Unknown routes are 404 with and without a key; methods are HEAD, OPTIONS 204, or 405 with Allow',
    methods,
  ),
  check('D3', 'HEAD and a prefetch start nothing, and nothing is cached', sideEffects),
  check('D13', 'The aliases of a path answer as it does, and none redirects', aliases),
  check('D7', 'Every error has x-error-code, a body of one field, and a request id', async (ask) => {
    const answers = await Promise.all([
      ask.get('/v1/jobs/nonsense'),
      ask.get(`/v1/jobs/${unknownId}`),
      ask.call('PUT', '/v1/usage'),
    ]);
    refused(answers[0], 'bad_request', /^Bad Request: id /);
    refused(answers[1], 'not_found');
    refused(answers[2], 'method_not_allowed');
    for (const answer of answers) headed(answer, 'x-request-id', /./);
  }),
  check('D37', "The plan's rates are told by the RateLimit headers of every answer", rates),
  check('D85', 'An altered result link is 403, without a key', async (ask) => {
    const query = `exp=4102444800&sig=${'A'.repeat(43)}`;
    refused(await ask.call('GET', `/files/${unknownId}/film.mp4`, { key: null, query }), 'forbidden');
  }),
];

async function methods(ask: ConformClient): Promise<void> {
  for (const key of [ask.key, null]) {
    refused(await ask.call('GET', '/v1/nonsense', { key }), 'not_found');
  }
  const head = await ask.call('HEAD', '/v1/usage');
  same([head.status, head.text], [200, ''], 'HEAD of the usage as');
  const options = await ask.call('OPTIONS', '/v1/usage', { key: null });
  same(options.status, 204, 'OPTIONS as');
  headed(options, 'allow', /\bGET\b/);
  const other = await ask.call('PUT', '/v1/usage');
  refused(other, 'method_not_allowed');
  headed(other, 'allow', /\bGET\b/);
}

async function sideEffects(ask: ConformClient): Promise<void> {
  for (const path of creditPaths) {
    const head = await ask.call('HEAD', path, { query: { query: ask.film } });
    same([head.status, head.headers.get('allow')], [405, 'GET, POST'], `HEAD of ${path} as`);
    const headers = { 'sec-purpose': 'prefetch' };
    refused(await ask.call('GET', path, { query: { query: ask.film }, headers }), 'bad_request', /^Bad Request/);
  }
  headed(await ask.get('/v1/usage'), 'cache-control', /\bno-store\b/);
}

async function aliases(ask: ConformClient): Promise<void> {
  for (const path of ['/v1/usage', '/api/v1/usage', '/api/usage', '/v1/jobs', '/api/v1/jobs']) {
    answered(await ask.get(path), 200);
  }
  for (const path of ['/v1/jobs', '/api/v1/jobs', '/jobs']) refused(await ask.get(`${path}/${unknownId}`), 'not_found');
  for (const path of creditPaths)
    refused(await ask.get(`/api${path}`), 'bad_request', 'Bad Request: query is required');
}

async function rates(ask: ConformClient): Promise<void> {
  const usage = await ask.get('/v1/usage');
  const policy = usage.headers.get('ratelimit-policy') ?? '';
  for (const [name, window] of [
    ['per_second', 'per-second'],
    ['per_minute', 'per-minute'],
  ]) {
    const limit = pick(usage.json, `rate_limit.${name}`);
    const wanted = limit === null ? `no ${window} in RateLimit-Policy` : `"${window}";q=${limit} in RateLimit-Policy`;
    const told = limit === null ? !policy.includes(`"${window}"`) : policy.includes(`"${window}";q=${limit};`);
    want(told, wanted, policy);
    if (limit !== null) headed(usage, 'ratelimit', new RegExp(`"${window}";r=`));
  }
}
