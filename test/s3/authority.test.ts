import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeAuthority } from '../support/certificate.ts';
import { runTool } from '../support/chart.ts';
import type { Json } from '../support/json.ts';
import { aFolder } from '../support/redis.ts';
import { startS3, type TestS3 } from '../support/s3.ts';
import { type S3Proxy, startS3Proxy } from '../support/s3-proxy.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { read, root } from '../support/tree.ts';
import { until } from '../support/until.ts';
import { processesIn, type RunningUp, startUp } from '../support/up.ts';

describe('An object store whose certificate comes from a private authority', () => {
  const { folder, remove } = aFolder();
  let s3: TestS3;
  let front: S3Proxy;
  let source: Source;
  let up: RunningUp;
  let inside: Readonly<Record<string, string>>;

  before(async () => {
    s3 = await startS3();
    source = await startSource();
    const authority = makeAuthority('private');
    front = await startS3Proxy(s3.settings.s3Endpoint, authority.issue({ name: 'store', hosts: ['127.0.0.1'] }));
    const file = join(folder, 'ca.crt');
    writeFileSync(file, authority.cert);
    inside = { TRAWL_S3_ENDPOINT: `https://127.0.0.1:${front.port}`, NODE_EXTRA_CA_CERTS: file };
    up = await startUp({
      ...{ ...s3.env, ...inside, TRAWL_S3_PUBLIC_ENDPOINT: 'https://files.invalid' },
      ...{ TRAWL_DATA: join(folder, 'data'), TRAWL_EGRESS_ALLOW: '127.0.0.1:*', TRAWL_WORKERS: '1' },
    });
  });
  after(async () => {
    up?.process.kill('SIGTERM');
    await up?.ended;
    await until(() => processesIn(folder).length === 0, 10, 'no process is left');
    await front?.stop();
    await source?.stop();
    await s3?.stop();
    remove();
  });

  it('gets files of workers, which trust the authorities that the controller names in NODE_EXTRA_CA_CERTS', async () => {
    const key = (await until(() => /'x-api-key: (\S+)'/.exec(up.output()), 5, 'the sample key'))![1]!;
    const get = async (path: string): Promise<Json> =>
      (await fetch(up.url + path, { headers: { 'x-api-key': key } })).json();
    const { job_id: id } = await get(`/v1/video/download?query=${source.url}/films/clip.mp4`);
    const ended = async () => {
      const found = await get(`/v1/jobs/${id}`);
      return typeof found.completed_at === 'string' && found;
    };
    const job = await until(ended, 60, 'the job ends');
    expect([job.status, job.error]).to.deep.equal(['CompletedJob', null]);
    expect((await s3.list()).objects).to.deep.equal([`${id}/1/media.mp4`]);
  });

  it('gives its file to the program of helm test at the endpoint inside, whatever name callers use', async () => {
    const program = join(folder, 'job.ts');
    writeFileSync(program, read('charts/trawl/files/test-job.ts').replaceAll('/opt/trawl/', `${root}/`));
    const env = {
      ...{ PATH: process.env.PATH, ...inside, TRAWL_DATA: join(folder, 'data') },
      ...{ API_URL: up.url, FILM: `${source.url}/films/clip.mp4`, SECONDS: '60' },
    };
    const { stdout } = await runTool(process.execPath, [program], { env });
    expect(stdout).to.match(/^The file is there: \d{4,} bytes with the SHA-256 of its job\nThe job was charged once$/m);
  });
});
