import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { isEnded } from '../../src/model/job.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { type Cluster, raisedLimits, startCluster } from '../support/cluster/cluster.ts';
import { startTestController, type TestController } from '../support/cluster/controller.ts';
import { makeWorkersNamespace } from '../support/cluster/runner.ts';
import { namespace, startTestbed, type Testbed } from '../support/cluster/testbed.ts';
import { makeRandom } from '../support/random.ts';
import { startTestCluster, startTestRedis, startTestSentinel, type TestRecord } from '../support/redis.ts';
import { seed } from '../support/seed.ts';
import { readAttempts } from '../support/stored-job.ts';
import { until } from '../support/until.ts';

const isLong = process.env.ROUNDS !== undefined;
const jobsEach = isLong ? 50 : 15;
const leadersKilled = isLong ? 10 : 1;
const random = makeRandom(seed);

/** A record, and the process that has it. */
interface Kept {
  readonly record: TestRecord;
  readonly pid: () => number;
  readonly env?: Readonly<Record<string, string>>;
}

const kinds: Record<string, () => Promise<Kept>> = {
  'one Redis, which starts again': async () => {
    const record = await startTestRedis({ fsync: 'always' });
    return { record, pid: record.pid };
  },
  'a Redis behind a Sentinel, whose replica takes over': async () => {
    const record = await startTestSentinel();
    return { record, pid: () => record.master.process.pid };
  },
  'a Redis Cluster, where a replica takes over': async () => {
    const record = await startTestCluster({ replicas: 1 });
    // `strict` wants a replica that has each change, which a replica that took over lacks.
    return { record, pid: () => record.nodes[2]?.process.pid ?? 0, env: { TRAWL_DURABILITY: 'relaxed' } };
  },
};

describe('jobs on a cluster whose Redis fails', function () {
  this.timeout(isLong ? 600_000 : 300_000);
  let cluster: Cluster;

  before(async () => {
    cluster = await startCluster({ flags: raisedLimits });
    await makeWorkersNamespace(cluster, namespace);
  });
  after(() => cluster?.stop());

  for (const [kind, start] of Object.entries(kinds)) {
    describe(kind, () => {
      let kept: Kept;
      let testbed: Testbed;
      const controllers: TestController[] = [];
      const startOne = () => startTestController(testbed, kept.env && { env: kept.env });

      before(async () => {
        kept = await start();
        testbed = await startTestbed({ startRecord: async () => kept.record, cluster });
        for (let n = 0; n < 2; n++) controllers.push(await startOne());
      });
      after(async () => {
        for (const controller of controllers) await controller.end('SIGKILL');
        await testbed?.stop();
      });

      const submit = () =>
        Promise.all(
          Array.from({ length: jobsEach }, (_, n) =>
            testbed.submit((_, ending) => ({ runMs: 200 + 100 * (n % 20), ending })),
          ),
        );
      const leader = () =>
        until(
          () => controllers.find((controller) => controller.isLeading()),
          30,
          'somebody leads',
        ) as Promise<TestController>;

      it('all complete and are charged once when the leaders and the Redis node are killed, and leave nothing behind', async () => {
        const ids = await submit();
        await testbed.runningPod(ids[0] ?? '');
        for (let n = 0; n < leadersKilled; n++) {
          const killed = await leader();
          await killed.end('SIGKILL');
          controllers.splice(controllers.indexOf(killed), 1, await startOne());
          ids.push(...(await submit()));
          await pause(random() * 1_000);
        }
        process.kill(kept.pid(), 'SIGKILL');
        const isBack = () =>
          readJob(testbed.store, ids[0] ?? '').then(
            () => true,
            () => false,
          );
        await until(isBack, 30, 'the record answers again');
        ids.push(...(await submit()));
        const open = new Set(ids);
        await until(
          async () => {
            for (const id of open) if (isEnded((await testbed.job(id)).status)) open.delete(id);
            return open.size === 0;
          },
          isLong ? 300 : 90,
          'all jobs end',
        );
        expect(await testbed.findProblems(ids)).to.deep.equal([]);
        for (const job of await Promise.all(ids.map(testbed.job))) {
          expect(job.status, job.error ?? '').to.equal('CompletedJob');
          const marks = await readAttempts(testbed.store, job.id);
          const ends = marks.filter(({ ended_at }) => ended_at !== undefined).map(({ attempt }) => attempt);
          expect(ends, job.id).to.deep.equal(Array.from({ length: job.attempt }, (_, n) => n + 1));
        }
        await testbed.waitUntilEmpty(60);
      });
    });
  }
});
