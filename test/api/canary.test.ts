import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { findRecord } from '../../src/store/open-store.ts';
import { askOnce } from '../../src/store/redis/redis-client.ts';
import { type BlockingSource, startBlockingSource } from '../support/blocking-source.ts';
import { keyedCalls, unknownId } from '../support/calls.ts';
import { freePort } from '../support/free-port.ts';
import { trawl } from '../support/operator.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { processesIn, type RunningUp, startUp } from '../support/up.ts';

/** Letters and digits alone, so that no encoding but base64 and hex changes it. */
const authorization = 'CanaryAuthorization0123456789';
const cookie = 'CanaryCookie0123456789';
const cookieHead = '# Netscape HTTP Cookie File\n';
/** A public word that must be found: otherwise nothing was searched. */
const control = 'control0123456789';
const readers: Readonly<Record<string, readonly string[]>> = {
  string: ['GET'],
  hash: ['HGETALL'],
  list: ['LRANGE', '0', '-1'],
  set: ['SMEMBERS'],
  zset: ['ZRANGE', '0', '-1', 'WITHSCORES'],
  stream: ['XRANGE', '-', '+'],
};

describe('secrets', () => {
  let folder: string;
  let remove: () => void;
  let up: RunningUp;
  let source: BlockingSource;
  let key: string;
  let webhookSecret: string;
  let jar: ReturnType<typeof aFolder>;
  /** Everything that callers and operators were told, but for the one time at which each secret is shown. */
  const told: string[] = [];
  let metrics: string;
  let record: string;

  before(async () => {
    source = await startBlockingSource();
    ({ folder, remove } = aFolder());
    jar = aFolder();
    writeFileSync(
      join(jar.folder, '127.0.0.1.txt'),
      `${cookieHead}127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t${cookie}\n`,
    );
    const probe = await freePort();
    up = await startUp({
      TRAWL_DATA: folder,
      TRAWL_LOG_LEVEL: 'debug',
      TRAWL_PROBE_PORT: String(probe),
      TRAWL_COOKIES: jar.folder,
      TRAWL_EGRESS_ALLOW: '127.0.0.1:*',
      TRAWL_WORKERS: '1',
    });
    await until(() => up.output().includes('curl'), 5, 'the sample account');
    // Its alias stays readable in the record, unlike the parameters of a job that has ended.
    key = (await admin('key', 'create', 'sample', '--alias', control)).key;
    webhookSecret = (await admin('account', 'set', 'sample', '--webhook-secret', 'new')).webhook_secret;
    await admin('account', 'set', 'sample', '--stats', 'on');
    await callAll();
    await until(() => source.posts.length > 0, 20, 'a webhook');
    await until(() => source.gets.some((headers) => headers.cookie), 60, 'the site has been sent the cookie');
    await breakRedis();
    for (const line of ['key list sample', 'account show sample', 'log show sample', 'ledger show sample']) {
      told.push(JSON.stringify(await admin(...line.split(' '))));
    }
    const doctor = await trawl(['doctor', '--json'], { TRAWL_DATA: folder });
    told.push(doctor.out + doctor.err);
    // A gauge shows what was last seen, which on a busy machine is a job that has just ended.
    metrics = await until(
      async () => {
        const text = await (await fetch(`http://127.0.0.1:${probe}/metrics`)).text();
        return /^trawl_oldest_unsettled_seconds 0$/m.test(text) ? text : '';
      },
      10,
      'no job is unsettled',
    );
    record = await dump();
    up.process.kill('SIGTERM');
    await up.ended;
  });
  after(async () => {
    up.process.kill('SIGKILL');
    await up.ended;
    await source.stop();
    await until(() => processesIn(folder).length === 0, 10, 'no process is left');
    remove();
    jar.remove();
  });

  const places: [where: string, read: () => string, control: () => string][] = [
    ['the output of the process at level debug', () => up.output(), () => '"text":"the role stops"'],
    [
      'answers, errors, lists, streams, OpenAPI and the output of admin and doctor',
      () => told.join('\n'),
      () => control,
    ],
    ['the metrics', () => metrics, () => 'trawl_http_requests_total{route="video"'],
    ['the keys and values of the record', () => record, () => control],
    ['any file of the data folder, the append-only file among them', () => filesOf(folder), () => control],
  ];
  for (const [where, read, known] of places) {
    it(`are nowhere in ${where}`, () => {
      const text = read();
      expect(text).to.contain(known());
      for (const [name, secret] of Object.entries({ key, authorization, webhookSecret, cookie })) {
        for (const spelling of spellings(secret))
          expect(text.includes(spelling), `${name} as ${spelling}`).to.equal(false);
      }
    });
  }

  it('are left out of metrics that show versions, durability and the time of jobs', () => {
    expect(metrics).to.match(/^trawl_build_info\{version="\d+\.\d+\.\d+",role="\w+"\} 1$/m);
    expect(metrics).to.match(/^trawl_yt_dlp_info\{version="20\d\d\.[\d.]+"\} 1$/m);
    expect(metrics).to.match(/^trawl_durability_relaxed 0$/m);
    expect(metrics).to.match(/^trawl_oldest_unsettled_seconds 0$/m);
    expect(metrics).to.match(/^trawl_job_seconds_count\{endpoint="[a-z]+",stage="queue"\} [1-9]/m);
  });

  it('reach the receiver of a webhook and the site, so they were in use', () => {
    const [post] = source.posts;
    expect(post?.authorization).to.equal(authorization);
    expect(post?.['webhook-signature']).to.match(/^v1,/);
    expect(source.gets.map((headers) => headers.cookie)).to.include(`session=${cookie}`);
  });

  async function admin(...line: string[]) {
    const { code, out } = await trawl(['admin', ...line, '--json'], { TRAWL_DATA: folder });
    expect(code, out).to.equal(0);
    return JSON.parse(out);
  }

  async function ask(path: string, options: RequestInit = {}, withKey = true): Promise<string> {
    const headers = { ...(withKey ? { 'x-api-key': key } : {}), ...options.headers };
    const answer = await fetch(up.url + path, { ...options, headers, redirect: 'manual' });
    const text = await answer.text();
    told.push(JSON.stringify([...answer.headers]), text);
    return text;
  }

  /** Every call with the secrets where they belong, and where callers put them by mistake. */
  async function callAll(): Promise<void> {
    const film = `${source.url}/film.mp4`;
    const hook = `webhook_url=${source.url}/hook&webhook_authorization=${authorization}`;
    const wanted = `query=${film}?${control}&${hook}`;
    const { job_id: id } = JSON.parse(await ask(`/v1/video/download?${wanted}`));
    await ask(`/v1/audio/download?${wanted}&x_api_key=${key}`, {}, false);
    const body = JSON.stringify({ query: film, webhook_authorization: authorization, x_api_key: key });
    await ask('/v1/video/download', { method: 'POST', headers: { 'content-type': 'application/json' }, body }, false);
    await ask('/v1/video/download', {
      method: 'POST',
      body: `${body}}`,
      headers: { 'content-type': 'application/json' },
    });
    const repeat = { headers: { 'idempotency-key': authorization } };
    for (const query of [film, film, `${film}?other`]) await ask(`/v1/video/download?query=${query}&${hook}`, repeat);
    for (const { method, path } of keyedCalls) {
      await ask(`${path}?${wanted}&engine=video&x_api_key=${key}`, { method });
      await ask(`${path}?soft_fail=maybe&fields=${authorization}&status=${key}&cursor=${key}`, { method });
      await ask(`${path.replace(unknownId, key)}?query=${key}&engine=${key}&view=${key}`, { method });
    }
    for (const path of [
      '/openapi.json',
      `/v1/jobs/${id}`,
      '/v1/jobs',
      `/${key}`,
      `/files/${key}/${key}?sig=${key}`,
      '/%ff',
    ]) {
      await ask(path, { headers: { 'x-request-id': 'canary', cookie: key, authorization: `Bearer ${key}` } });
    }
    await ask('/v1/usage', { headers: { 'x-api-key': `${key}x` } });
    await ask(`/v1/jobs/${id}`, { method: 'DELETE' });
    await ask(`/v1/jobs/${id}/retry`, { method: 'POST' });
    await ask(`/v1/jobs/${id}/events`);
  }

  /** Has redis die in the middle of calls, so that what it was told could stand in an error. */
  async function breakRedis(): Promise<void> {
    const [pid = 0] = processesIn(join(folder, 'redis'));
    const path = `/v1/video/download?query=${source.url}/film&webhook_url=${source.url}/hook&webhook_authorization=${authorization}`;
    const calls = Array.from({ length: 20 }, () => ask(path));
    process.kill(pid, 'SIGKILL');
    await Promise.all(calls);
    const isBack = async () => JSON.parse(await ask('/v1/usage')).remaining !== undefined;
    await until(isBack, 10, 'redis is back');
  }

  /** Every key of the record with its value, as text. */
  async function dump(): Promise<string> {
    const url = (await findRecord({ redisUrl: null, data: folder })) ?? '';
    const names = (await askOnce(url, ['KEYS', '*'])) as string[];
    const values = names.map(async (name) => {
      const type = String(await askOnce(url, ['TYPE', name]));
      // Some last for seconds only, and may be over since the names were read.
      if (type === 'none') return '';
      const [command, ...rest] = readers[type]!;
      return JSON.stringify([name, await askOnce(url, [command!, name, ...rest])]);
    });
    return (await Promise.all(values)).join('\n');
  }
});

/** The ways in which a secret could be written down. */
function spellings(secret: string): string[] {
  // Of a key, the part that is the secret; of the others, all.
  const core = /^trawl_\w{12}_(\w{43})/.exec(secret)?.[1] ?? secret;
  return [core, Buffer.from(core).toString('hex'), ...[0, 1, 2].map((shift) => base64Inside(core, shift))];
}

/** The part of the base64 that a secret after so many other bytes always gives. */
function base64Inside(secret: string, shift: number): string {
  const text = Buffer.from(`${'x'.repeat(shift)}${secret}`).toString('base64');
  return text.slice(4, -4);
}

function filesOf(folder: string): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1')).join('\n');
}
