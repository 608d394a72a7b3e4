import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { startController } from '../../src/controller/controller.ts';
import { sharesOf } from '../../src/model/preemption.ts';
import { recordVerdict } from '../../src/store/jobs/record-verdict.ts';
import { isReady } from '../support/cluster/cluster.ts';
import { startTestController, type TestController } from '../support/cluster/controller.ts';
import type { Ending, Pod } from '../support/cluster/pod.ts';
import { countLeft, openTestRunner } from '../support/cluster/runner.ts';
import { namespace, startTestbed, type Testbed } from '../support/cluster/testbed.ts';
import { jobLimits } from '../support/job-limits.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('jobs on a cluster', () => {
  let testbed: Testbed;
  const controllers: TestController[] = [];
  const begin = async () => {
    const controller = await startTestController(testbed);
    controllers.push(controller);
    return controller;
  };

  before(async () => {
    testbed = await startTestbed();
  });
  afterEach(async () => {
    for (const controller of controllers.splice(0)) {
      controller.process.kill('SIGCONT');
      await controller.end('SIGTERM');
    }
  });
  after(() => testbed?.stop());

  const submit = (count: number, plan?: Parameters<Testbed['submit']>[0]) =>
    Promise.all(Array.from({ length: count }, () => testbed.submit(plan)));
  const allEnd = async (ids: readonly string[], seconds: number) => {
    const jobs = await Promise.all(ids.map((id) => testbed.waitUntilEnded(id, seconds)));
    expect(jobs.map(({ status }) => status)).to.deep.equal(ids.map(() => 'CompletedJob'));
    expect(await testbed.findProblems(ids)).to.deep.equal([]);
    await testbed.waitUntilEmpty(30);
    return jobs;
  };

  it('D73: run as one Job each, are charged once, and leave nothing behind', async () => {
    await begin();
    const [job] = await allEnd(await submit(1), 30);
    expect(job).to.include({ attempt: 1, failures: 0, interruptions: 0 });
  });

  it('whose pod is cleaned up are not started again while the Job controller is stopped', async () => {
    await begin();
    const [id = ''] = await submit(1, (_, ending) => ({ runMs: 500, ending }));
    const pod = await testbed.runningPod(id);
    const others = testbed.cluster.parts['kube-controller-manager'];
    others.freeze();
    await testbed.waitUntilEnded(id, 30);
    const finalizers = async (): Promise<string[]> => {
      const path = `/api/v1/namespaces/${namespace}/pods/${pod.metadata.name}`;
      return (await testbed.cluster.admin.ask('GET', path)).metadata.finalizers ?? [];
    };
    await until(async () => !(await finalizers()).includes('trawl/unsettled'), 20, 'our finalizer is gone');
    expect(await finalizers()).to.deep.equal(['batch.kubernetes.io/job-tracking']);
    others.thaw();
    await testbed.waitUntilEmpty(30);
  });

  it('jobs that have ended are cleaned up later while other Jobs wait for their pods', async () => {
    await begin();
    const ids = await submit(80);
    const isOld = ({ metadata, status }: Pod) => {
      const end = status.containerStatuses?.[0]?.state.terminated?.finishedAt;
      const isHeld = metadata.finalizers?.includes('trawl/unsettled');
      return isHeld && end !== undefined && Date.now() - Date.parse(end) > 4_000;
    };
    const pods = async (): Promise<Pod[]> =>
      (await testbed.cluster.admin.ask('GET', `/api/v1/namespaces/${namespace}/pods`)).items;
    await until(async () => (await pods()).filter(isOld).length >= 5, 30, 'five have ended and are held');
    await allEnd(ids, 60);
  });

  it('have addresses and folders of the image in the environment of their worker, and no secret', async () => {
    await begin();
    const ids = await submit(1, (_, ending) => ({ runMs: 500, ending }));
    const pod = await testbed.runningPod(ids[0] ?? '');
    const path = `/api/v1/namespaces/${namespace}/pods/${pod.metadata.name}`;
    const { spec } = await testbed.cluster.admin.ask('GET', path);
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

  it('jobs that the next leader has ended stay as they are when the stopped leader comes back', async () => {
    const [first, second] = [await begin(), await begin()];
    await until(() => first.isLeading(), 10, 'the first one leads');
    const ids = await submit(10, (_, ending) => ({ runMs: 1_000, ending }));
    await testbed.runningPod(ids[0] ?? '');
    first.process.kill('SIGSTOP');
    await until(() => second.isLeading(), 20, 'the second one leads');
    const more = await submit(10);
    const others = await Promise.all(ids.slice(1).map((id) => testbed.waitUntilEnded(id, 60)));
    first.process.kill('SIGCONT');
    await allEnd([...ids, ...more], 60);
    await until(() => !first.isLeading(), 10, 'the first one knows that it leads no more');
    expect(await Promise.all(others.map(({ id }) => testbed.job(id)))).to.deep.equal(others);
  });

  it('with a verdict are completed by the next leader although Job and pod are gone', async () => {
    const first = await begin();
    let deliver: (() => Promise<Ending>) | undefined;
    const [id = ''] = await submit(1, (_, delivers) => {
      deliver ??= delivers;
      return {};
    });
    const pod = await testbed.runningPod(id);
    const said = await deliver?.();
    expect(await recordVerdict(testbed.store, id, 1, JSON.parse(said?.message ?? ''))).to.deep.equal({ done: true });
    await first.end('SIGKILL');
    await takeAway(pod);
    await begin();
    const [job] = await allEnd([id], 30);
    expect(job).to.include({ attempt: 1, failures: 0, interruptions: 0 });
  });

  /** Removes a Job and its pod as if they had never been. */
  async function takeAway({ metadata: { name, labels } }: Pod): Promise<void> {
    const { admin } = testbed.cluster;
    const job = `/apis/batch/v1/namespaces/${namespace}/jobs/${labels?.['batch.kubernetes.io/job-name']}`;
    const options = { gracePeriodSeconds: 0, propagationPolicy: 'Background' };
    const pod = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const release = (path: string) => admin.ask('PATCH', path, { metadata: { finalizers: null } });
    await release(job);
    await admin.ask('DELETE', job, options);
    // The garbage collector may be faster with the pod, and take it away at any of these requests.
    await release(pod)
      .then(() => admin.ask('DELETE', pod, options))
      .catch(() => undefined);
    await until(async () => (await countLeft(testbed.cluster, namespace)) === 0, 20, 'nothing is left of it');
  }

  it('complete once when the API server is killed while they wait, start, run and end', async () => {
    await begin();
    const ids = await submit(20);
    await testbed.runningPod(ids[0] ?? '');
    await testbed.cluster.parts['kube-apiserver'].kill();
    ids.push(...(await submit(10)));
    testbed.cluster.parts['kube-apiserver'].start();
    await until(() => isReady(testbed.cluster.admin), 30, 'the API server answers');
    await allEnd(ids, 60);
  });

  it('complete once when the API server hangs with its watches', async () => {
    const controller = await begin();
    const ids = await submit(20, (_, ending) => ({ runMs: 500, ending }));
    await testbed.runningPod(ids[0] ?? '');
    testbed.cluster.parts['kube-apiserver'].freeze();
    ids.push(...(await submit(10)));
    await until(() => controller.output().includes('The API server does not answer'), 60, 'it is noticed');
    testbed.cluster.parts['kube-apiserver'].thaw();
    await allEnd(ids, 20);
  });

  it('complete by the full pass alone when all hints and watches are lost', async () => {
    const { cluster, store, objects } = testbed;
    const { log } = aLog();
    const runner = await openTestRunner({
      ...{ cluster, namespace, log },
      between: (client) => ({ ...client, open: () => Promise.reject(new Error('no watch in this test')) }),
    });
    const deaf = { ...store.connection, subscribe: async () => async () => {} };
    const controller = await startController({
      ...{ limits: jobLimits, objects, log, shares: sharesOf(60, 0, 30), runners: [runner], runnerOf: () => runner },
      store: { ...store, connection: deaf },
      metrics: makeMetrics(),
      traces: null,
      times: { fullPassMs: 1_000 },
    });
    await allEnd(await submit(10), 60);
    await controller.close();
  });
});
