import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { type Controller, startController } from '../../src/controller/controller.ts';
import { sharesOf } from '../../src/model/preemption.ts';
import { startAdmissionWebhook } from '../support/cluster/admission-webhook.ts';
import { quickLoss } from '../support/cluster/cluster.ts';
import type { Pod } from '../support/cluster/pod.ts';
import { aShape, openTestRunner, type TestRunner } from '../support/cluster/runner.ts';
import { namespace, startTestbed, type Testbed } from '../support/cluster/testbed.ts';
import { changeAdmissionPolicy } from '../support/cluster/worker-namespace.ts';
import { jobLimits } from '../support/job-limits.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const limits = { ...jobLimits, maxAttempts: 2 };
const image = 'The image of the worker is being fetched';
const start = 'The worker cannot be started yet';

/** Waiting reason of a container, the stage that its caller reads, and the seconds until it counts as a failure. */
const waits = [
  ['ErrImagePull', 'no such host', image, 180],
  ['ImagePullBackOff', 'no such image', image, 180],
  ['CreateContainerConfigError', 'no such key', start, 60],
  ['CreateContainerError', 'no such user', start, 180],
  ['RunContainerError', 'no such file', start, 180],
] as const;

describe('a worker that cannot start in a cluster', () => {
  let testbed: Testbed;
  const { log, lines } = aLog();

  before(async () => {
    testbed = await startTestbed({ flags: quickLoss });
  });
  after(() => testbed?.stop());

  /** Runs jobs with workers of this shape in this process, whose clock goes by that of the record. */
  async function controlled(queue: string | null, work: (controller: Controller, runner: TestRunner) => Promise<void>) {
    const { cluster, store, objects } = testbed;
    await changeAdmissionPolicy(cluster.admin.ask, { ...aShape(namespace), queue });
    const runner = await openTestRunner({ ...{ cluster, namespace, log }, now: store.clock.now, shape: { queue } });
    const controller = await startController({
      ...{ store, limits, objects, log, shares: sharesOf(10, 0, 30), runners: [runner], runnerOf: () => runner },
      metrics: makeMetrics(),
      traces: null,
      times: { renewMs: 100 },
    });
    try {
      await work(controller, runner);
    } finally {
      await controller.close();
      // The cluster writes the true time: the next test begins there.
      store.advance(-store.clock.offset());
    }
  }

  const says = (id: string, stage: string) =>
    until(async () => (await testbed.job(id)).stage === stage, 30, `${id} says: ${stage}`);
  const pass = async (controller: Controller, id: string, seconds: number) => {
    testbed.store.advance(seconds * 1000);
    await until(() => controller.isLeading(), 10, 'it leads again');
    controller.hint(id);
  };
  const ends = async (controller: Controller, id: string) => {
    const isEnded = async () => {
      controller.hint(id);
      return (await testbed.job(id)).ended_at !== null;
    };
    await until(isEnded, 60, `${id} ends`);
    expect(await testbed.findProblems([id])).to.deep.equal([]);
    await testbed.waitUntilEmpty(30);
    return testbed.job(id);
  };
  const ask: Testbed['cluster']['admin']['ask'] = (...words) => testbed.cluster.admin.ask(...words);
  const waitsWithoutPod = async (controller: Controller, id: string, stage: string) => {
    const isSaid = async () => {
      await pass(controller, id, 1);
      return (await testbed.job(id)).stage === stage;
    };
    await until(isSaid, 30, `${id} says: ${stage}`);
  };
  const cordon = (unschedulable: boolean) => {
    const nodes = testbed.kubelet.nodes.map((node) => `/api/v1/nodes/${node}`);
    return Promise.all(nodes.map((node) => ask('PATCH', node, { spec: { unschedulable } })));
  };

  for (const [reason, message, stage, seconds] of waits) {
    it(`with ${reason} fails after ${seconds} s, is logged as an error, and is tried again`, () =>
      controlled(null, async (controller) => {
        const id = await testbed.submit((attempt) => (attempt === 1 ? { waits: { reason, message } } : undefined));
        await says(id, stage);
        await pass(controller, id, seconds);
        await until(async () => (await testbed.job(id)).failures === 1, 30, 'the first attempt has failed');
        expect(lines.join('\n')).to.match(new RegExp(`"level":"error".*${reason}: ${message}`));
        await pass(controller, id, 5);
        expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 2 });
      }));
  }

  const isRefused = async (controller: Controller, said: RegExp, lift: () => Promise<unknown>) => {
    const id = await testbed.submit();
    await waitsWithoutPod(controller, id, 'The cluster makes no pod for it');
    await pass(controller, id, 180);
    await until(async () => (await testbed.job(id)).failures === 1, 30, 'the first attempt has failed');
    await lift();
    await pass(controller, id, 5);
    expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 2 });
    expect(lines.join('\n')).to.match(said);
  };
  const pods = { namespace, resource: 'pods' } as const;

  it('whose pod a LimitRange forbids fails after 180 s, is logged as an error, and is tried again', () =>
    controlled(null, async (controller) => {
      const limits = [{ type: 'Container', max: { memory: '16Mi' } }];
      const path = `/api/v1/namespaces/${namespace}/limitranges`;
      await ask('POST', path, { metadata: { name: 'tiny' }, spec: { limits } });
      const said = /"level":"error".*maximum memory usage per Container is 16Mi/;
      await isRefused(controller, said, () => ask('DELETE', `${path}/tiny`));
    }));

  it('whose pod a foreign admission webhook refuses fails after 180 s, is logged as an error, and is tried again', () =>
    controlled(null, async (controller) => {
      const hook = await startAdmissionWebhook(testbed.cluster, pods, () => ({ no: 'not here' }));
      await isRefused(controller, /"level":"error".*denied the request: not here/, hook.remove);
    }));

  it('whose pod a foreign admission webhook made unsafe fails after 180 s, is logged as an error, and is tried again', () =>
    controlled(null, async (controller) => {
      const path = '/spec/containers/0/securityContext/allowPrivilegeEscalation';
      const unsafe = { yes: [{ op: 'replace', path, value: true }] };
      const hook = await startAdmissionWebhook(testbed.cluster, pods, () => unsafe);
      await isRefused(controller, /"level":"error".*violates PodSecurity/, hook.remove);
    }));

  const ofPods = `/api/v1/namespaces/${namespace}/pods`;
  /** Submits a job whose first pod its node has not prepared, as its condition says. */
  const unprepared = async (runner: TestRunner) => {
    const waits = { reason: 'ContainerCreating', message: '' };
    const id = await testbed.submit((attempt) => (attempt === 1 ? { waits } : undefined));
    const findPod = async () => (await ask('GET', ofPods)).items.find((one: Pod) => one.status?.containerStatuses);
    const pod: Pod = await until(findPod, 30, 'a pod waits');
    const conditions = [{ type: 'PodReadyToStartContainers', status: 'False' }];
    await ask('PATCH', `${ofPods}/${pod.metadata.name}/status`, { status: { conditions } });
    await until(() => runner.state.pod(pod.metadata.name)?.isPrepared === false, 30, 'the runner knows');
    return { id, pod };
  };
  /** Records an event of a pod as its kubelet does. */
  const tell = ({ metadata: { name, uid } }: Pod, reason: string, message: string, secondsAgo: number) => {
    const lastTimestamp = `${new Date(Date.now() - secondsAgo * 1000).toISOString().slice(0, 19)}Z`;
    const involvedObject = { kind: 'Pod', namespace, name, uid };
    const event = { metadata: { generateName: `${name}.` }, involvedObject, reason, message, lastTimestamp };
    return ask('POST', `/api/v1/namespaces/${namespace}/events`, event);
  };

  it('whose node makes no network for it for 15 min is interrupted, is logged as an error, and completes', () =>
    controlled(null, async (controller, runner) => {
      const { id, pod } = await unprepared(runner);
      await tell(pod, 'FailedMount', 'not yet', 2);
      await tell(pod, 'FailedCreatePodSandBox', 'no free address', 1);
      await pass(controller, id, 300);
      await says(id, start);
      await pass(controller, id, 600);
      expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 2, interruptions: 1 });
      expect(lines.join('\n')).to.match(/"level":"error".*FailedCreatePodSandBox: no free address/);
    }));

  it('whose node pulls the image for more than 15 min waits, although the node says that the pod is unprepared', () =>
    controlled(null, async (controller, runner) => {
      const { id, pod } = await unprepared(runner);
      await tell(pod, 'FailedMount', 'not yet', 2);
      await tell(pod, 'Pulling', 'Pulling image "worker"', 1);
      testbed.store.advance(1_800_000);
      expect(await runner.see(`${id}-1`)).to.deep.equal({ is: 'waiting', reason: null });
      await runner.stop(`${id}-1`);
      expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 2 });
    }));

  it('whose ServiceAccount is replaced waits for the new one without a failure', () =>
    controlled(null, async (controller) => {
      const path = `/api/v1/namespaces/${namespace}/serviceaccounts`;
      const { metadata } = await ask('GET', `${path}/trawl-worker`);
      await ask('DELETE', `${path}/trawl-worker`);
      const id = await testbed.submit();
      await waitsWithoutPod(controller, id, 'The cluster makes no pod for it');
      await pass(controller, id, 120);
      await ask('POST', path, { metadata: { name: 'trawl-worker', labels: metadata.labels } });
      expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 1, failures: 0 });
    }));

  it('whose admission webhook does not answer waits until the webhook is removed', () =>
    controlled(null, async (controller) => {
      const hook = await startAdmissionWebhook(testbed.cluster, pods, () => ({ yes: [] }));
      await hook.silence();
      const id = await testbed.submit();
      await waitsWithoutPod(controller, id, 'The cluster makes no pod for it');
      await hook.remove();
      expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 1 });
    }));

  it('whose pod exceeds a ResourceQuota waits until the quota allows it, and is counted as one without a pod', () =>
    controlled(null, async (controller, { metrics }) => {
      const path = `/api/v1/namespaces/${namespace}/resourcequotas`;
      await ask('POST', path, { metadata: { name: 'none' }, spec: { hard: { pods: '0' } } });
      const counts = async () => (await ask('GET', `${path}/none`)).status?.hard?.pods === '0';
      await until(counts, 30, 'the quota counts');
      const id = await testbed.submit();
      await waitsWithoutPod(controller, id, 'The quota of the cluster is used up');
      const isCounted = async () => {
        const shown = await metrics.attempts_waiting.get();
        const counted = shown.values.filter(({ value }) => value > 0).map(({ labels, value }) => [labels.wait, value]);
        return isDeepStrictEqual(counted, [['pod', 1]]);
      };
      await until(isCounted, 30, 'an attempt waits for its pod');
      await ask('DELETE', `${path}/none`);
      expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 1 });
    }));

  it('whose registry answers toomanyrequests waits without a failure', () =>
    controlled(null, async (controller, runner) => {
      const waits = { reason: 'ImagePullBackOff', message: 'toomanyrequests: slow down' };
      const id = await testbed.submit((attempt) => (attempt === 1 ? { waits } : undefined));
      await says(id, image);
      testbed.store.advance(1_800_000);
      expect(await runner.see(`${id}-1`)).to.deep.equal({ is: 'waiting', reason: image });
      await runner.stop(`${id}-1`);
      expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 2 });
    }));

  it('a worker that no node has room for is tried again after 15 min, then ends as queue_timeout, and is logged as an error', () =>
    controlled(null, async (controller) => {
      await cordon(true);
      const id = await testbed.submit();
      await says(id, 'No node of the cluster has room for it');
      await pass(controller, id, 900);
      await until(async () => (await testbed.job(id)).failures === 1, 30, 'the first attempt has failed');
      // By the clock of this test the pod of the second one is as old when it is made.
      await pass(controller, id, 5);
      expect(await ends(controller, id)).to.include({
        ...{ status: 'Error', error_code: 'queue_timeout', attempt: 2 },
        error: 'No node of the cluster had room for the job',
      });
      await cordon(false);
      expect(lines.join('\n')).to.match(/"level":"error".*Unschedulable: 0\/2 nodes are available/);
    }));

  it('a worker that a queue of the cluster has admitted waits for a node for more than 15 min', () =>
    controlled('media', async (controller, runner) => {
      await cordon(true);
      const id = await testbed.submit();
      await says(id, 'No node of the cluster has room for it');
      testbed.store.advance(1_800_000);
      expect(await runner.see(`${id}-1`)).to.include({ is: 'waiting' });
      await cordon(false);
      expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 1 });
    }));

  it('is counted as lost after 125 s when all nodes are unreachable and Kubernetes evicts no pod', () =>
    controlled(null, async (controller, runner) => {
      const id = await testbed.submit((attempt) => (attempt === 1 ? {} : undefined));
      const { metadata } = await testbed.runningPod(id);
      for (const node of testbed.kubelet.nodes) testbed.kubelet.cutOff(node);
      const isUnheard = () => runner.state.pod(metadata.name)?.notReadySince !== null;
      await until(isUnheard, 30, 'the cluster hears nothing of the node');
      await until(async () => (await runner.see(`${id}-1`)).is === 'running', 5, 'it is let alone');
      expect(runner.state.pod(metadata.name)?.deletedAt).to.equal(null);
      await pass(controller, id, 125);
      await until(async () => (await testbed.job(id)).interruptions === 1, 30, 'the first attempt is lost');
      for (const node of testbed.kubelet.nodes) testbed.kubelet.restore(node);
      expect(await ends(controller, id)).to.include({ status: 'CompletedJob', attempt: 2 });
    }));
});
