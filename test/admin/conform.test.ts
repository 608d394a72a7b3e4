import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { checks, runConform } from '../../src/admin/conform.ts';
import { makeConformClient } from '../../src/admin/conform-client.ts';
import { isEnded, type Job } from '../../src/model/job.ts';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import { aFilm, type Desk, startApi, type TestApi } from '../support/api.ts';
import { type Alter, alterIf, alterJson, through } from '../support/broken.ts';
import { trawl } from '../support/operator.ts';
import { completed, theJob } from '../support/record.ts';
import { read, root } from '../support/tree.ts';
import { until } from '../support/until.ts';
import { endJob, runJob } from '../support/work.ts';

const filmUrl = 'https://example.com/film.mp4';
const needFilm = checks.filter(({ credits }) => credits !== null).map(({ id }) => id);

describe('trawl conform', function () {
  this.timeout(120_000);
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_AUTH_FAILURES: '1000' });
  });
  after(() => api.stop());

  const aDesk = (wanted = {}) => api.desk({ credits: 20, packs: [3], stats: true, perSecond: 900, ...wanted });
  const jobsOf = async (desk: Desk): Promise<readonly Job[]> => {
    const { jobs } = await listJobs(api.store, desk.account, { status: undefined, limit: 100, after: null });
    return jobs;
  };
  const usage = async (desk: Desk) => {
    const { total_used, held } = (await api.get('/v1/usage', desk.key)).json;
    return { total_used, held };
  };

  it('each row is one of docs/contract.md, and all together spend at most 5 credits', () => {
    const known = [...read('docs/contract.md').matchAll(/^\| ([\w-]+) \|/gm)].map(([, id]) => id);
    expect(known).to.include.members(checks.map(({ id }) => id));
    expect(new Set(checks.map(({ id }) => id)).size).to.equal(checks.length);
    expect(checks.reduce((sum, { credits }) => sum + (credits ?? 0), 0)).to.be.within(1, 5);
  });

  it('finds nothing wrong here, spends nothing without a film, and leaves nothing open', async () => {
    const desk = await aDesk();
    const { code, out, err } = await conform(['--base-url', `${api.url}/`, '--key', desk.key]);
    expect({ code, err }, out).to.deep.equal({ code: 0, err: '' });
    const lines = out.split('\n');
    expect(lines[0]).to.equal(
      `${checks.length} rows of the contract at ${api.url}, account ${desk.slug}: at most 0 credits are spent.`,
    );
    expect(lines.slice(2, -3).map((line) => line.split(/ {2,}/)[0])).to.deep.equal(checks.map(({ id }) => id));
    expect(lines.at(-2)).to.match(/^\d{2} ok, 0 fails, \d+ not judged$/);
    expect(lines).to.include(`${'D23'.padEnd(15)}  not judged: it needs --media-url`);
    expect(await usage(desk)).to.deep.equal({ total_used: 0, held: 0 });
    const jobs = await jobsOf(desk);
    expect(jobs.map(({ error_code }) => error_code)).to.deep.equal(jobs.map(() => 'cancelled'));
    expect(out).not.to.contain(desk.key);
  });

  it('judges with a film what needs one, for as many credits as it says', async () => {
    const desk = await aDesk();
    const end = deliverAll(api, desk);
    const ran = await conform(['--base-url', api.url, '--key', desk.key, '--media-url', filmUrl, '--json']);
    await end();
    expect(ran.code, ran.out).to.equal(0);
    const { ok, rows } = JSON.parse(ran.out);
    expect([ok, ran.out.trimEnd().includes('\n')]).to.deep.equal([true, false]);
    const judged = rows.filter((row: { verdict: string }) => row.verdict === 'ok').map((row: { id: string }) => row.id);
    expect(judged).to.include.members(needFilm);
    expect(ran.err).to.match(/at most 4 credits are spent\.\n$/);
    expect(await usage(desk)).to.deep.equal({ total_used: 4, held: 0 });
    for (const job of await jobsOf(desk)) expect(job.delivered === null || job.removed_at !== null).to.equal(true);
  });

  const broken: [id: string, title: string, alter: Alter][] = [
    ['auth-2', 'lets an unknown key in', alterIf(/usage/, 401, (it) => Object.assign(it, { status: 200, body: '{}' }))],
    ['auth-1', 'does not know the parameter', alterIf(/x_api_key/, 200, (it) => Object.assign(it, { status: 401 }))],
    ['D8', 'does not mask under soft_fail', alterIf(/soft_fail/, 200, (it) => Object.assign(it, { status: 404 }))],
    ['D10', 'judges the key before the size', alterIf(/download/, 413, (it) => Object.assign(it, { status: 401 }))],
    ['D7', 'answers errors without a code', alterIf(/./, 404, (it) => delete it.headers['x-error-code'])],
    [
      'D6',
      'names no parameter',
      alterIf(/download/, 400, (it) => Object.assign(it, { body: '{"error":"Bad Request"}' })),
    ],
    ['D3', 'lets answers be cached', alterIf(/./, 200, (it) => delete it.headers['cache-control'])],
    ['D13', 'redirects an alias', alterIf(/^\/api/, 200, (it) => Object.assign(it, { status: 307 }))],
    ['D1', 'tells no Location', alterIf(/download/, 202, (it) => delete it.headers.location)],
    ['D37', 'tells no rates', alterIf(/usage/, 200, (it) => delete it.headers['ratelimit-policy'])],
    ['jobs-answer', 'leaves a field out', alterJson(/jobs\//, (job) => delete job.progress)],
    ['usage-answer', 'writes a number as text', alterJson(/usage/, (it) => Object.assign(it, { remaining: '5' }))],
    ['D47', 'counts wrongly', alterJson(/usage/, (it) => Object.assign(it, { remaining: Number(it.remaining) + 1 }))],
    [
      'D22',
      'shows the secret',
      alterJson(/jobs\//, (job) => Object.assign(job.args ?? {}, { webhook_authorization: 'hush-hush' })),
    ],
    [
      'D16',
      'calls a cancelled job completed',
      alterJson(/jobs\//, (job) => Object.assign(job, { status: 'CompletedJob' })),
    ],
    ['D12', 'starts it again', alterJson(/download/, (it) => Object.assign(it, { job_id: crypto.randomUUID() }))],
    ['D51', 'knows every engine', alterIf(/stats/, 404, (it) => Object.assign(it, { status: 200 }))],
    ['D84', 'ends no stream', alterIf(/events/, 200, (it) => Object.assign(it, { body: ':\n\n' }))],
  ];
  for (const [id, title, alter] of broken) {
    it(`${id} fails where a deployment ${title}`, async () => {
      const desk = await aDesk();
      const verdict = await through(api.url, alter, (url) => judge(id, url, desk));
      expect(verdict, JSON.stringify(verdict)).to.include({ verdict: 'fails' });
      expect(await judge(id, api.url, desk)).to.deep.equal({ verdict: 'ok' });
    });
  }

  it('says what it wanted and saw, and ends with 1, when a row fails', async () => {
    const desk = await aDesk();
    const alter = alterIf(/jobs\/nonsense/, 400, (it) =>
      Object.assign(it, { status: 500, body: `{"error":"${desk.key}"}` }),
    );
    const { code, out } = await through(api.url, alter, (url) => conform(['--base-url', url, '--key', desk.key]));
    expect([code, out.match(/^\d+ ok, (\d+) fails/m)?.[1]], out).to.deep.equal([1, '3']);
    expect(out).to.contain(
      'D14              fails: wanted 400, saw 500 {"error":"***"} (An unknown job is 404, an id that is no UUID 400)\n',
    );
    expect(out).not.to.contain(desk.key);
  });

  it('waits when the rate of the plan is used up', async () => {
    const desk = await aDesk();
    let refusedOnce = false;
    const alter: Alter = (it) => {
      if (!refusedOnce) Object.assign(it, { status: 429, headers: { ...it.headers, 'retry-after': '0' } });
      refusedOnce = true;
    };
    expect(await through(api.url, alter, (url) => judge('D48', url, desk))).to.deep.equal({ verdict: 'ok' });
    expect(refusedOnce).to.equal(true);
  });

  it('leaves unjudged what needs a credit that the account has not', async () => {
    const desk = await aDesk({ credits: 0, packs: [] });
    expect(await judge('D1', api.url, desk)).to.deep.equal({
      verdict: 'not judged',
      why: 'the account has no credit left to hold',
    });
    expect((await judge('usage-answer', api.url, desk))?.verdict).to.equal('ok');
  });

  it('shows how far it is only to a person who watches', async () => {
    const desk = await aDesk();
    const { err } = await conform(['--base-url', api.url, '--key', desk.key], true);
    expect(err).to.contain(`\r\x1b[K1/${checks.length} auth-1 `);
    expect(err.endsWith('\r\x1b[K')).to.equal(true);
  });

  it('refuses with 1 when nobody answers, or the key is of no use', async () => {
    const gone = await through(
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
      { error: 'The usage of this key answers 401 Invalid API Key', code: 'unavailable' },
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
    ['a key that is none', ['--base-url', 'http://a', '--key', 'a b'], /^--key must be an API key/],
    ['a word too many', ['--base-url', 'http://a', '--key', 'k', 'secret-key'], /^There is a word too many/],
    ['an unknown option', ['--nonsense'], /^Unknown option '--nonsense'/],
  ];
  for (const [title, args, sentence] of misused) {
    it(`ends with 2 and a sentence for ${title}`, async () => {
      const { code, out, err } = await conform(args);
      expect({ code, out }).to.deep.equal({ code: 2, out: '' });
      expect(err).to.match(sentence).and.not.contain('secret-key');
    });
  }

  it('helps as a command', async () => {
    const { code, out, err } = await trawl(['conform', '--help']);
    expect({ code, err }).to.deep.equal({ code: 0, err: '' });
    expect(out).to.match(/^Usage: trawl conform --base-url URL --key KEY/);
  });

  it('leaves nothing open when it is broken off', async () => {
    const desk = await aDesk();
    // Nobody delivers the film here, so that the row which waits for it does not end.
    const args = ['conform', '--base-url', api.url, '--key', desk.key, '--media-url', filmUrl];
    const child = spawn(join(root, 'trawl'), args, { stdio: ['ignore', 'ignore', 'pipe'] });
    const ended = Promise.all([new Promise((resolve) => child.once('exit', resolve)), text(child.stderr)]);
    const isOpen = (job: Job) => !isEnded(job.status);
    await until(async () => (await jobsOf(desk)).some((job) => isOpen(job) && job.args.query === filmUrl), 10, 'a job');
    child.kill('SIGINT');
    expect(await ended).to.deep.equal([1, 'It was broken off\n']);
    expect((await jobsOf(desk)).filter(isOpen)).to.deep.equal([]);
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
async function judge(id: string, url: string, { key }: Desk) {
  const ask = makeConformClient({ url, key, mediaUrl: null }, new AbortController().signal);
  const verdict = await checks.find((one) => one.id === id)?.run(ask);
  await ask.tidy();
  return verdict;
}

/** Does the work of every job about the film, as a controller and its workers would, until that is ended. */
function deliverAll(api: TestApi, desk: Desk): () => Promise<void> {
  let isOver = false;
  const done = until(
    async () => {
      const { jobs } = await listJobs(api.store, desk.account, { status: 'QueuedJob', limit: 100, after: null });
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
