import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { startController } from '../../src/controller/controller.ts';
import { recordVerdict } from '../../src/store/jobs/record-verdict.ts';
import { isReady } from '../support/cluster/cluster.ts';
import { startTestController, type TestController } from '../support/cluster/controller.ts';
import type { Ending, Pod } from '../support/cluster/pod.ts';
import { countLeft, openTestRunner } from '../support/cluster/runner.ts';
import { namespace, type Scene, setScene } from '../support/cluster/scene.ts';
import { jobLimits } from '../support/job-limits.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('jobs on a cluster end once, whatever happens', function () {
  this.timeout(120_000);
  let scene: Scene;
  const controllers: TestController[] = [];
  const begin = async () => {
    const controller = await startTestController(scene);
    controllers.push(controller);
    return controller;
  };

  before(async () => {
    scene = await setScene();
  });
  afterEach(async () => {
    for (const controller of controllers.splice(0)) {
      controller.process.kill('SIGCONT');
      await controller.end('SIGTERM');
    }
  });
  after(() => scene?.stop());

  const submit = (count: number, plan?: Parameters<Scene['submit']>[0]) =>
    Promise.all(Array.from({ length: count }, () => scene.submit(plan)));
  const allEnd = async (ids: readonly string[], seconds: number) => {
    const jobs = await Promise.all(ids.map((id) => scene.ended(id, seconds)));
    expect(jobs.map(({ status }) => status)).to.deep.equal(ids.map(() => 'CompletedJob'));
    expect(await scene.wrongs(ids)).to.deep.equal([]);
    await scene.cleared(30);
    return jobs;
  };

  it('D73: a job becomes a Job, its pod ends, it is charged, and nothing is left of it', async () => {
    await begin();
    const [job] = await allEnd(await submit(1), 30);
    expect(job).to.include({ attempt: 1, failures: 0, interruptions: 0 });
  });

  it('leaves a cleaned-up pod counted until the Job controller has seen it, so that it is not replaced', async () => {
    await begin();
    const [id = ''] = await submit(1, (_, ending) => ({ runMs: 500, ending }));
    const pod = await scene.runningPod(id);
    const others = scene.cluster.parts['kube-controller-manager'];
    others.freeze();
    await scene.ended(id, 30);
    const finalizers = async (): Promise<string[]> => {
      const path = `/api/v1/namespaces/${namespace}/pods/${pod.metadata.name}`;
      return (await scene.cluster.admin.ask('GET', path)).metadata.finalizers ?? [];
    };
    await until(async () => !(await finalizers()).includes('trawl/unsettled'), 20, 'our finalizer is gone');
    expect(await finalizers()).to.deep.equal(['batch.kubernetes.io/job-tracking']);
    others.thaw();
    await scene.cleared(30);
  });

  it('defers the cleanup of ended attempts while other Jobs wait for their pods', async () => {
    await begin();
    const ids = await submit(80);
    const isOld = ({ metadata, status }: Pod) => {
      const end = status.containerStatuses?.[0]?.state.terminated?.finishedAt;
      const isHeld = metadata.finalizers?.includes('trawl/unsettled');
      return isHeld && end !== undefined && Date.now() - Date.parse(end) > 4_000;
    };
    const pods = async (): Promise<Pod[]> =>
      (await scene.cluster.admin.ask('GET', `/api/v1/namespaces/${namespace}/pods`)).items;
    await until(async () => (await pods()).filter(isOld).length >= 5, 30, 'five have ended and are held');
    await allEnd(ids, 60);
  });

  it('a worker is told in its environment where things are, also folders of its image, and nothing secret', async () => {
    await begin();
    const ids = await submit(1, (_, ending) => ({ runMs: 500, ending }));
    const pod = await scene.runningPod(ids[0] ?? '');
    const path = `/api/v1/namespaces/${namespace}/pods/${pod.metadata.name}`;
    const { spec } = await scene.cluster.admin.ask('GET', path);
    const env: { name: string; value: string }[] = spec.containers[0].env;
    expect(Object.fromEntries(env.map(({ name, value }) => [name, value]))).to.deep.equal({
      TRAWL_GATEWAY_ADDRESS: 'http://gateway:8082',
      TRAWL_EGRESS_ADDRESS: 'http://egress:3128',
      TRAWL_LOG_LEVEL: 'debug',
      TRAWL_YTDLP_PLUGINS: '/opt/plugins:/opt/more',
      TRAWL_DATA: '/scratch',
      HOME: '/scratch',
      TMPDIR: '/scratch',
      XDG_CACHE_HOME: '/scratch/cache',
      TRAWL_TERMINATION_FILE: '/dev/termination-log',
    });
    await allEnd(ids, 30);
  });

  it('a stopped leader comes back: the other one has ended its jobs, and it changes nothing any more', async () => {
    const [first, second] = [await begin(), await begin()];
    await until(() => first.isLeading(), 10, 'the first one leads');
    const ids = await submit(10, (_, ending) => ({ runMs: 1_000, ending }));
    await scene.runningPod(ids[0] ?? '');
    first.process.kill('SIGSTOP');
    await until(() => second.isLeading(), 20, 'the second one leads');
    const more = await submit(10);
    const others = await Promise.all(ids.slice(1).map((id) => scene.ended(id, 60)));
    first.process.kill('SIGCONT');
    await allEnd([...ids, ...more], 60);
    await until(() => !first.isLeading(), 10, 'the first one knows that it leads no more');
    expect(await Promise.all(others.map(({ id }) => scene.job(id)))).to.deep.equal(others);
  });

  it('a leader is killed after a verdict was told: the next one completes the job, though nothing is left of its worker', async () => {
    const first = await begin();
    let deliver: (() => Promise<Ending>) | undefined;
    const [id = ''] = await submit(1, (_, delivers) => {
      deliver ??= delivers;
      return {};
    });
    const pod = await scene.runningPod(id);
    const said = await deliver?.();
    expect(await recordVerdict(scene.store, id, 1, JSON.parse(said?.message ?? ''))).to.deep.equal({ done: true });
    await first.end('SIGKILL');
    await takeAway(pod);
    await begin();
    const [job] = await allEnd([id], 30);
    expect(job).to.include({ attempt: 1, failures: 0, interruptions: 0 });
  });

  /** Removes a Job and its pod as if they had never been. */
  async function takeAway({ metadata: { name, labels } }: Pod): Promise<void> {
    const { admin } = scene.cluster;
    const job = `/apis/batch/v1/namespaces/${namespace}/jobs/${labels?.['batch.kubernetes.io/job-name']}`;
    const options = { gracePeriodSeconds: 0, propagationPolicy: 'Background' };
    for (const path of [job, `/api/v1/namespaces/${namespace}/pods/${name}`]) {
      await admin.ask('PATCH', path, { metadata: { finalizers: null } });
      await admin.ask('DELETE', path, options);
    }
    await until(async () => (await countLeft(scene.cluster, namespace)) === 0, 20, 'nothing is left of it');
  }

  it('the API server is killed while jobs wait, start, run and end', async () => {
    await begin();
    const ids = await submit(20);
    await scene.runningPod(ids[0] ?? '');
    await scene.cluster.parts['kube-apiserver'].kill();
    ids.push(...(await submit(10)));
    scene.cluster.parts['kube-apiserver'].start();
    await until(() => isReady(scene.cluster.admin), 30, 'the API server answers');
    await allEnd(ids, 60);
  });

  it('the API server hangs, and its watches with it', async () => {
    const controller = await begin();
    const ids = await submit(20, (_, ending) => ({ runMs: 500, ending }));
    await scene.runningPod(ids[0] ?? '');
    scene.cluster.parts['kube-apiserver'].freeze();
    ids.push(...(await submit(10)));
    await until(() => controller.said().includes('The API server does not answer'), 60, 'it is noticed');
    scene.cluster.parts['kube-apiserver'].thaw();
    await allEnd(ids, 20);
  });

  it('with all hints lost and every watch cut, the full pass alone ends every job', async () => {
    const { cluster, store, objects } = scene;
    const { log } = aLog();
    const runner = await openTestRunner({
      ...{ cluster, namespace, log },
      between: (client) => ({ ...client, open: () => Promise.reject(new Error('no watch in this test')) }),
    });
    const deaf = { ...store.connection, subscribe: async () => async () => {} };
    const controller = await startController({
      ...{ limits: jobLimits, objects, log, slots: 60, runners: [runner], runnerOf: () => runner },
      store: { ...store, connection: deaf },
      metrics: makeMetrics(),
      times: { fullPassMs: 1_000 },
    });
    await allEnd(await submit(10), 60);
    await controller.close();
  });
});
