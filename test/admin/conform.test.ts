import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { runCommand as runConform } from '../../src/admin/conform.ts';
import { accessChecks } from '../../src/admin/conform-access.ts';
import { accountChecks } from '../../src/admin/conform-account.ts';
import { makeConformClient } from '../../src/admin/conform-client.ts';
import { jobChecks } from '../../src/admin/conform-jobs.ts';
import { mediaChecks } from '../../src/admin/conform-media.ts';
import { requestChecks } from '../../src/admin/conform-request.ts';
import { isEnded, type Job } from '../../src/model/job.ts';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import { type Alter, alterIf, alterJson, withAlteringProxy } from '../support/altering-proxy.ts';
import { type ApiCaller, aFilm, startApi, type TestApi } from '../support/api.ts';
import { endJob, runJob } from '../support/job-steps.ts';
import { trawl } from '../support/operator.ts';
import { completed, theJob } from '../support/record.ts';
import { read, root } from '../support/tree.ts';
import { until } from '../support/until.ts';

const filmUrl = 'https://example.com/film.mp4';
const checks = [accessChecks, requestChecks, accountChecks, jobChecks, mediaChecks].flat();
const needFilm = checks.filter(({ credits }) => credits !== null).map(({ id }) => id);

describe('trawl conform', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_AUTH_FAILURES: '1000' });
  });
  after(() => api.stop());

  const aCaller = (wanted = {}) => api.addCaller({ credits: 20, packs: [3], stats: true, perSecond: 900, ...wanted });
  const jobsOf = async (caller: ApiCaller): Promise<readonly Job[]> => {
    const { jobs } = await listJobs(api.store, caller.account, { status: undefined, limit: 100, after: null });
    return jobs;
  };
  const usage = async (caller: ApiCaller) => {
    const { total_used, held } = (await api.get('/v1/usage', caller.key)).json;
    return { total_used, held };
  };

  it('has rows of docs/contract.md alone, which spend at most 5 credits together', () => {
    const known = [...read('docs/contract.md').matchAll(/^\| ([\w-]+) \|/gm)].map(([, id]) => id);
    expect(known).to.include.members(checks.map(({ id }) => id));
    expect(new Set(checks.map(({ id }) => id)).size).to.equal(checks.length);
    expect(checks.reduce((sum, { credits }) => sum + (credits ?? 0), 0)).to.be.within(1, 5);
  });

  it('finds no row that fails here, spends nothing without a media URL, and leaves no job open', async () => {
    const caller = await aCaller();
    const { code, out, err } = await conform(['--base-url', `${api.url}/`, '--key', caller.key]);
    expect({ code, err }, out).to.deep.equal({ code: 0, err: '' });
    const lines = out.split('\n');
    expect(lines[0]).to.equal(
      `${checks.length} rows of the contract at ${api.url}, account ${caller.slug}: at most 0 credits are spent.`,
    );
    expect(lines.slice(2, -3).map((line) => line.split(/ {2,}/)[0])).to.deep.equal(checks.map(({ id }) => id));
    expect(lines.at(-2)).to.match(/^\d{2} ok, 0 fails, \d+ not judged$/);
    expect(lines).to.include(`${'D23'.padEnd(15)}  not judged: it needs --media-url`);
    expect(await usage(caller)).to.deep.equal({ total_used: 0, held: 0 });
    const jobs = await jobsOf(caller);
    expect(jobs.map(({ error_code }) => error_code)).to.deep.equal(jobs.map(() => 'cancelled'));
    expect(out).not.to.contain(caller.key);
  });

  it('judges the rows that need a media URL, for as many credits as it announces', async () => {
    const caller = await aCaller();
    const end = deliverAll(api, caller);
    const ran = await conform(['--base-url', api.url, '--key', caller.key, '--media-url', filmUrl, '--json']);
    await end();
    expect(ran.code, ran.out).to.equal(0);
    const { ok, rows } = JSON.parse(ran.out);
    expect([ok, ran.out.trimEnd().includes('\n')]).to.deep.equal([true, false]);
    const judged = rows.filter((row: { verdict: string }) => row.verdict === 'ok').map((row: { id: string }) => row.id);
    expect(judged).to.include.members(needFilm);
    expect(ran.err).to.match(/at most 4 credits are spent\.\n$/);
    expect(await usage(caller)).to.deep.equal({ total_used: 4, held: 0 });
    for (const job of await jobsOf(caller)) expect(job.delivered === null || job.removed_at !== null).to.equal(true);
  });

  const broken: [id: string, title: string, alter: Alter][] = [
    ['auth-2', 'lets an unknown key in', alterIf(/usage/, 401, (it) => Object.assign(it, { status: 200, body: '{}' }))],
    [
      'auth-1',
      'does not take a key as a parameter',
      alterIf(/x_api_key/, 200, (it) => Object.assign(it, { status: 401 })),
    ],
    ['D8', 'does not mask under soft_fail', alterIf(/soft_fail/, 200, (it) => Object.assign(it, { status: 404 }))],
    [
      'D10',
      'judges the key before the size of a body',
      alterIf(/download/, 413, (it) => Object.assign(it, { status: 401 })),
    ],
    ['D7', 'answers errors without a code', alterIf(/./, 404, (it) => delete it.headers['x-error-code'])],
    [
      'D6',
      'names no parameter in a refusal',
      alterIf(/download/, 400, (it) => Object.assign(it, { body: '{"error":"Bad Request"}' })),
    ],
    ['D3', 'lets answers be cached', alterIf(/./, 200, (it) => delete it.headers['cache-control'])],
    ['D13', 'redirects an alias', alterIf(/^\/api/, 200, (it) => Object.assign(it, { status: 307 }))],
    ['D1', 'sends no Location', alterIf(/download/, 202, (it) => delete it.headers.location)],
    ['D37', 'sends no rate limits', alterIf(/usage/, 200, (it) => delete it.headers['ratelimit-policy'])],
    ['jobs-answer', 'leaves out a field of a job', alterJson(/jobs\//, (job) => delete job.progress)],
    ['usage-answer', 'writes a number as text', alterJson(/usage/, (it) => Object.assign(it, { remaining: '5' }))],
    [
      'D47',
      'adds up the balances wrongly',
      alterJson(/usage/, (it) => Object.assign(it, { remaining: Number(it.remaining) + 1 })),
    ],
    [
      'D22',
      'shows the authorization of a webhook',
      alterJson(/jobs\//, (job) => Object.assign(job.args ?? {}, { webhook_authorization: 'hush-hush' })),
    ],
    [
      'D16',
      'calls a cancelled job completed',
      alterJson(/jobs\//, (job) => Object.assign(job, { status: 'CompletedJob' })),
    ],
    [
      'D12',
      'starts a job again for a repeated Idempotency-Key',
      alterJson(/download/, (it) => Object.assign(it, { job_id: crypto.randomUUID() })),
    ],
    ['D51', 'knows every engine', alterIf(/stats/, 404, (it) => Object.assign(it, { status: 200 }))],
    ['D84', 'never ends an event stream', alterIf(/events/, 200, (it) => Object.assign(it, { body: ':\n\n' }))],
  ];
  for (const [id, title, alter] of broken) {
    it(`${id} fails when a deployment ${title}`, async () => {
      const caller = await aCaller();
      const verdict = await withAlteringProxy(api.url, alter, (url) => judge(id, url, caller));
      expect(verdict, JSON.stringify(verdict)).to.include({ verdict: 'fails' });
      expect(await judge(id, api.url, caller)).to.deep.equal({ verdict: 'ok' });
    });
  }

  it('prints the wanted and the seen answer, without the key, and exits with 1 when a row fails', async () => {
    const caller = await aCaller();
    const alter = alterIf(/jobs\/nonsense/, 400, (it) =>
      Object.assign(it, { status: 500, body: `{"error":"${caller.key}"}` }),
    );
    const { code, out } = await withAlteringProxy(api.url, alter, (url) =>
      conform(['--base-url', url, '--key', caller.key]),
    );
    expect([code, out.match(/^\d+ ok, (\d+) fails/m)?.[1]], out).to.deep.equal([1, '3']);
    expect(out).to.contain(
      'D14              fails: wanted 400, saw 500 {"error":"***"} (An unknown job is 404, an id that is no UUID 400)\n',
    );
    expect(out).not.to.contain(caller.key);
  });

  it('waits and asks again when the rate limit answers 429', async () => {
    const caller = await aCaller();
    let refusedOnce = false;
    const alter: Alter = (it) => {
      if (!refusedOnce) Object.assign(it, { status: 429, headers: { ...it.headers, 'retry-after': '0' } });
      refusedOnce = true;
    };
    expect(await withAlteringProxy(api.url, alter, (url) => judge('D48', url, caller))).to.deep.equal({
      verdict: 'ok',
    });
    expect(refusedOnce).to.equal(true);
  });

  it('leaves rows unjudged that need a credit when the account has none', async () => {
    const caller = await aCaller({ credits: 0, packs: [] });
    expect(await judge('D1', api.url, caller)).to.deep.equal({
      verdict: 'not judged',
      why: 'the account has no credit left to hold',
    });
    expect((await judge('usage-answer', api.url, caller))?.verdict).to.equal('ok');
  });

  it('shows its progress on a terminal and removes it at the end', async () => {
    const caller = await aCaller();
    const { err } = await conform(['--base-url', api.url, '--key', caller.key], true);
    expect(err).to.contain(`\r\x1b[K1/${checks.length} auth-1 `);
    expect(err.endsWith('\r\x1b[K')).to.equal(true);
  });

  it('exits with 1 when no server answers, or the key is refused', async () => {
    const gone = await withAlteringProxy(
      api.url,
      () => {},
      async (url) => url,
    );
    const nobody = await conform(['--base-url', gone, '--key', 'k']);
    expect(nobody).to.include({ code: 1, out: '' });
    expect(nobody.err).to.match(/^Nobody answers at http:\/\/127\.0\.0\.1:\d+\/?: .*ECONNREFUSED/);
    const wrong = await conform(['--base-url', api.url, '--key', 'nonsense', '--json']);
    expect([wrong.code, JSON.parse(wrong.out)]).to.deep.equal([
      1,
      { error: 'The usage of this key answers 401 Invalid API Key', code: 'invalid_api_key' },
    ]);
  });

  const misused: [string, string[], RegExp][] = [
    ['no key', ['--base-url', 'http://127.0.0.1'], /^--key is missing\nUsage: trawl conform --base-url URL --key KEY/],
    ['no URL', ['--key', 'secret-key'], /^--base-url is missing/],
    ['a URL of another kind', ['--base-url', 'ftp://a', '--key', 'k'], /^--base-url must be an http or https URL/],
    [
      'a login in a URL',
      ['--base-url', 'http://a', '--key', 'k', '--media-url', 'http://b:c@d'],
      /^--media-url must be/,
    ],
    ['a malformed key', ['--base-url', 'http://a', '--key', 'a b'], /^--key must be an API key/],
    ['a word too many', ['--base-url', 'http://a', '--key', 'k', 'secret-key'], /^There is a word too many/],
    ['an unknown option, without advice that fits no command', ['--nonsense'], /^Unknown option '--nonsense'\nUsage: /],
  ];
  for (const [title, args, sentence] of misused) {
    it(`exits with 2 and a sentence for ${title}`, async () => {
      const { code, out, err } = await conform(args);
      expect({ code, out }).to.deep.equal({ code: 2, out: '' });
      expect(err).to.match(sentence).and.not.contain('secret-key');
    });
  }

  it('prints its usage for --help', async () => {
    const { code, out, err } = await trawl(['conform', '--help']);
    expect({ code, err }).to.deep.equal({ code: 0, err: '' });
    expect(out).to.match(/^Usage: trawl conform --base-url URL --key KEY/);
  });

  it('cancels its open jobs and exits with 1 on SIGINT', async () => {
    const caller = await aCaller();
    // Nobody delivers the film here, so that the row which waits for it does not end.
    const args = ['conform', '--base-url', api.url, '--key', caller.key, '--media-url', filmUrl];
    const child = spawn(join(root, 'trawl'), args, { stdio: ['ignore', 'ignore', 'pipe'] });
    const ended = Promise.all([new Promise((resolve) => child.once('exit', resolve)), text(child.stderr)]);
    const isOpen = (job: Job) => !isEnded(job.status);
    await until(
      async () => (await jobsOf(caller)).some((job) => isOpen(job) && job.args.query === filmUrl),
      10,
      'a job',
    );
    child.kill('SIGINT');
    expect(await ended).to.deep.equal([1, 'It was broken off\n']);
    expect((await jobsOf(caller)).filter(isOpen)).to.deep.equal([]);
  });
});

async function conform(args: readonly string[], isWatched = false) {
  const said = { out: '', err: '' };
  const write = (to: 'out' | 'err') => (words: string) => {
    said[to] += words;
  };
  const code = await runConform(args, { out: write('out'), err: write('err'), isWatched, env: {} });
  return { code, ...said };
}

/** Judges one row alone. */
async function judge(id: string, url: string, { key }: ApiCaller) {
  const ask = makeConformClient({ url, key, mediaUrl: null }, new AbortController().signal);
  const verdict = await checks.find((one) => one.id === id)?.run(ask);
  await ask.tidy();
  return verdict;
}

/** Does the work of every job about the film, as a controller and its workers would, until that is ended. */
function deliverAll(api: TestApi, caller: ApiCaller): () => Promise<void> {
  let isOver = false;
  const done = until(
    async () => {
      const { jobs } = await listJobs(api.store, caller.account, { status: 'QueuedJob', limit: 100, after: null });
      for (const job of jobs) if (job.args.query === filmUrl) await deliver(api, job);
      return isOver;
    },
    15,
    'the run ends',
  );
  return async () => {
    isOver = true;
    await done;
  };
}

async function deliver({ store, objects }: TestApi, { id, endpoint }: Job): Promise<void> {
  if (endpoint === 'metadata') {
    await endJob(store, id, { ...completed, metadata: aFilm, delivered: null });
    return;
  }
  await runJob(store, id, { progress: 40 });
  const { attempt } = await theJob(store, id);
  const key = `${id}/${attempt}/file`;
  const delivered = {
    key,
    bytes: 5,
    sha256: 'a'.repeat(64),
    content_type: endpoint === 'audio' ? 'audio/mpeg' : 'video/mp4',
  };
  await objects.receive(await objects.permit(key, { bytes: delivered.bytes }), Readable.from(Buffer.from('bytes')));
  await endJob(store, id, { ...completed, metadata: aFilm, delivered });
}
