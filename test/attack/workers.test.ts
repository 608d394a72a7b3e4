import { createReadStream, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { isEnded } from '../../src/model/job.ts';
import { readAttempts, readJob } from '../../src/store/jobs/read-job.ts';
import { makeFilms } from '../support/films.ts';
import { makeService, type Service } from '../support/service.ts';
import { until } from '../support/until.ts';

const waitSeconds = 3;

describe('an account whose sources drip', function () {
  this.timeout(240_000);
  const service: Service = makeService({ TRAWL_WORKERS: '2', TRAWL_PREEMPT_SECONDS: String(waitSeconds) });
  let source: Server;
  let isDripping = true;
  before(async () => {
    const film = join(makeFilms(), 'clip.mp4');
    const { size } = statSync(film);
    source = createServer((asking, answer) => {
      const drips = asking.url?.startsWith('/drip') === true && isDripping;
      answer.writeHead(200, { 'content-type': 'video/mp4', 'content-length': drips ? 40_000_000 : size });
      if (asking.method === 'HEAD') return answer.end();
      if (!drips) return createReadStream(film).pipe(answer);
      // Fast enough that it never counts as too slow, and too slow to come to an end.
      const timer = setInterval(() => answer.write(Buffer.alloc(4_096)), 250);
      return answer.once('close', () => clearInterval(timer));
    });
    await new Promise<void>((resolve) => source.listen(0, '127.0.0.1', resolve));
    await service.start();
  });
  after(async () => {
    await service.close();
    source?.closeAllConnections();
    source?.close();
  });

  const submit = (key: string, path: string) =>
    service.submit(key, `/v1/video/download?query=http://127.0.0.1:${(source.address() as AddressInfo).port}${path}`);
  const job = (id: string) => service.withStore((store) => readJob(store, id));
  const attempts = (id: string) => service.withStore((store) => readAttempts(store, id));

  it('D74: gives a worker to another account after its wait; the interrupted job ends well later and is charged once', async () => {
    const [hostile, other] = await Promise.all([service.aCustomer(), service.aCustomer()]);
    const drips: string[] = [];
    for (const path of ['/drip/1.mp4', '/drip/2.mp4']) {
      drips.push(await submit(hostile.key, path));
      await until(async () => (await job(drips.at(-1) ?? ''))?.status === 'Running', 30, 'it has a worker');
    }
    const film = await submit(other.key, '/film.mp4');
    const [ended] = await service.ended([film], 60);
    expect(ended?.status).to.equal('CompletedJob');
    const [first = '', second = ''] = drips;
    expect((await job(first))?.interruptions, 'the older job').to.equal(0);
    expect(await job(second), 'the younger job').to.include({ interruptions: 1, failures: 0 });
    expect((await attempts(second))[1]).to.include({
      counts: 'interruption',
      reason: 'another account waited for a worker',
    });
    const next = await submit(other.key, '/film.mp4?again');
    expect((await service.ended([next], 60))[0]?.status, 'the next job of the other account').to.equal('CompletedJob');
    expect(isEnded((await job(first))?.status ?? 'Error'), 'the older job still drips').to.equal(false);

    isDripping = false;
    source.closeAllConnections();
    const jobs = await service.ended(drips, 120);
    expect(jobs.map(({ status }) => status)).to.deep.equal(['CompletedJob', 'CompletedJob']);
    await service.checkLedger(hostile.account, jobs);
    await service.checkLedger(other.account, await service.ended([film, next], 1));
  });
});
