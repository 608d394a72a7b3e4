import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { runCommand as runGet } from '../../src/client/get.ts';
import { defaultPatience, type PatienceLimits } from '../../src/client/patience.ts';
import { printedRows } from '../support/caller.ts';
import { setUpCaller } from '../support/caller-scene.ts';
import { until } from '../support/until.ts';

describe('trawl get that leaves jobs unfinished', () => {
  const scene = setUpCaller();
  const run = (args: readonly string[]) => scene.run([...args, '--json']);

  const feedOf = (...paths: readonly string[]) => {
    const items = paths.map((path) => `<item><link>${scene.films.url}/${path}</link></item>`);
    const feed = `<?xml version="1.0"?><rss><channel><title>x</title>${items.join('')}</channel></rss>`;
    return `${scene.films.url}/raw?type=text/xml&text=${encodeURIComponent(feed)}`;
  };
  /** Repeats a command with the key that it named, and sees the same jobs, their files and one charge for each. */
  const repeat = async (args: readonly string[], said: string) => {
    const [option = '', named = ''] = /(--idempotency-key) (\S+)/.exec(said)?.slice(1) ?? [];
    expect(named, said).not.to.equal('');
    scene.link.mend();
    const again = run([...args, option, named]);
    expect(await again.ended, again.err()).to.equal(0);
    const rows = printedRows(again);
    expect((await scene.jobs()).map(({ id }) => id).sort()).to.deep.equal(rows.map(({ job_id }) => job_id).sort());
    for (const { path, sha256 } of rows) {
      const bytes = readFileSync(join(scene.folder, path!));
      expect(createHash('sha256').update(bytes).digest('hex')).to.equal(sha256);
    }
    await scene.checkCharges();
  };

  it('names the key of a playlist whose jobs it could not read any more', async () => {
    const args = [feedOf('films/clip.mp4', 'films/tail.mp4'), '--playlist', '2'];
    scene.link.refuse(/^\/v1\/batches\/./, Number.POSITIVE_INFINITY);
    const isRefused = () => scene.link.calls.some(({ path }) => path.startsWith('/v1/batches/'));
    const limits: PatienceLimits = {
      ...defaultPatience,
      get acceptedMs() {
        return isRefused() ? 0 : defaultPatience.acceptedMs;
      },
    };
    let said = '';
    const err = (text: string) => {
      said += text;
    };
    expect(await runGet(args, { out: () => {}, err, isWatched: false, env: scene.env }, limits), said).to.equal(3);
    expect(await scene.jobs()).to.have.length(2);
    await repeat(args, said);
  });

  it('keeps the file of a job that completed before Ctrl-C, and names its key', async () => {
    const release = scene.films.hold();
    scene.link.cutStreams(Number.POSITIVE_INFINITY);
    const args = [`${scene.films.url}/held/clip.mp4`];
    const got = run(args);
    await until(() => got.err().includes(': inspect'), 30, 'the job has begun');
    // From now on the command hears nothing of its job.
    scene.link.refuse(/^\/v1\/jobs\/[^/]+\/events/, Number.POSITIVE_INFINITY);
    await until(() => /service away, \d+%\n$/.test(got.err()), 20, 'its stream of events is refused');
    release();
    await until(
      async () => (await scene.jobs()).every(({ status }) => status === 'CompletedJob'),
      60,
      'the job completes',
    );
    got.process.kill('SIGINT');
    expect(await got.ended, got.err()).to.equal(130);
    expect(printedRows(got)[0]).to.include({ status: 'CompletedJob', path: null, error_code: 'cancelled' });
    await repeat(args, got.err());
  });

  it('names the key on Ctrl-C when a job of a playlist completed before its turn came', async () => {
    const release = scene.films.hold();
    const got = run([feedOf('held/clip.mp4', 'films/tail.mp4'), '--playlist', '2', '--parallel', '1']);
    const isDone = async () => (await scene.jobs()).some(({ status }) => status === 'CompletedJob');
    await until(isDone, 60, 'the second job completes');
    await until(() => got.err().includes('clip.mp4: inspect'), 30, 'the first job has begun');
    got.process.kill('SIGINT');
    expect(await got.ended, got.err()).to.equal(130);
    release();
    expect(printedRows(got).map(({ error_code }) => error_code)).to.deep.equal(['cancelled']);
    expect(got.err()).to.contain('--idempotency-key');
  });
});
