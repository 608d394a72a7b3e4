import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { runGet } from '../../src/client/get.ts';
import { usualLimits } from '../../src/client/patience.ts';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import { anotherKey } from '../support/api.ts';
import { type CallerCommand, printedRows, startCommand } from '../support/caller.ts';
import { type FaultyLink, startFaultyLink } from '../support/faulty-link.ts';
import { freePort } from '../support/free-port.ts';
import { look } from '../support/media.ts';
import type { AccountOptions } from '../support/record.ts';
import { type Customer, makeService, type Service } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';

/** What takes the bar away. */
const clear = '\r\x1b[K';

describe('trawl get', function () {
  this.timeout(240_000);
  const service: Service = makeService({ TRAWL_WORKERS: '2' });
  let films: Source;
  let link: FaultyLink;
  let customer: Customer;
  let folder: string;
  const started: CallerCommand[] = [];
  const start = async (env: Readonly<Record<string, string>> = {}) => {
    const port = await freePort();
    // Links to files lead through the faulty link too.
    await service.start({ TRAWL_PUBLIC_URL: link.url, TRAWL_PORT: String(port), ...env });
    link.lead(`http://127.0.0.1:${port}`);
  };
  before(async () => {
    [films, link] = await Promise.all([startSource(), startFaultyLink()]);
    await start();
  });
  after(async () => {
    await service.close();
    await link.stop();
    await films.stop();
  });
  beforeEach(async () => {
    customer = await service.aCustomer();
    folder = mkdtempSync(join(service.folder, 'caller-'));
  });
  afterEach(async () => {
    link.mend();
    for (const { process, ended } of started.splice(0)) {
      process.kill('SIGKILL');
      await ended;
    }
  });

  const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}, input = '') => {
    const settings = { TRAWL_API_URL: link.url, TRAWL_API_KEY: customer.key, ...env };
    const command = startCommand(['get', ...args], folder, settings, input);
    started.push(command);
    return command;
  };
  const jobs = () =>
    service.withStore(
      async (store) => (await listJobs(store, customer.account, { status: undefined, limit: 100, after: null })).jobs,
    );
  const hashOf = (path: string) =>
    createHash('sha256')
      .update(readFileSync(join(folder, path)))
      .digest('hex');
  const isCharged = async () => service.checkLedger(customer.account, await jobs());
  const otherCustomer = async (wanted: AccountOptions) => ({ TRAWL_API_KEY: (await service.aCustomer(wanted)).key });

  it('fetches a file into the current folder, prints its path and shows plain lines of progress', async () => {
    writeFileSync(join(folder, 'clip.mp4'), 'mine');
    const got = run([`${films.url}/films/clip.mp4`]);
    expect([await got.ended, got.out()]).to.deep.equal([0, 'clip (1).mp4\n'], got.err());
    expect(readFileSync(join(folder, 'clip.mp4'), 'utf8')).to.equal('mine');
    expect(statSync(join(folder, 'clip (1).mp4')).size).to.be.above(1000);
    expect(got.err())
      .to.match(/clip\.mp4: save, 90%\n/)
      .and.not.contain('\x1b');
    expect(
      link.calls.filter(({ path }) => path.startsWith('/files/')).map(({ headers }) => headers['x-api-key']),
    ).to.deep.equal([undefined]);
  });

  it('D31: fetches a part of a source', async () => {
    const got = run([`${films.url}/films/clip.mp4`, '--start', '1.3', '--end', '3.1']);
    expect([await got.ended, got.out()]).to.deep.equal([0, 'clip.mp4\n'], got.err());
    expect(look(join(folder, 'clip.mp4')).duration).to.be.closeTo(1.8, 0.5);
    await isCharged();
  });

  it('fetches a list from standard input and tells a script of each file', async () => {
    const list = `# films\n\n${films.url}/films/clip.mp4\n  ${films.url}/films/tail.mp4  \n${films.url}/status/404\n`;
    const got = run(['-', '--json', '--audio', '--parallel', '3', '--output', 'sound/'], {}, list);
    expect(await got.ended, got.err()).to.equal(1);
    const rows = printedRows(got).sort((one, other) => (one.query < other.query ? -1 : 1));
    expect(rows.map(({ query, status, path }) => [query.slice(films.url.length), status, path])).to.deep.equal([
      ['/films/clip.mp4', 'CompletedJob', 'sound/clip.mp3'],
      ['/films/tail.mp4', 'CompletedJob', 'sound/tail.mp3'],
      ['/status/404', 'NotFound', null],
    ]);
    for (const { path, sha256, bytes } of rows.slice(0, 2)) {
      expect([hashOf(path!), statSync(join(folder, path!)).size]).to.deep.equal([sha256, bytes]);
    }
    expect(rows[2]).to.include({ bytes: null, sha256: null, error_code: 'deleted' });
    expect(got.err()).to.contain('/status/404: The source says that this content does not exist or was deleted\n');
    await isCharged();
  });

  /** A feed, as podcasts have one. */
  const feedOf = (names: readonly string[]) => {
    const items = names.map((name) => `<item><title>x</title><link>${films.url}/films/${name}</link></item>`);
    const text = `<?xml version="1.0"?><rss><channel><title>x</title>${items.join('')}</channel></rss>`;
    return `${films.url}/raw?type=text/xml&text=${encodeURIComponent(text)}`;
  };

  it('fetches the first entries of a playlist, and makes one batch when the answer to its request is lost', async () => {
    link.loseAnswers(/^\/v1\/batches$/, 1);
    const got = run([feedOf(['clip.mp4', 'tail.mp4', 'silent.mp4']), '--playlist', '2', '--parallel', '2', '--json']);
    expect(await got.ended, got.err()).to.equal(0);
    const rows = printedRows(got);
    expect(rows.map(({ query, path }) => [query.slice(films.url.length), path]).sort()).to.deep.equal([
      ['/films/clip.mp4', 'clip.mp4'],
      ['/films/tail.mp4', 'tail.mp4'],
    ]);
    for (const { path, sha256 } of rows) expect(hashOf(path!)).to.equal(sha256);
    expect((await jobs()).map(({ id }) => id).sort()).to.deep.equal(rows.map(({ job_id }) => job_id).sort());
    await isCharged();
    expect(films.asked).not.to.include('/films/silent.mp4');
  });

  it('cancels every job of a playlist on Ctrl-C, also those that it has not asked about yet', async () => {
    const held = ['1', '2', '3', '4'].map((n) => `../held/clip.mp4?${n}`);
    const release = films.hold();
    const got = run([feedOf(held), '--playlist', '4', '--parallel', '1', '--json']);
    await until(async () => (await jobs()).some(({ status }) => status === 'Running'), 30, 'a job runs');
    got.process.kill('SIGINT');
    expect(await got.ended, got.err()).to.equal(130);
    release();
    expect((await jobs()).map(({ error_code }) => error_code)).to.deep.equal(held.map(() => 'cancelled'));
    await isCharged();
  });

  it('tells of a playlist that cannot be read, or that costs more than is left', async () => {
    const lost = run([`${films.url}/status/404`, '--playlist', '2', '--json']);
    expect(await lost.ended).to.equal(1);
    expect(printedRows(lost)[0]).to.include({ job_id: null, error_code: 'not_found' });
    const poor = await otherCustomer({ credits: 1 });
    const tooMany = run([feedOf(['clip.mp4', 'tail.mp4']), '--playlist', '2', '--json'], poor);
    expect(await tooMany.ended).to.equal(1);
    expect(printedRows(tooMany)).to.have.length(1);
    expect(printedRows(tooMany)[0]).to.include({ job_id: null, error_code: 'payment_required' });
  });

  it('makes one job when the answer to its request is lost, and goes on where a broken link cut the file', async () => {
    link.loseAnswers(/^\/v1\/video\/download/, 2);
    let had = 0;
    link.cutFiles(2, () => {
      const { size } = statSync(join(folder, 'clip.mp4.part'));
      const isMore = size > had;
      if (isMore) had = size;
      return isMore;
    });
    const got = run([`${films.url}/films/clip.mp4`, '--json']);
    expect(await got.ended, got.err()).to.equal(0);
    const [row] = printedRows(got);
    expect([hashOf('clip.mp4'), readdirSync(folder).includes('clip.mp4.part')]).to.deep.equal([row!.sha256, false]);
    const ranges = link.calls.filter(({ path }) => path.startsWith('/files/')).map(({ headers }) => headers.range);
    expect(ranges[0]).to.equal(undefined);
    const starts = ranges.slice(1).map((range) => Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1]));
    expect(starts, ranges.join(' ')).to.have.length(2);
    expect(0 < starts[0]! && starts[0]! <= starts[1]! && starts[1]! < row!.bytes!, ranges.join(' ')).to.equal(true);
    expect((await jobs()).map(({ id }) => id)).to.deep.equal([row!.job_id]);
    await isCharged();
  });

  it('goes on with the job of a command that gave up before its answer came, which is charged once', async () => {
    link.loseAnswers(/^\/v1\/video\/download/, Number.POSITIVE_INFINITY);
    const film = `${films.url}/films/clip.mp4`;
    let said = '';
    const terminal = {
      ...{ out: () => {}, isWatched: false, env: { TRAWL_API_URL: link.url, TRAWL_API_KEY: customer.key } },
      err: (text: string) => {
        said += text;
      },
    };
    expect(await runGet([film], terminal, { ...usualLimits, firstMs: 500 }), said).to.equal(3);
    const [option = '', named = ''] = /(--idempotency-key) (\S+)/.exec(said)?.slice(1) ?? [];
    link.mend();
    const got = run([film, '--json', option, named]);
    expect(await got.ended, got.err()).to.equal(0);
    expect((await jobs()).map(({ id }) => id)).to.deep.equal([printedRows(got)[0]!.job_id]);
    await isCharged();
  });

  it('keeps no file whose checksum is wrong, after a second try', async () => {
    link.alterFiles();
    const got = run([`${films.url}/films/clip.mp4`, '--json']);
    expect(await got.ended).to.equal(1);
    expect(printedRows(got)[0]).to.include({ status: 'CompletedJob', path: null, error_code: 'checksum_mismatch' });
    expect(link.calls.filter(({ path }) => path.startsWith('/files/'))).to.have.length(2);
    expect(readdirSync(folder).filter((name) => name.startsWith('clip'))).to.deep.equal([]);
  });

  it('cancels its open jobs on Ctrl-C, those too whose answer is on its way', async () => {
    const release = films.hold();
    const got = run([`${films.url}/held/clip.mp4`, `${films.url}/held/tail.mp4`, '--json']);
    await until(async () => (await jobs()).length === 2, 20, 'two open jobs');
    got.process.kill('SIGINT');
    expect(await got.ended).to.equal(130);
    release();
    const told = printedRows(got).map(({ status, error_code }) => [status, error_code]);
    expect(told).to.deep.equal([
      ['Error', 'cancelled'],
      ['Error', 'cancelled'],
    ]);
    expect((await jobs()).map(({ error_code }) => error_code)).to.deep.equal(['cancelled', 'cancelled']);
    expect(readdirSync(folder).filter((name) => /clip|tail/.test(name))).to.deep.equal([]);
    await isCharged();
  });

  it('shows one bar on a terminal, and takes it away on Ctrl-C', async () => {
    const release = films.hold();
    const got = run([`${films.url}/held/clip.mp4`], {}, 'terminal');
    await until(() => got.out().endsWith('.   0%  inspect\x1b[K'), 20, 'a bar is shown');
    got.process.stdin.write('\x03');
    expect(await got.ended).to.equal(130);
    release();
    const [bar = '', ...rest] = got.out().split(`${clear}Interrupted: open jobs are cancelled\r\n`);
    expect([bar, ...rest].map((text) => text.includes('\n'))).to.deep.equal([false, false]);
    expect(rest[0] === '' || rest[0]?.endsWith(clear), rest[0]).to.equal(true);
    expect((await jobs()).map(({ error_code }) => error_code)).to.deep.equal(['cancelled']);
  });

  it('waits for a service that is restarted, and is charged once', async () => {
    const release = films.hold();
    const got = run([`${films.url}/held/clip.mp4`]);
    await until(() => got.err().includes(': inspect'), 20, 'the job has begun');
    link.lead(null);
    await service.stop();
    const calls = link.calls.length;
    await until(() => link.calls.length > calls + 1, 20, 'it asks again while nothing answers');
    await until(() => /clip\.mp4: service away, \d+%\n$/.test(got.err()), 20, 'it says that the service is away');
    await start();
    release();
    expect([await got.ended, got.out()], got.err()).to.deep.equal([0, 'clip.mp4\n']);
    expect(got.err()).to.match(/service away, \d+%\n(?:.*: (?!service away).*\n)+$/);
    await isCharged();
  });

  it('tells a refused key (3) from a refused call (1), each with the sentence of the service', async () => {
    const film = `${films.url}/films/clip.mp4`;
    const poor = await otherCustomer({ credits: 0 });
    const used = await service.withStore(async (store) => ({
      TRAWL_API_KEY: await anotherKey(store, customer.account, { total: 1 }),
    }));
    const suspended = await otherCustomer({ suspended: true });
    const told = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
      const got = run([...args, '--json'], env);
      const code = await got.ended;
      return [code, ...printedRows(got).map(({ error, error_code }) => `${error_code}: ${error}`)];
    };
    expect(await told([film, film], { TRAWL_API_KEY: 'wrong' })).to.deep.equal([
      3,
      'invalid_api_key: Invalid API Key',
      'invalid_api_key: Invalid API Key',
    ]);
    expect(await told([film], suspended)).to.deep.equal([3, 'forbidden: Forbidden']);
    expect(await told([film], poor)).to.deep.equal([1, 'payment_required: Payment required']);
    expect(await told(['ftp://example.com/x'])).to.deep.equal([
      1,
      'bad_request: Bad Request: query must be an http or https URL',
    ]);
    await service.ask(used.TRAWL_API_KEY, `/v1/video/download?query=${film}`);
    expect(await told([film], used)).to.deep.equal([
      1,
      'key_quota_exceeded: Rate limit exceeded for the API key: quota total',
    ]);
  });

  it('waits as long as a rate limit says', async () => {
    const slow = await otherCustomer({ perSecond: 1 });
    const got = run([`${films.url}/films/clip.mp4`], slow);
    expect([await got.ended, got.out()], got.err()).to.deep.equal([0, 'clip.mp4\n']);
  });
});
