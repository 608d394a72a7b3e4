import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { aFolder } from '../support/redis.ts';
import { credentials, startS3, type TestS3 } from '../support/s3.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';
import { processesIn, type RunningUp, startUp } from '../support/up.ts';

describe('trawl up with S3', () => {
  let s3: TestS3;
  let source: Source;
  let folder: string;
  let remove: () => void;
  let up: RunningUp;
  let key: string;
  const env = () => ({
    ...{ ...s3.env, TRAWL_DATA: folder, TRAWL_LOG_LEVEL: 'debug' },
    ...{ TRAWL_EGRESS_ALLOW: '127.0.0.1:*', TRAWL_WORKERS: '1' },
  });

  before(async () => {
    s3 = await startS3();
    source = await startSource();
    ({ folder, remove } = aFolder());
    up = await startUp(env());
    key = (await until(() => /'x-api-key: (\S+)'/.exec(up.output()), 5, 'the sample key'))![1]!;
  });
  after(async () => {
    up?.process.kill('SIGTERM');
    await up?.ended;
    await until(() => processesIn(folder).length === 0, 10, 'no process is left');
    await source?.stop();
    await s3?.stop();
    remove();
  });

  const get = async (path: string, method = 'GET') => {
    const answer = await fetch(up.url + path, { method, headers: { 'x-api-key': key } });
    return JSON.parse(await answer.text());
  };
  const begin = async (film: string): Promise<string> =>
    (await get(`/v1/video/download?query=${source.url}${film}`)).job_id;
  const end = (id: string) =>
    until(
      async () => {
        const job = await get(`/v1/jobs/${id}`);
        return job.completed_at === null ? null : job;
      },
      60,
      `job ${id} ends`,
    );
  let link: string;

  it('D68: a download ends as a file in the bucket that its link leads to, and costs one credit', async () => {
    const id = await begin('/films/clip.mp4');
    const job = await end(id);
    expect([job.status, job.error]).to.deep.equal(['CompletedJob', null]);
    expect(await s3.list()).to.deep.equal({ objects: [`${id}/1/media.mp4`], uploads: [] });
    link = job.result.response;
    const ours = await fetch(link, { redirect: 'manual' });
    const target = ours.headers.get('location') ?? '';
    expect([ours.status, new URL(target).origin]).to.deep.equal([307, s3.settings.s3Endpoint]);
    const file = await fetch(link);
    const bytes = Buffer.from(await file.arrayBuffer());
    expect([bytes.length, hash('sha256', bytes)]).to.deep.equal([job.result.bytes, job.result.sha256]);
    const head = await fetch(link, { method: 'HEAD' });
    for (const name of ['content-type', 'content-disposition', 'content-length']) {
      expect(file.headers.get(name)).to.equal(head.headers.get(name));
    }
    const part = await fetch(link, { headers: { range: 'bytes=1-4' } });
    expect([part.status, Buffer.from(await part.arrayBuffer())]).to.deep.equal([206, bytes.subarray(1, 5)]);
    expect(await get('/v1/usage')).to.include({ remaining: 99, held: 0 });
    await get(`/v1/jobs/${id}`, 'DELETE');
    expect((await fetch(link)).status).to.equal(410);
  });

  it('a job whose bucket goes away waits for it and is charged once', async () => {
    const restore = await s3.lose();
    const id = await begin('/films/clip.mp4');
    await until(async () => (await get(`/v1/jobs/${id}`)).stage === 'upload', 30, 'it uploads');
    expect(await get('/v1/usage')).to.include({ remaining: 99, held: 1 });
    await restore();
    expect((await end(id)).status).to.equal('CompletedJob');
    expect((await s3.list()).objects).to.include(`${id}/1/media.mp4`);
    expect(await get('/v1/usage')).to.include({ remaining: 98, held: 0 });
  });

  it('a job that ends without a file leaves nothing in the bucket, nor does a file that was removed', async () => {
    expect((await end(await begin('/status/404'))).status).to.equal('NotFound');
    expect(await get('/v1/usage')).to.include({ remaining: 98, held: 0 });
    await until(async () => (await s3.list()).objects.length === 1, 40, 'the file of the first job is removed');
    expect((await s3.list()).uploads).to.deep.equal([]);
  });

  it('no key and no signature is in its log or its data', () => {
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const kept = files.map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1')).join('\n');
    expect(kept).to.contain('/films/clip.mp4');
    expect(up.output()).to.contain('the job ended');
    for (const text of [kept, up.output()]) {
      for (const secret of Object.values(credentials)) expect(text).not.to.contain(secret);
      expect(text).not.to.match(/X-Amz-(Signature|Credential)=[^*]/);
    }
  });
});
