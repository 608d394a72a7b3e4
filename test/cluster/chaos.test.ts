import { expect } from 'chai';
import { isEnded } from '../../src/model/job.ts';
import { readAttempts } from '../../src/store/jobs.ts';
import { isReady, raisedLimits } from '../support/cluster/cluster.ts';
import { startTestController, type TestController } from '../support/cluster/controller.ts';
import type { Plan } from '../support/cluster/fake-kubelet.ts';
import { type Ending, endings } from '../support/cluster/pod.ts';
import { namespace, type Scene, setScene } from '../support/cluster/scene.ts';
import { until } from '../support/until.ts';

const isLong = process.env.ROUNDS !== undefined;
const count = isLong ? 1_000 : 200;
const random = (least: number, most: number) => least + Math.random() * (most - least);
const badEndings = [
  endings.failure(64),
  endings.failure(75),
  endings.failure(137),
  endings.outOfMemory(),
  endings.overDisk(),
  endings.nodePressure(),
];

describe(`${count} jobs on a cluster where everything is killed`, function () {
  this.timeout(isLong ? 1_800_000 : 300_000);
  let scene: Scene;
  const controllers: TestController[] = [];

  before(async () => {
    scene = await setScene({ nodes: 5, flags: raisedLimits });
    for (let n = 0; n < 2; n++) controllers.push(await startTestController(scene));
  });
  after(async () => {
    for (const controller of controllers) await controller.end('SIGKILL');
    await scene?.stop();
  });

  /** Three attempts in four deliver; of the others some end badly and some are struck while they run. */
  const planOf = (attempt: number, ending: () => Promise<Ending>): Plan => {
    const runMs = random(50, 1_000);
    if (attempt > 2 || Math.random() < 0.75) return { runMs, ending };
    const bad = badEndings[Math.floor(random(0, badEndings.length))] ?? endings.failure(1);
    return { runMs, ending: bad };
  };

  /** Does something to a random pod, or to its Job, as a person or the cluster may. */
  async function strike(): Promise<void> {
    // Whoever is struck for ever is lost, as it should be (D74): later attempts are left alone.
    const pods = scene.kubelet.running().filter(({ metadata }) => /-[123]-\w+$/.test(metadata.name));
    const pod = pods[Math.floor(random(0, pods.length))];
    if (!pod) return;
    const { admin } = scene.cluster;
    const { name, labels = {} } = pod.metadata;
    const podPath = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const job = `/apis/batch/v1/namespaces/${namespace}/jobs/${labels['batch.kubernetes.io/job-name']}`;
    const strikes = [
      () => admin.ask('POST', `${podPath}/eviction`, { metadata: { name } }),
      () => admin.ask('DELETE', podPath),
      () => admin.ask('DELETE', job, { propagationPolicy: 'Background' }),
    ];
    // What is struck may have gone, or the API server with it.
    await strikes[Math.floor(random(0, strikes.length))]?.().catch(() => undefined);
  }

  /** Kills the leader, and starts another controller in its place. */
  async function killLeader(): Promise<void> {
    const at = controllers.findIndex((controller) => controller.isLeading());
    const [killed] = controllers.splice(Math.max(0, at), 1);
    await killed?.end('SIGKILL');
    controllers.push(await startTestController(scene));
  }

  async function killPart(name: 'kube-apiserver' | 'etcd'): Promise<void> {
    const { admin, parts } = scene.cluster;
    await parts[name].kill();
    parts[name].start();
    await until(() => isReady(admin), 60, `the API server answers after ${name} was killed`);
  }

  it('no job is lost, none is charged twice, every attempt is recorded, and nothing is left', async () => {
    const ids: string[] = [];
    for (let n = 0; n < count; n++) ids.push(await scene.submit(planOf));
    let kills = 0;
    let isOver = false;
    const trouble = (async () => {
      while (!isOver) {
        for (let n = 0; n < 3; n++) await strike();
        await killLeader();
        if (++kills === 3) await killPart('kube-apiserver');
        if (kills === 5) await killPart('etcd');
      }
    })();
    const open = new Set(ids);
    await until(
      async () => {
        for (const id of open) if (isEnded((await scene.job(id)).status)) open.delete(id);
        return open.size === 0;
      },
      isLong ? 1_500 : 240,
      `all jobs end: ${controllers.length} controllers`,
    );
    isOver = true;
    await trouble;
    expect(kills).to.be.above(0);
    expect(await scene.wrongs(ids)).to.deep.equal([]);
    const found = await Promise.all(ids.map(scene.job));
    expect(found.filter(({ error_code }) => error_code === 'worker_lost')).to.deep.equal([]);
    for (const job of found) {
      const marks = await readAttempts(scene.store, job.id);
      const ends = marks.filter(({ ended_at }) => ended_at !== undefined).map(({ attempt }) => attempt);
      expect(ends, job.id).to.deep.equal(Array.from({ length: job.attempt }, (_, n) => n + 1));
    }
    await until(() => controllers.some((controller) => controller.isLeading()), 30, 'somebody leads');
    await scene.cleared(60);
  });
});
