import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { runCommand as runGet } from '../../src/client/get.ts';
import { defaultPatience } from '../../src/client/patience.ts';
import { printedRows } from '../support/caller.ts';
import { setUpCaller } from '../support/caller-scene.ts';
import { look } from '../support/media.ts';
import { type AccountOptions, anotherKey } from '../support/record.ts';
import { until } from '../support/until.ts';

/** What takes the bar away. */
const clear = '\r\x1b[K';

describe('trawl get', () => {
  const scene = setUpCaller();

  const hashOf = (path: string) =>
    createHash('sha256')
      .update(readFileSync(join(scene.folder, path)))
      .digest('hex');
  const otherCustomer = async (wanted: AccountOptions) => ({
    TRAWL_API_KEY: (await scene.service.aCustomer(wanted)).key,
  });

  it('fetches a file into the current folder, prints its path and shows plain lines of progress', async () => {
    writeFileSync(join(scene.folder, 'clip.mp4'), 'mine');
    const got = scene.run([`${scene.films.url}/films/clip.mp4`]);
    expect([await got.ended, got.out()]).to.deep.equal([0, 'clip (1).mp4\n'], got.err());
    expect(readFileSync(join(scene.folder, 'clip.mp4'), 'utf8')).to.equal('mine');
    expect(statSync(join(scene.folder, 'clip (1).mp4')).size).to.be.above(1000);
    expect(got.err())
      .to.match(/clip\.mp4: save, 90%\n/)
      .and.not.contain('\x1b');
    expect(
      scene.link.calls.filter(({ path }) => path.startsWith('/files/')).map(({ headers }) => headers['x-api-key']),
    ).to.deep.equal([undefined]);
  });

  it('D31: fetches a part of a source', async () => {
    const got = scene.run([`${scene.films.url}/films/clip.mp4`, '--start', '1.3', '--end', '3.1']);
    expect([await got.ended, got.out()]).to.deep.equal([0, 'clip.mp4\n'], got.err());
    expect((await look(join(scene.folder, 'clip.mp4'))).duration).to.be.closeTo(1.8, 0.5);
    await scene.checkCharges();
  });

  it('fetches a list from standard input and tells a script of each file', async () => {
    const list = `# films\n\n${scene.films.url}/films/clip.mp4\n  ${scene.films.url}/films/tail.mp4  \n${scene.films.url}/status/404\n`;
    const got = scene.run(['-', '--json', '--audio', '--parallel', '3', '--output', 'sound/'], {}, list);
    expect(await got.ended, got.err()).to.equal(1);
    const rows = printedRows(got).sort((one, other) => (one.query < other.query ? -1 : 1));
    expect(rows.map(({ query, status, path }) => [query.slice(scene.films.url.length), status, path])).to.deep.equal([
      ['/films/clip.mp4', 'CompletedJob', 'sound/clip.mp3'],
      ['/films/tail.mp4', 'CompletedJob', 'sound/tail.mp3'],
      ['/status/404', 'NotFound', null],
    ]);
    for (const { path, sha256, bytes } of rows.slice(0, 2)) {
      expect([hashOf(path!), statSync(join(scene.folder, path!)).size]).to.deep.equal([sha256, bytes]);
    }
    expect(rows[2]).to.include({ bytes: null, sha256: null, error_code: 'deleted' });
    expect(got.err()).to.contain('/status/404: The source says that this content does not exist or was deleted\n');
    await scene.checkCharges();
  });

  /** A feed, as podcasts have one. */
  const feedOf = (names: readonly string[]) => {
    const items = names.map((name) => `<item><title>x</title><link>${scene.films.url}/films/${name}</link></item>`);
    const text = `<?xml version="1.0"?><rss><channel><title>x</title>${items.join('')}</channel></rss>`;
    return `${scene.films.url}/raw?type=text/xml&text=${encodeURIComponent(text)}`;
  };

  it('fetches the first entries of a playlist, and makes one batch when the answer to its request is lost', async () => {
    scene.link.loseAnswers(/^\/v1\/batches$/, 1);
    const got = scene.run([
      feedOf(['clip.mp4', 'tail.mp4', 'silent.mp4']),
      '--playlist',
      '2',
      '--parallel',
      '2',
      '--json',
    ]);
    expect(await got.ended, got.err()).to.equal(0);
    const rows = printedRows(got);
    expect(rows.map(({ query, path }) => [query.slice(scene.films.url.length), path]).sort()).to.deep.equal([
      ['/films/clip.mp4', 'clip.mp4'],
      ['/films/tail.mp4', 'tail.mp4'],
    ]);
    for (const { path, sha256 } of rows) expect(hashOf(path!)).to.equal(sha256);
    expect((await scene.jobs()).map(({ id }) => id).sort()).to.deep.equal(rows.map(({ job_id }) => job_id).sort());
    await scene.checkCharges();
    expect(scene.films.asked).not.to.include('/films/silent.mp4');
  });

  it('cancels every job of a playlist on Ctrl-C, also those that it has not asked about yet', async () => {
    const held = ['1', '2', '3', '4'].map((n) => `../held/clip.mp4?${n}`);
    const release = scene.films.hold();
    const got = scene.run([feedOf(held), '--playlist', '4', '--parallel', '1', '--json']);
    await until(async () => (await scene.jobs()).some(({ status }) => status === 'Running'), 30, 'a job runs');
    got.process.kill('SIGINT');
    expect(await got.ended, got.err()).to.equal(130);
    release();
    expect((await scene.jobs()).map(({ error_code }) => error_code)).to.deep.equal(held.map(() => 'cancelled'));
    await scene.checkCharges();
  });

  it('tells of a playlist that cannot be read, or that costs more than is left', async () => {
    const lost = scene.run([`${scene.films.url}/status/404`, '--playlist', '2', '--json']);
    expect(await lost.ended).to.equal(1);
    expect(printedRows(lost)[0]).to.include({ job_id: null, error_code: 'not_found' });
    const poor = await otherCustomer({ credits: 1 });
    const tooMany = scene.run([feedOf(['clip.mp4', 'tail.mp4']), '--playlist', '2', '--json'], poor);
    expect(await tooMany.ended).to.equal(1);
    expect(printedRows(tooMany)).to.have.length(1);
    expect(printedRows(tooMany)[0]).to.include({ job_id: null, error_code: 'payment_required' });
  });

  it('makes one job when the answer to its request is lost, and goes on where a broken link cut the file', async () => {
    scene.link.loseAnswers(/^\/v1\/video\/download/, 2);
    let had = 0;
    scene.link.cutFiles(2, () => {
      const { size } = statSync(join(scene.folder, 'clip.mp4.part'));
      const isMore = size > had;
      if (isMore) had = size;
      return isMore;
    });
    const got = scene.run([`${scene.films.url}/films/clip.mp4`, '--json']);
    expect(await got.ended, got.err()).to.equal(0);
    const [row] = printedRows(got);
    expect([hashOf('clip.mp4'), readdirSync(scene.folder).includes('clip.mp4.part')]).to.deep.equal([
      row!.sha256,
      false,
    ]);
    const ranges = scene.link.calls
      .filter(({ path }) => path.startsWith('/files/'))
      .map(({ headers }) => headers.range);
    expect(ranges[0]).to.equal(undefined);
    const starts = ranges.slice(1).map((range) => Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1]));
    expect(starts, ranges.join(' ')).to.have.length(2);
    expect(0 < starts[0]! && starts[0]! <= starts[1]! && starts[1]! < row!.bytes!, ranges.join(' ')).to.equal(true);
    expect((await scene.jobs()).map(({ id }) => id)).to.deep.equal([row!.job_id]);
    await scene.checkCharges();
  });

  it('goes on with the job of a command that gave up before its answer came, which is charged once', async () => {
    scene.link.loseAnswers(/^\/v1\/video\/download/, Number.POSITIVE_INFINITY);
    const film = `${scene.films.url}/films/clip.mp4`;
    let said = '';
    const terminal = {
      ...{ out: () => {}, isWatched: false, env: scene.env },
      err: (text: string) => {
        said += text;
      },
    };
    expect(await runGet([film], terminal, { ...defaultPatience, firstMs: 500 }), said).to.equal(3);
    const [option = '', named = ''] = /(--idempotency-key) (\S+)/.exec(said)?.slice(1) ?? [];
    scene.link.mend();
    const got = scene.run([film, '--json', option, named]);
    expect(await got.ended, got.err()).to.equal(0);
    expect((await scene.jobs()).map(({ id }) => id)).to.deep.equal([printedRows(got)[0]!.job_id]);
    await scene.checkCharges();
  });

  it('keeps no file whose checksum is wrong, after a second try', async () => {
    scene.link.alterFiles();
    const got = scene.run([`${scene.films.url}/films/clip.mp4`, '--json']);
    expect(await got.ended).to.equal(1);
    expect(printedRows(got)[0]).to.include({ status: 'CompletedJob', path: null, error_code: 'checksum_mismatch' });
    expect(scene.link.calls.filter(({ path }) => path.startsWith('/files/'))).to.have.length(2);
    expect(readdirSync(scene.folder).filter((name) => name.startsWith('clip'))).to.deep.equal([]);
  });

  it('cancels its open jobs on Ctrl-C, those too whose answer is on its way', async () => {
    const release = scene.films.hold();
    const got = scene.run([`${scene.films.url}/held/clip.mp4`, `${scene.films.url}/held/tail.mp4`, '--json']);
    await until(async () => (await scene.jobs()).length === 2, 20, 'two open jobs');
    got.process.kill('SIGINT');
    expect(await got.ended).to.equal(130);
    release();
    const told = printedRows(got).map(({ status, error_code }) => [status, error_code]);
    expect(told).to.deep.equal([
      ['Error', 'cancelled'],
      ['Error', 'cancelled'],
    ]);
    expect((await scene.jobs()).map(({ error_code }) => error_code)).to.deep.equal(['cancelled', 'cancelled']);
    expect(readdirSync(scene.folder).filter((name) => /clip|tail/.test(name))).to.deep.equal([]);
    await scene.checkCharges();
  });

  it('shows one bar on a terminal, and takes it away on Ctrl-C', async () => {
    const release = scene.films.hold();
    const got = scene.run([`${scene.films.url}/held/clip.mp4`], {}, 'terminal');
    await until(() => got.out().endsWith('.   0%  inspect\x1b[K'), 20, 'a bar is shown');
    got.process.stdin.write('\x03');
    expect(await got.ended).to.equal(130);
    release();
    const [bar = '', end = '', ...rest] = got.out().split(`${clear}Interrupted: open jobs are being cancelled\r\n`);
    expect([bar.includes('\n'), rest]).to.deep.equal([false, []]);
    const [drawn = '', said = ''] = end.split(`${scene.films.url}/held/clip.mp4: `);
    const [sentence, ...after] = said.split('\r\n');
    expect([sentence, after.length]).to.deep.equal(['cancelled, nothing is charged', 1]);
    for (const text of [drawn, ...after]) expect(text === '' || text.endsWith(clear), text).to.equal(true);
    expect((await scene.jobs()).map(({ error_code }) => error_code)).to.deep.equal(['cancelled']);
  });

  it('waits for a service that is restarted, and is charged once', async () => {
    const release = scene.films.hold();
    const got = scene.run([`${scene.films.url}/held/clip.mp4`]);
    await until(() => got.err().includes(': inspect'), 20, 'the job has begun');
    scene.link.lead(null);
    await scene.service.stop();
    const calls = scene.link.calls.length;
    await until(() => scene.link.calls.length > calls + 1, 20, 'it asks again while nothing answers');
    await until(() => /clip\.mp4: service away, \d+%\n$/.test(got.err()), 20, 'it says that the service is away');
    await scene.start();
    release();
    expect([await got.ended, got.out()], got.err()).to.deep.equal([0, 'clip.mp4\n']);
    expect(got.err()).to.match(/service away, \d+%\n(?:.*: (?!service away).*\n)+$/);
    await scene.checkCharges();
  });

  it('tells a refused key (3) from a refused call (1), each with the sentence of the service', async () => {
    const film = `${scene.films.url}/films/clip.mp4`;
    const poor = await otherCustomer({ credits: 0 });
    const used = await scene.service.withStore(async (store) => ({
      TRAWL_API_KEY: await anotherKey(store, scene.customer.account, { total: 1 }),
    }));
    const suspended = await otherCustomer({ suspended: true });
    const told = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
      const got = scene.run([...args, '--json'], env);
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
    await scene.service.ask(used.TRAWL_API_KEY, `/v1/video/download?query=${film}`);
    expect(await told([film], used)).to.deep.equal([
      1,
      'key_quota_exceeded: Rate limit exceeded for the API key: quota total',
    ]);
  });

  it('waits as long as a rate limit says', async () => {
    const slow = await otherCustomer({ perSecond: 1 });
    const got = scene.run([`${scene.films.url}/films/clip.mp4`], slow);
    expect([await got.ended, got.out()], got.err()).to.deep.equal([0, 'clip.mp4\n']);
  });
});
