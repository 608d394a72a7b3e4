import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { keys } from '../../src/store/keys.ts';
import { type BlockingSource, startBlockingSource } from '../support/blocking-source.ts';
import { freePort } from '../support/free-port.ts';
import { makeService, type Service, signal } from '../support/service.ts';
import { readAttempts } from '../support/stored-job.ts';
import { leaveStuckSandbox } from '../support/stuck-sandbox.ts';
import { until } from '../support/until.ts';

describe('trawl up', () => {
  const service: Service = makeService({ TRAWL_WORKERS: '2' });
  let probe: number;
  let held: BlockingSource;
  before(async () => {
    held = await startBlockingSource();
    probe = await freePort();
    await service.start({ TRAWL_PROBE_PORT: String(probe) });
  });
  after(async () => {
    await service.close();
    await held.stop();
  });

  const readiness = async () => {
    const answer = await fetch(`http://127.0.0.1:${probe}/readyz`);
    return { status: answer.status, missing: [], ...((await answer.json()) as { missing?: string[] }) };
  };
  const isReady = () => until(async () => (await readiness()).status === 200, 20, 'it is ready');
  const isMissing = (part: string) =>
    until(
      async () => {
        const { status, missing } = await readiness();
        return status === 503 && missing.includes(part);
      },
      20,
      `${part} is missing`,
    );

  for (const part of ['egress', 'inspector']) {
    it(`/readyz names ${part} while it cannot be reached`, async () => {
      await isReady();
      const socket = join(service.data, `${part}.sock`);
      renameSync(socket, `${socket}.away`);
      await isMissing(part);
      expect((await readiness()).missing).to.deep.equal([part]);
      renameSync(`${socket}.away`, socket);
      await isReady();
    });
  }

  it('requires of its inspector and workers the bubblewrap that it found at its start', async () => {
    await isReady();
    const [inspector] = service.processes(/ inspector --lifeline/);
    const settings = readFileSync(`/proc/${inspector}/environ`, 'utf8').split('\0');
    expect(settings).to.include('TRAWL_SANDBOX=required');
  });

  it('/readyz names the controller while another one has the lead', async () => {
    await isReady();
    await service.withStore(async ({ connection }) => {
      // Longer than two leases, it would be that of a controller that died before the clock went back.
      await connection.send(['SET', keys.lead, 'another', 'PX', '25000']);
      await isMissing('controller');
      expect((await readiness()).missing).to.deep.equal(['controller']);
      await connection.send(['DEL', keys.lead]);
    });
    await isReady();
  });

  it('/readyz names the record, and the controller with it, while Redis does not answer', async () => {
    await isReady();
    const [redis = 0] = service.processes(/^redis-server/);
    signal(redis, 'SIGSTOP');
    try {
      await isMissing('record');
      await isMissing('controller');
    } finally {
      signal(redis, 'SIGCONT');
    }
    await isReady();
  });

  it('D74: ends within 20 s of SIGTERM, records the running attempt as interrupted, and goes on at the next start', async () => {
    await isReady();
    const { account, key } = await service.aCustomer();
    const ids = [
      await service.submit(key, `/v1/video/download?query=${held.url}/held/film.mp4`),
      await service.submit(key, `/v1/media/metadata?is_async=true&query=${held.url}/held/film.mp4`),
    ];
    await until(() => held.asked() >= 2, 20, 'both are under way');
    await leaveStuckSandbox(join(service.data, 'work', 'job-killed', 'job'));
    const began = performance.now();
    expect(await service.stop()).to.equal(0);
    expect((performance.now() - began) / 1000, 'seconds').to.be.below(20);
    const stoppedAt = Date.now();
    expect(service.processes()).to.deep.equal([]);
    await service.start();
    for (const id of ids) {
      const marks = await service.withStore((store) => readAttempts(store, id));
      const end = marks.find(({ ended_at }) => ended_at !== undefined);
      expect(end).to.include({ attempt: 1, counts: 'interruption', code: 'worker_lost' });
      expect(end?.ended_at).to.be.below(stoppedAt);
    }
    held.release();
    const jobs = await service.ended(ids, 30);
    const how = jobs.map(({ status, failures, interruptions, attempt }) => [status, failures, interruptions, attempt]);
    expect(how).to.deep.equal(ids.map(() => ['NotFound', 0, 1, 2]));
    await service.checkLedger(account, jobs);
  });
});
