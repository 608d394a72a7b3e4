import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import { aFilm } from '../api.ts';
import { allCalls, film, unknownId } from '../calls.ts';
import { anAccount, anotherKey, storeOf } from '../record.ts';
import { startTestServer } from '../redis.ts';
import { startRole } from '../role-process.ts';
import { type Campaign, fuzz } from './campaign.ts';
import { converse, fill, oddText, requestBytes, statusesOf } from './http-bytes.ts';
import { expectStable, residentBytes } from './process-memory.ts';

const parameters =
  'query fields soft_fail is_async x_api_key limit cursor status view engine path max_duration download_type video_quality video_format audio_quality audio_format webhook_url webhook_authorization exp sig'.split(
    ' ',
  );
const values = fc.oneof(
  fc.constantFrom(
    film,
    'video',
    'audio',
    'true',
    '0',
    '1',
    'best',
    '720p',
    'mp4',
    '61.5',
    '/v1/video/download',
    'held,credits.given',
  ),
  fc.constantFrom(
    'https://hook.example/x',
    'http://127.0.0.1/',
    'http:///x',
    'https://a\\@b/',
    'Bearer x',
    unknownId,
    '{job}',
    '{key}',
    'QueuedJob',
  ),
  oddText,
);
const name = fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...parameters) }, oddText);
const encoded = (text: fc.Arbitrary<string>) =>
  fc.oneof(
    { weight: 5, arbitrary: text.map((raw) => encodeURIComponent(raw).replaceAll(/%7B(\w+)%7D/g, '{$1}')) },
    text,
  );
const pair = fc.oneof(
  { weight: 9, arbitrary: fc.tuple(encoded(name), encoded(values)).map((both) => both.join('=')) },
  fc.constantFrom(
    'wait=0.1',
    'wait=-1',
    'wait=x',
    `query=${film}`,
    'x_api_key={key}',
    '&',
    '=',
    'a[b]=c',
    '__proto__[a]=b',
  ),
);
const paths = [...new Set(allCalls.map(({ path }) => path)), '/', '/v1', '/files/x', '//', '/v1/jobs/%ff'];
const path = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...paths, ...paths.map((each) => each.replaceAll(unknownId, '{job}'))) },
  oddText,
);
const query = fc.array(pair, { maxLength: 5 }).map((pairs) => (pairs.length === 0 ? '' : `?${pairs.join('&')}`));
const json = fc.oneof(
  fc
    .dictionary(name, fc.oneof(values, fc.jsonValue({ maxDepth: 2 })), { maxKeys: 5 })
    .map((body) => JSON.stringify({ query: film, ...body })),
  fc.json({ maxDepth: 4 }),
  oddText,
);
const request = requestBytes({
  methods: ['GET', 'GET', 'POST', 'DELETE', 'HEAD', 'OPTIONS', 'PUT', 'CONNECT', 'TRACE'],
  targets: fc.tuple(path, query).map((parts) => parts.join('')),
  headers: [
    ['x-api-key', fc.oneof({ weight: 5, arbitrary: fc.constant('{key}') }, oddText)],
    ['x-api-key', fc.constant('{key}')],
    ['Content-Type', fc.constantFrom('application/json', 'application/json; charset=utf-8', 'text/plain')],
    ['Idempotency-Key', fc.oneof(fc.constantFrom('a', 'b'), oddText)],
    ['Last-Event-ID', fc.oneof(fc.constantFrom('1', '99999999999999999'), oddText)],
    ['X-Forwarded-For', fc.oneof(fc.constantFrom('192.0.2.1', '::1', '1.2.3.4, 5.6.7.8'), oddText)],
    ['X-Request-Id', oddText],
    ['Sec-Purpose', fc.constant('prefetch')],
    ['Range', fc.constantFrom('bytes=0-', 'bytes=-1', 'bytes=a-b')],
    ['Accept-Encoding', oddText],
    ['Host', oddText],
  ],
  bodies: fc.oneof(fc.constant(''), json),
});

/** Runs of one account, whose 100 open jobs are then used up. */
const runsOfAccount = 400;
/** The longest wait that a changed byte can ask for, and some more. */
const hangMs = 45_000;

/** Sends bytes to the role `api`, which has a Redis and an inspector, for some time. */
export async function fuzzApi(ms: number): Promise<Campaign> {
  const redis = await startTestServer();
  const store = storeOf(redis.connection);
  const inspector = createServer((req, res) => {
    req
      .resume()
      .once('end', () =>
        res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ metadata: aFilm })),
      );
  });
  await new Promise<void>((resolve) => inspector.listen(0, '127.0.0.1', resolve));
  const role = await startRole('api', {
    ...{ TRAWL_REDIS_URL: redis.url, TRAWL_SECRET: randomBytes(32).toString('base64'), TRAWL_LOG_LEVEL: 'error' },
    ...{ TRAWL_PUBLIC_URL: 'http://trawl.test', TRAWL_AUTH_FAILURES: '1000000000', TRAWL_OBJECTS: 's3' },
    ...{ TRAWL_INSPECTOR_ADDRESS: `http://127.0.0.1:${(inspector.address() as AddressInfo).port}` },
    ...{ TRAWL_S3_BUCKET: 'none', TRAWL_S3_ENDPOINT: 'http://127.0.0.1:9', TRAWL_S3_REGION: 'none' },
    ...{ AWS_ACCESS_KEY_ID: 'none', AWS_SECRET_ACCESS_KEY: 'none' },
  });
  const { hostname, port } = new URL(role.url);
  const address = { host: hostname, port: Number(port) };
  const ask = (path: string, key: string) => fetch(role.url + path, { headers: { 'x-api-key': key } });
  const aCustomer = async () => {
    const { accountId } = await anAccount(store, { credits: 1_000_000, max_open: 100 });
    const key = await anotherKey(store, accountId);
    const { job_id: job } = (await (await ask(`/v1/video/download?query=${film}`, key)).json()) as { job_id: string };
    return { key, job };
  };
  let runs = 0;
  let customer = await aCustomer();
  const run = async (bytes: Buffer) => {
    if (++runs % runsOfAccount === 0) customer = await aCustomer();
    const said = await converse(address, fill(bytes, customer), hangMs);
    for (const status of statusesOf(said)) expect(status, said.slice(0, 1000)).to.be.within(100, 499);
    expect(role.output()).to.equal('');
    expect(role.process.exitCode).to.equal(null);
  };
  try {
    await fuzz({ name: 'api', input: request, run, hangMs: 2 * hangMs }, ms / 10);
    const warm = residentBytes(role.process.pid!);
    const campaign = await fuzz({ name: 'api', input: request, run, hangMs: 2 * hangMs }, ms);
    expect((await ask('/v1/usage', customer.key)).status, 'the next request').to.equal(200);
    expect((await role.probe('/readyz')).status).to.equal(200);
    expectStable(warm, residentBytes(role.process.pid!), 'the API');
    return campaign;
  } finally {
    await role.end('SIGKILL');
    inspector.closeAllConnections();
    await new Promise((resolve) => inspector.close(resolve));
    await redis.stop();
  }
}
