import { existsSync } from 'node:fs';
import { expect } from 'chai';
import { type Cluster, isReady, makeNamespace, startCluster } from '../support/cluster/cluster.ts';
import { type FakeKubelet, type Plan, startFakeKubelet } from '../support/cluster/fake-kubelet.ts';
import { type JobOptions, makeJob } from '../support/cluster/job.ts';
import { kubectl } from '../support/cluster/kubectl.ts';
import { endings } from '../support/cluster/pod.ts';
import { until } from '../support/until.ts';
import { processesOf } from '../support/worker.ts';

const finalizer = 'test.example/held';
const plans: Record<string, Plan> = {
  'out-of-memory': { runMs: 10, ending: endings.outOfMemory() },
  'over-disk': { runMs: 10, ending: endings.overDisk() },
  'node-pressure': { runMs: 10, ending: endings.nodePressure() },
  'no-image': { waits: { reason: 'ImagePullBackOff', message: 'no such image' } },
  deaf: { onTerm: { afterMs: 60_000, ending: endings.success() } },
};

describe('a control plane and a fake kubelet', () => {
  let cluster: Cluster;
  let kubelet: FakeKubelet;

  before(async () => {
    cluster = await startCluster();
    const plan = (name: string) => plans[name] ?? {};
    kubelet = await startFakeKubelet(cluster, {
      nodes: 2,
      plan: ({ metadata }) => plan(metadata.labels?.['batch.kubernetes.io/job-name'] ?? ''),
    });
    await makeNamespace(cluster, 'jobs', { 'pod-security.kubernetes.io/enforce': 'restricted' });
  });

  after(async () => {
    await kubelet?.stop();
    await cluster?.stop();
    if (cluster) expect([existsSync(cluster.folder), processesOf(cluster.folder)]).to.deep.equal([false, []]);
  });

  const submit = (name: string, options?: JobOptions) =>
    cluster.admin.ask('POST', '/apis/batch/v1/namespaces/jobs/jobs', makeJob(name, options));

  /** The pod of a Job, once the condition holds. */
  async function podOf(job: string, condition: (pod: Seen) => boolean, what: string): Promise<Seen> {
    const path = `/api/v1/namespaces/jobs/pods?labelSelector=batch.kubernetes.io/job-name%3D${job}`;
    const ask = async () => (await cluster.admin.ask<{ items: Seen[] }>('GET', path)).items[0];
    return (await until(
      async () => {
        const pod = await ask();
        return pod && condition(pod) && pod;
      },
      20,
      `the pod of ${job} ${what}`,
    )) as Seen;
  }

  const phaseIs = (phase: string) => (pod: Seen) => pod.status.phase === phase;
  const isRunning = (job: string) => podOf(job, phaseIs('Running'), 'runs');
  const remove = (name: string) => kubectl(cluster, ['delete', 'pod', '-n', 'jobs', '--wait=false', name]);

  it('a Job is complete when the test ends its pod with success', async () => {
    await submit('good');
    const { metadata } = await isRunning('good');
    expect(kubelet.running().map((pod) => pod.metadata.name)).to.deep.equal([metadata.name]);
    kubelet.end(metadata.name, endings.success('all is well'));
    await kubectl(cluster, ['wait', '-n', 'jobs', 'job/good', '--for=condition=Complete', '--timeout=20s']);
    const { status } = await podOf('good', phaseIs('Succeeded'), 'has succeeded');
    expect(terminated(status)).to.include({ exitCode: 0, reason: 'Completed', message: 'all is well' });
  });

  it('a Job has failed when the test ends its pod with an exit code', async () => {
    await submit('bad');
    const { metadata } = await isRunning('bad');
    kubelet.end(metadata.name, endings.failure(65, 'gone'));
    await kubectl(cluster, ['wait', '-n', 'jobs', 'job/bad', '--for=condition=Failed', '--timeout=20s']);
    const { status } = await podOf('bad', phaseIs('Failed'), 'has failed');
    expect(terminated(status)).to.include({ exitCode: 65, reason: 'Error', message: 'gone' });
  });

  for (const [job, exit, reason, isDisrupted] of [
    ['out-of-memory', { exitCode: 137, reason: 'OOMKilled' }, undefined, false],
    ['over-disk', { exitCode: 143, reason: 'Error' }, 'Evicted', false],
    ['node-pressure', { exitCode: 137, reason: 'Error' }, 'Evicted', true],
  ] as const) {
    it(`a pod ends ${job} by its plan`, async () => {
      await submit(job);
      const { status } = await podOf(job, phaseIs('Failed'), 'has failed');
      expect(terminated(status)).to.include(exit);
      expect(status.reason).to.equal(reason);
      expect(status.conditions.some(({ type }) => type === 'DisruptionTarget')).to.equal(isDisrupted);
    });
  }

  it('a pod whose image is missing never starts, and is deleted without a state of its containers', async () => {
    await submit('no-image', { finalizers: [finalizer] });
    const isWaiting = ({ status }: Seen) => status.containerStatuses?.[0]?.state.waiting !== undefined;
    const { metadata, status } = await podOf('no-image', isWaiting, 'waits');
    expect(status.phase).to.equal('Pending');
    expect(status.containerStatuses?.[0]?.state.waiting).to.deep.equal({
      reason: 'ImagePullBackOff',
      message: 'no such image',
    });
    await remove(metadata.name);
    const ended = await podOf('no-image', phaseIs('Failed'), 'has failed');
    expect(terminated(ended.status)).to.include({ exitCode: 137, reason: 'ContainerStatusUnknown', finishedAt: null });
  });

  it('a pod ends when its deadline is over', async () => {
    await submit('late', { pod: { activeDeadlineSeconds: 1 } });
    const { status } = await podOf('late', phaseIs('Failed'), 'has failed');
    expect(status.reason).to.equal('DeadlineExceeded');
    expect(terminated(status)).to.include({ exitCode: 143 });
  });

  it('a deleted pod ends within its grace period and stays while it has a finalizer', async () => {
    await submit('held', { finalizers: [finalizer] });
    const { metadata } = await isRunning('held');
    await remove(metadata.name);
    const { status } = await podOf('held', phaseIs('Failed'), 'has failed');
    expect(terminated(status)).to.include({ exitCode: 143, reason: 'Error' });
    await cluster.admin.ask('PATCH', `/api/v1/namespaces/jobs/pods/${metadata.name}`, {
      metadata: { '$deleteFromPrimitiveList/finalizers': [finalizer] },
    });
    await kubectl(cluster, ['wait', '-n', 'jobs', `pod/${metadata.name}`, '--for=delete', '--timeout=20s']);
  });

  it('a pod that ignores SIGTERM is killed after its grace period', async () => {
    await submit('deaf', { finalizers: [finalizer], pod: { terminationGracePeriodSeconds: 1 } });
    const { metadata } = await isRunning('deaf');
    await remove(metadata.name);
    const { status } = await podOf('deaf', phaseIs('Failed'), 'has failed');
    expect(terminated(status)).to.include({ exitCode: 137 });
  });

  it('the end of a pod on a disconnected node is reported when the node is back', async () => {
    await submit('cut');
    const { metadata, spec } = await isRunning('cut');
    kubelet.cutOff(spec.nodeName);
    kubelet.end(metadata.name, endings.success());
    await submit('other', { pod: { nodeSelector: { 'kubernetes.io/hostname': other(spec.nodeName) } } });
    await isRunning('other');
    expect((await isRunning('cut')).status.phase).to.equal('Running');
    kubelet.restore(spec.nodeName);
    await podOf('cut', phaseIs('Succeeded'), 'has succeeded');
  });

  it('the end of a pod while the API server is away is reported when it is back', async () => {
    await submit('away');
    const { metadata } = await isRunning('away');
    await cluster.parts['kube-apiserver'].kill();
    kubelet.end(metadata.name, endings.success());
    cluster.parts['kube-apiserver'].start();
    await until(() => isReady(cluster.admin), 20, 'the API server answers');
    await podOf('away', phaseIs('Succeeded'), 'has succeeded');
  });

  const other = (node: string) => kubelet.nodes.find((name) => name !== node) ?? '';
});

interface Seen {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly nodeName: string };
  readonly status: {
    readonly phase: string;
    readonly reason?: string;
    readonly conditions: readonly { readonly type: string }[];
    readonly containerStatuses?: readonly { readonly state: Readonly<Record<string, object>> }[];
  };
}

function terminated({ containerStatuses }: Seen['status']): object {
  return containerStatuses?.[0]?.state.terminated ?? {};
}
