import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { startSweeper } from '../../src/controller/sweeper.ts';
import { isEnded } from '../../src/model/job.ts';
import { isReady, raisedLimits } from '../support/cluster/cluster.ts';
import { startTestController, type TestController } from '../support/cluster/controller.ts';
import type { Plan } from '../support/cluster/fake-kubelet.ts';
import { type Ending, endings } from '../support/cluster/pod.ts';
import { startTcpProxy, type TcpProxy } from '../support/cluster/tcp-proxy.ts';
import { namespace, startTestbed, type Testbed } from '../support/cluster/testbed.ts';
import { makeRandom } from '../support/random.ts';
import { aLog } from '../support/redis.ts';
import { seed } from '../support/seed.ts';
import { readAttempts } from '../support/stored-job.ts';
import { until } from '../support/until.ts';

const isLong = process.env.ROUNDS !== undefined;
const count = isLong ? 1_000 : 200;
/** After so long it is over, however slow the machine is: what is open then must end in quiet. */
const stormSeconds = isLong ? 900 : 60;
const day = 86_400_000;
const badEndings = [
  endings.failure(64),
  endings.failure(75),
  endings.failure(137),
  endings.outOfMemory(),
  endings.overDisk(),
  endings.nodePressure(),
  endings.nodeShutdown(),
  endings.rejected('OutOfcpu'),
];

/** Draws of one part of the test, so that what another one does changes nothing for it. */
function drawsOf(part: string) {
  const random = makeRandom(`${seed} ${part}`);
  const between = (least: number, most: number) => least + random() * (most - least);
  return { between, oneOf: <T>(all: readonly T[]) => all[Math.floor(between(0, all.length))] };
}

describe(`${count} jobs on a cluster whose parts are all killed at random (SEED=${seed})`, function () {
  this.timeout(1_800_000);
  let testbed: Testbed;
  let line: TcpProxy;
  let isOver = false;
  const controllers = new Set<TestController>();
  const starting = new Set<Promise<void>>();
  const troubles = { kills: 0, strikes: 0, cuts: 0, hangs: 0, crashes: 0 };

  before(async () => {
    testbed = await startTestbed({ nodes: 5, flags: raisedLimits });
    line = await startTcpProxy(testbed.cluster.url);
    for (let n = 0; n < 3; n++) await beginController();
  });
  after(async () => {
    isOver = true;
    await Promise.allSettled(starting);
    for (const controller of controllers) await controller.end('SIGKILL');
    await line?.stop();
    await testbed?.stop();
  });

  /** One that meets no API server at its start ends, and is started again, as a cluster would. */
  async function beginController(): Promise<void> {
    const begun = await startTestController(testbed, { server: line.url }).catch(() => null);
    if (begun) controllers.add(begun);
    else if (!isOver) await beginController();
  }

  /** Three attempts in four deliver; of the others some end badly and some are struck while they run. */
  const planOf = (n: number) => {
    const { between, oneOf } = drawsOf(`job ${n}`);
    return (attempt: number, ending: () => Promise<Ending>): Plan => {
      const runMs = between(50, 1_000);
      const isBad = attempt <= 2 && between(0, 1) >= 0.75;
      return { runMs, ending: isBad ? (oneOf(badEndings) ?? endings.failure(1)) : ending };
    };
  };

  /** Does something to a random pod, or to its Job, as a person or the cluster may. */
  async function strike({ oneOf }: ReturnType<typeof drawsOf>): Promise<void> {
    // A job that is struck for ever ends as lost (D74), so later attempts are left alone.
    const pod = oneOf(testbed.kubelet.running().filter(({ metadata }) => /-[123]-\w+$/.test(metadata.name)));
    if (!pod) return;
    const { admin } = testbed.cluster;
    const { name, labels = {} } = pod.metadata;
    const podPath = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const job = `/apis/batch/v1/namespaces/${namespace}/jobs/${labels['batch.kubernetes.io/job-name']}`;
    const act = oneOf([
      () => admin.ask('POST', `${podPath}/eviction`, { metadata: { name } }),
      () => admin.ask('DELETE', podPath),
      () => admin.ask('DELETE', podPath, { gracePeriodSeconds: 0 }),
      () => admin.ask('DELETE', job, { propagationPolicy: 'Background' }),
      () => admin.ask('DELETE', job, { propagationPolicy: 'Foreground' }),
    ]);
    // The target may be gone, or the API server with it.
    await act?.().then(
      () => troubles.strikes++,
      () => undefined,
    );
  }

  /** Kills one of the controllers, who may lead, and starts another in its place; one is left at least. */
  async function kill({ oneOf }: ReturnType<typeof drawsOf>): Promise<void> {
    const killed = oneOf([...controllers]);
    if (!killed || controllers.size < 2) return;
    controllers.delete(killed);
    await killed.end('SIGKILL');
    troubles.kills++;
    const begun = beginController().finally(() => starting.delete(begun));
    starting.add(begun);
  }

  async function hang({ between }: ReturnType<typeof drawsOf>): Promise<void> {
    const { parts, admin } = testbed.cluster;
    parts['kube-apiserver'].freeze();
    await pause(between(2_000, 4_000));
    parts['kube-apiserver'].thaw();
    await until(() => isReady(admin), 60, 'the API server answers after it hung');
    troubles.hangs++;
  }

  const crash = (name: 'kube-apiserver' | 'etcd') => async () => {
    const { admin, parts } = testbed.cluster;
    await parts[name].kill();
    parts[name].start();
    await until(() => isReady(admin), 60, `the API server answers after ${name} was killed`);
    troubles.crashes++;
  };

  /** Goes on with some trouble, at moments that are drawn, until all is over. */
  async function keepUp(
    part: string,
    [least, most]: readonly [number, number],
    ...acts: ((draws: ReturnType<typeof drawsOf>) => unknown)[]
  ): Promise<void> {
    const draws = drawsOf(part);
    for (let n = 0; !isOver; n++) {
      await pause(draws.between(least, most));
      if (!isOver) await acts[n % acts.length]?.(draws);
    }
  }

  it('all end, are charged at most once, have every attempt recorded, and leave nothing behind', async () => {
    const ids: string[] = [];
    for (let n = 0; n < count; n++) ids.push(await testbed.submit(planOf(n)));
    const trouble = [
      keepUp('kills', [1_000, 2_000], kill),
      keepUp('strikes', [100, 500], strike),
      keepUp('cuts', [1_000, 3_000], () => (troubles.cuts += line.dropConnections())),
      keepUp('servers', [2_000, 4_000], hang, crash('kube-apiserver'), hang, crash('etcd')),
    ];
    const open = new Set(ids);
    const haveEnded = async () => {
      for (const id of open) if (isEnded((await testbed.job(id)).status)) open.delete(id);
      return open.size === 0;
    };
    const began = performance.now();
    const isLate = () => performance.now() - began > stormSeconds * 1_000;
    const isCalm = async () => ((await haveEnded()) || isLate()) && troubles.crashes >= 2;
    await until(isCalm, 3 * stormSeconds, 'the storm is over');
    isOver = true;
    await Promise.all(trouble);
    await Promise.all(starting);
    await until(haveEnded, 120, 'all jobs end').catch(async (error: Error) => {
      const left = await Promise.all([...open].map(testbed.job));
      throw new Error(`${error.message}: ${JSON.stringify(left, null, 1)}`);
    });
    expect(Math.min(...Object.values(troubles)), JSON.stringify(troubles)).to.be.above(0);
    expect(await testbed.findProblems(ids)).to.deep.equal([]);
    const found = await Promise.all(ids.map(testbed.job));
    expect(found.filter(({ error_code }) => error_code === 'worker_lost')).to.deep.equal([]);
    for (const job of found) {
      const marks = await readAttempts(testbed.store, job.id);
      const each = Array.from({ length: job.attempt }, (_, n) => n + 1);
      const begun = marks.filter(({ started_at }) => started_at !== undefined).map(({ attempt }) => attempt);
      const ended = marks.filter(({ ended_at }) => ended_at !== undefined).map(({ attempt }) => attempt);
      expect([begun, ended], job.id).to.deep.equal([each, each]);
    }
    await testbed.waitUntilEmpty(60);
    await isSwept(ids);
  });

  /** Expects every delivered file, and that the sweep removes all orphans of killed controllers a day later. */
  async function isSwept(ids: readonly string[]): Promise<void> {
    const { store, objects } = testbed;
    for (const { delivered } of await Promise.all(ids.map(testbed.job))) {
      if (delivered) expect(await objects.see(delivered.key)).to.deep.include({ checksum: delivered.sha256 });
    }
    store.advance(day + 1);
    const lifetimes = { job: 30 * day, line: 90 * day, file: day };
    const probe = { isAway: () => false, check: async () => true };
    const options = { store, objects, lifetimes, probe, metrics: makeMetrics(), log: aLog().log };
    const sweep = startSweeper({ ...options, isLeading: () => true });
    sweep.wake();
    await until(async () => (await testbed.listOrphanFiles([])).length === 0, 30, 'no file is left');
    await sweep.close();
  }
});
