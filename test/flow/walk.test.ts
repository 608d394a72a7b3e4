import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { plugins } from '../support/media.ts';
import { aFolder } from '../support/redis.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';
import { type RunningUp, startUp } from '../support/up.ts';

const day = 86_400;

describe('jobs through trawl up', () => {
  let folder: string;
  let remove: () => void;
  let source: Source;
  let up: RunningUp;
  let key: string;
  const clock = () => join(folder, 'clock');

  before(async () => {
    ({ folder, remove } = aFolder());
    source = await startSource();
    writeFileSync(clock(), '0');
    up = await startUp({
      TRAWL_DATA: join(folder, 'data'),
      TRAWL_CLOCK_FILE: clock(),
      TRAWL_EGRESS_ALLOW: '127.0.0.1:*',
      TRAWL_WORKERS: '1',
      TRAWL_YTDLP_PLUGINS: plugins,
    });
    key = (await until(() => /'x-api-key: (\S+)'/.exec(up.output()), 5, 'the sample key'))![1]!;
  });
  after(async () => {
    up?.process.kill('SIGTERM');
    await up?.ended;
    await source?.stop();
    remove();
  });

  const get = async (path: string) => {
    const answer = await fetch(up.url + path, { headers: { 'x-api-key': key } });
    return JSON.parse(await answer.text());
  };
  const begin = async (path: string): Promise<string> => (await get(path)).job_id;
  const end = (id: string, seconds = 40) =>
    until(
      async () => {
        const job = await get(`/v1/jobs/${id}`);
        return job.completed_at === null ? null : job;
      },
      seconds,
      `job ${id} ends`,
    );
  const objectsOf = (id: string) => join(folder, 'data', 'objects', id);
  let film: string;

  it('D20: a download ends as a file that its link gives, and costs one credit', async () => {
    film = await begin(`/v1/video/download?query=${source.url}/films/clip.mp4`);
    const job = await end(film);
    expect([job.status, job.progress, job.error]).to.deep.equal(['CompletedJob', 100, null]);
    const file = await fetch(job.result.response);
    const bytes = (await file.arrayBuffer()).byteLength;
    expect([file.status, bytes]).to.deep.equal([200, Number(file.headers.get('content-length'))]);
    expect(bytes).to.be.above(1000);
    expect(await get('/v1/usage')).to.include({ remaining: 99, held: 0 });
  });

  it('D2: asynchronous metadata ends as a job without a file, and costs one credit', async () => {
    const id = await begin(`/v1/media/metadata?is_async=true&query=${source.url}/films/clip.mp4`);
    const job = await end(id);
    expect([job.status, job.result.metadata.extractor]).to.deep.equal(['CompletedJob', 'generic']);
    expect(existsSync(objectsOf(id))).to.equal(false);
    expect(await get('/v1/usage')).to.include({ remaining: 98, held: 0 });
  });

  it('a site gets the fragment of the URL, the job and its metadata show it, and a direct link works with one', async () => {
    source.addPage('one', {
      info: { title: 'One', formats: [{ format_id: 'x', url: `${source.url}/films/clip.mp4` }] },
    });
    const rows = [
      [`${source.url}/app/#!/one`, 'One'],
      [`${source.url}/films/clip.mp4#t=10.5`, 'clip'],
    ] as const;
    for (const [query, title] of rows) {
      const path = `/v1/media/metadata?query=${encodeURIComponent(query)}`;
      expect((await get(path)).metadata).to.include({ title, original_url: query });
      const job = await end(await begin(path.replace('media/metadata', 'video/download')));
      expect([job.status, job.args.query]).to.deep.equal(['CompletedJob', query]);
      expect(job.result.metadata).to.include({ title, original_url: query });
    }
    expect(await get('/v1/usage')).to.include({ remaining: 94, held: 0 });
  });

  it('a film whose page has very long texts is delivered, and its metadata has them shortened', async () => {
    const long = '\u7535'.repeat(10_000);
    const formats = [{ format_id: 'x', url: `${source.url}/films/clip.mp4` }];
    const page = source.addPage('long', { info: { title: long, description: long, channel: long, formats } });
    const job = await end(await begin(`/v1/video/download?query=${page}`));
    expect([job.status, job.error]).to.deep.equal(['CompletedJob', null]);
    const { title, description } = job.result.metadata;
    expect(Buffer.byteLength(JSON.stringify(job.result.metadata))).to.be.at.most(16_000);
    for (const text of [title, description]) expect(text).to.match(/^\u7535{1000,}$/);
    expect(await get('/v1/usage')).to.include({ remaining: 93, held: 0 });
  });

  it('D16: the job of a missing film ends as NotFound and costs nothing', async () => {
    const job = await end(await begin(`/v1/video/download?query=${source.url}/status/404`));
    expect([job.status, job.error_code]).to.deep.equal(['NotFound', 'deleted']);
    expect(await get('/v1/usage')).to.include({ remaining: 93, held: 0 });
  });

  it('D24 D72 D89: a day later its file is gone, and a job that is still queued ends with queue_timeout', async () => {
    expect(existsSync(objectsOf(film))).to.equal(true);
    await begin(`/v1/video/download?query=${source.url}/hang`);
    const late = await begin(`/v1/video/download?query=${source.url}/films/clip.mp4`);
    writeFileSync(clock(), String(day + 60));
    const job = await end(late, 60);
    expect([job.status, job.error_code]).to.deep.equal(['Error', 'queue_timeout']);
    await until(() => !existsSync(objectsOf(film)), 30, 'the file is removed');
    expect((await get(`/v1/jobs/${film}`)).status).to.equal('CompletedJob');
  });
});
