import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { type Controller, startController } from '../../src/controller/controller.ts';
import type { Seen } from '../../src/model/next.ts';
import { sharesOf } from '../../src/model/preemption.ts';
import type { ObjectStore } from '../../src/objects/object-store.ts';
import { openS3 } from '../../src/objects/s3-store.ts';
import { jobIdOf, type Runner } from '../../src/runners/runner.ts';
import type { Caller } from '../../src/store/access/authorize.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { inLanes } from '../bench/rounds.ts';
import { jobLimits } from '../support/job-limits.ts';
import { someMetadata } from '../support/jobs.ts';
import { admitted, anAccount, storeOf, type TestStore, theJob } from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';
import { startS3, type TestS3 } from '../support/s3.ts';
import { until } from '../support/until.ts';

const films = 300;
const silentSeconds = 300;
const film = 'The bytes of a film';
const sha256 = hash('sha256', film);

/** A runner whose workers a test ends. */
function aRunnerOf(workers: Map<string, Seen>): Runner {
  return {
    start: async ({ name }) => void workers.set(name, { is: 'running' }),
    stop: async (name) => void workers.delete(name),
    see: async (name) => workers.get(name) ?? { is: 'absent' },
    watch: () => () => {},
    list: async (job) => [...workers.keys()].filter((name) => job === undefined || jobIdOf(name) === job),
    close: async () => [],
  };
}

if (process.env.ROUNDS !== undefined)
  describe(`an S3 server that answers nothing for ${silentSeconds} s`, function () {
    this.timeout(1_200_000);
    const workers = new Map<string, Seen>();
    let s3: TestS3;
    let redis: TestRedis;
    let store: TestStore;
    let objects: ObjectStore;
    let controller: Controller;
    let caller: Caller;

    before(async () => {
      s3 = await startS3();
      redis = await startTestRedis({ fsync: 'always' });
      store = storeOf(redis.connection);
      objects = openS3({ settings: s3.settings, partBytes: 100, throughEgress: async () => false });
      const runner = aRunnerOf(workers);
      controller = await startController({
        ...{ store, objects, limits: jobLimits, metrics: makeMetrics(), traces: null, log: aLog().log },
        ...{ shares: sharesOf(films + 50, 0, 30), runners: [runner], runnerOf: () => runner },
      });
      caller = await anAccount(store, { credits: 10_000, max_open: 1_000 });
    });
    after(async () => {
      await controller?.close();
      await redis?.stop();
      await s3?.stop();
    });

    /** Uploads the parts of a film, which nobody has joined yet. */
    async function upload(id: string): Promise<void> {
      const wanted = { bytes: film.length, sha256, content_type: 'video/mp4', parts: [sha256] };
      const permit = await objects.permit(`${id}/1/media.mp4`, wanted);
      const [part] = permit.is === 'parts' ? permit.parts : [];
      expect((await fetch(part!.url, { method: 'PUT', headers: part!.headers, body: film })).status).to.equal(200);
    }

    function endWorker(id: string, end: 'done' | 'failed'): void {
      const delivered = { key: `${id}/1/media.mp4`, bytes: film.length, sha256, content_type: 'video/mp4' };
      const done = { is: 'done', metadata: someMetadata, delivered } as const;
      const outcome = end === 'done' ? done : ({ is: 'failed', code: 'private' } as const);
      workers.set(`${id}-1`, { is: 'ended', outcome });
      controller.hint(id);
    }

    /** Milliseconds from the admission of another job to its start; the job has ended then. */
    async function timeStart(): Promise<number> {
      const began = performance.now();
      const id = await admitted(store, caller);
      await until(() => workers.has(`${id}-1`), 60, 'the job to start');
      const took = performance.now() - began;
      endWorker(id, 'failed');
      await until(async () => (await theJob(store, id)).error_code === 'private', 60, 'the job to end');
      return took;
    }

    it(`delays no job but the ${films} that it has files of, and each of these is charged once afterwards`, async () => {
      const ids: string[] = [];
      await inLanes(20, films, async () => void ids.push(await admitted(store, caller)));
      await until(() => workers.size === films, 60, 'all start');
      await inLanes(10, films, async (n) => upload(ids[n]!));
      const usual = Math.max(await timeStart(), await timeStart(), await timeStart());
      const thaw = await s3.freeze();
      for (const id of ids) endWorker(id, 'done');
      let slowest = 0;
      for (const end = performance.now() + silentSeconds * 1000; performance.now() < end; await pause(2_000))
        slowest = Math.max(slowest, await timeStart());
      thaw();
      console.log(`      usual start ${Math.round(usual)} ms, slowest meanwhile ${Math.round(slowest)} ms`);
      expect(slowest).to.be.below(usual + 1_000);
      const isDone = async () => {
        const jobs = await Promise.all(ids.map((id) => theJob(store, id)));
        return jobs.every(({ status }) => status === 'CompletedJob');
      };
      const began = performance.now();
      await until(isDone, 300, 'all complete');
      console.log(`      all completed ${Math.round((performance.now() - began) / 1000)} s after S3 was back`);
      const { balances } = await readSnapshot(store, caller.accountId);
      expect([balances.held, balances.credits_consumed]).to.deep.equal([0, films]);
      expect((await verifyLedger(store, caller.accountId)).problems).to.deep.equal([]);
      expect((await s3.list()).objects).to.have.members(ids.map((id) => `${id}/1/media.mp4`));
    });
  });
