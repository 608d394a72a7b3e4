import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { followChild } from '../support/followed-child.ts';
import { freePort } from '../support/free-port.ts';
import { mountReadOnly, mountSmall, unmount, whyNoMounts } from '../support/mount.ts';
import { makeService, type Service } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { root } from '../support/tree.ts';
import { until } from '../support/until.ts';
import { spawnUp } from '../support/up.ts';

const diskBytes = 48 * 2 ** 20;

const why = whyNoMounts();
// This is so for everybody but root.
if (why !== null) console.warn(`The tests of full and read-only disks are left out: ${why}`);
else describe('a disk that takes nothing more', testDisks);

function testDisks(this: Mocha.Suite): void {
  let service: Service;
  let films: Source;
  const mounted: string[] = [];
  before(async () => {
    service = makeService({ TRAWL_WORKERS: '4' });
    films = await startSource();
    mkdirSync(service.data);
    mountSmall(service.data, diskBytes);
    mounted.push(service.data);
    await service.start();
  });
  after(async () => {
    await service.killAll();
    for (const folder of mounted.toReversed()) unmount(folder);
    await service.close();
    await films.stop();
  });

  const film = (path: string) => `/v1/video/download?query=${films.url}${path}`;
  const objects = () => join(service.data, 'objects');

  it('while the folder of files is read-only, jobs wait with their file made, and they complete once it is writable', async () => {
    const { account, key } = await service.aCustomer();
    const first = await service.submit(key, film('/films/clip.mp4'));
    await service.ended([first], 30);
    mountReadOnly(objects());
    mounted.push(objects());
    const ids = [first, ...(await Promise.all([1, 2].map(() => service.submit(key, film('/films/clip.mp4')))))];
    const isWaiting = (id: string) =>
      service.withStore(async (store) => {
        const job = await readJob(store, id);
        return job?.status === 'Running' && job.stage === 'upload';
      });
    for (const id of ids.slice(1)) await until(() => isWaiting(id), 30, `${id} waits to be stored`);
    await until(() => /can only be read/.test(service.up().output()), 10, 'the operator is told why');
    const { result } = (await service.ask(key, `/v1/jobs/${first}`)).json;
    expect((await fetch(result.response)).status, 'a file that was there before').to.equal(200);
    unmount(objects());
    mounted.pop();
    const jobs = await service.ended(ids, 30);
    expect(jobs.map(({ status, attempt }) => `${status} ${attempt}`)).to.deep.equal(ids.map(() => 'CompletedJob 1'));
    await service.checkLedger(account, jobs);
    expect(readdirSync(join(objects(), '.uploads'))).to.deep.equal([]);
  });

  it('D93: while the disk is full, callers are refused with a sentence and nothing is half done, and jobs go on once it has room', async () => {
    const { account, key } = await service.aCustomer();
    films.forget();
    const ids = await Promise.all([1, 2].map(() => service.submit(key, film('/rate/70000/clip.mp4'))));
    await until(() => films.asked.filter((path) => path.startsWith('/rate')).length >= 2, 20, 'the films are fetched');
    fill(join(service.data, 'filler'));
    const refused = await until(
      async () => {
        const answer = await service.ask(key, film('/films/clip.mp4'));
        if (answer.status === 202) ids.push(answer.json.job_id);
        return answer.status === 202 ? null : answer;
      },
      20,
      'a refusal',
    );
    expect([refused?.status, refused?.json.error, refused?.headers.has('retry-after')]).to.deep.equal([
      503,
      'Service Unavailable',
      true,
    ]);
    rmSync(join(service.data, 'filler'));
    const again = () => service.ask(key, film('/films/clip.mp4')).then(({ status, json }) => status === 202 && json);
    const accepted = await until(again, 20, 'jobs are accepted again');
    ids.push((accepted as { job_id: string }).job_id);
    const jobs = await service.ended(ids, 60);
    expect(jobs.map(({ status }) => status)).to.deep.equal(ids.map(() => 'CompletedJob'));
    await service.checkLedger(account, jobs);
    expect(readdirSync(join(objects(), '.uploads'))).to.deep.equal([]);
    expect(await service.stop()).to.equal(0);
    expect(readdirSync(join(service.data, 'work'))).to.deep.equal([]);
  });

  it('while the disk of the work folder alone is full, jobs wait with a reason, lose no attempt and are charged once', async () => {
    const other = makeService({ TRAWL_WORKERS: '3' });
    const work = join(other.data, 'work');
    mkdirSync(work, { recursive: true });
    mountSmall(work, diskBytes);
    try {
      await other.start();
      const { account, key } = await other.aCustomer();
      fill(join(work, 'filler'));
      const ids = await Promise.all([1, 2].map(() => other.submit(key, film('/films/clip.mp4'))));
      const reasonOf = async (id: string) => (await other.ask(key, `/v1/jobs/${id}`)).json.queue?.reason;
      const isFull = async (id: string) => (await reasonOf(id)) === 'The disk of the workers is full';
      for (const id of ids) await until(() => isFull(id), 20, `${id} waits for room`);
      expect(other.up().output()).to.match(/jobs wait for their start.*The disk of the workers is full/);
      rmSync(join(work, 'filler'));
      const jobs = await other.ended(ids, 30);
      expect(jobs.map(({ status, attempt }) => `${status} ${attempt}`)).to.deep.equal(ids.map(() => 'CompletedJob 1'));
      await other.checkLedger(account, jobs);
      // A disk is cleared at the next start, not removed.
      writeFileSync(join(work, 'left'), '');
      expect(await other.stop()).to.equal(0);
      await other.start();
      expect(readdirSync(work)).not.to.include('left');
    } finally {
      await other.killAll();
      unmount(work);
      await other.close();
    }
  });

  it('a work folder whose file system tells no size, as one in memory without a limit, has room for jobs', async () => {
    const other = makeService();
    const work = join(other.data, 'work');
    mkdirSync(work, { recursive: true });
    mountSmall(work, 0);
    try {
      await other.start();
      const { key } = await other.aCustomer();
      const [job] = await other.ended([await other.submit(key, film('/films/clip.mp4'))], 30);
      expect(job?.status).to.equal('CompletedJob');
    } finally {
      await other.killAll();
      unmount(work);
      await other.close();
    }
  });

  it('a start with a read-only data folder is refused with a sentence, and nothing runs', async () => {
    mountReadOnly(service.data);
    mounted.push(service.data);
    const up = spawnUp({ TRAWL_DATA: service.data });
    expect(await up.ended).to.equal(1);
    expect(up.output())
      .to.match(/read-only/)
      .and.not.match(/^ +at /m);
    expect(service.processes()).to.deep.equal([]);
  });
}

describe('a log on a full disk', () => {
  it('loses its lines, and the role goes on until it is told to end', async () => {
    const port = await freePort();
    const env = { PATH: process.env.PATH, TRAWL_PROBE_PORT: String(port) };
    const line = `exec '${join(root, 'trawl')}' egress --at ${await freePort()} > /dev/full 2>&1`;
    const role = followChild(spawn('sh', ['-c', line], { env, stdio: ['ignore', 'pipe', 'pipe'] }));
    const isHealthy = () =>
      fetch(`http://127.0.0.1:${port}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      );
    const hasEnded = () => role.process.exitCode !== null || role.process.signalCode !== null;
    try {
      await until(async () => (await isHealthy()) || hasEnded(), 20, 'the role answers');
    } finally {
      role.process.kill('SIGTERM');
    }
    expect(await role.ended).to.equal(0);
  });
});

/** Writes until there is no room for a single byte. */
function fill(file: string): void {
  for (let bytes = 2 ** 20; bytes >= 1; bytes = Math.floor(bytes / 2)) {
    try {
      for (;;) appendFileSync(file, Buffer.alloc(bytes));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
}
