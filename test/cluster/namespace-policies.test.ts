import { expect } from 'chai';
import { makeJob, type WorkerShape } from '../../src/runners/kubernetes/job-manifest.ts';
import { openKubeClient } from '../../src/runners/kubernetes/kube-client.ts';
import { makeRateLimiter } from '../../src/runners/kubernetes/rate-limiter.ts';
import { type Cluster, startCluster } from '../support/cluster/cluster.ts';
import { type FakeKubelet, startFakeKubelet } from '../support/cluster/fake-kubelet.ts';
import { accessAs, aShape, makeWorkersNamespace } from '../support/cluster/runner.ts';
import { attemptName } from '../support/cluster-objects.ts';
import type { Json } from '../support/json.ts';
import { until } from '../support/until.ts';

const namespace = 'workers';
const jobs = `/apis/batch/v1/namespaces/${namespace}/jobs`;
const pods = `/api/v1/namespaces/${namespace}/pods`;

/** What is refused, how the pod of a Job of ours is changed to become it, and what is said. */
const rows: [title: string, change: (pod: Json, worker: Json) => void, said: string][] = [
  ['another image', (_, worker) => (worker.image = 'local.test/shell:1'), 'only the image of workers'],
  ['a command', (_, worker) => (worker.command = ['/bin/sh']), 'only the command of workers'],
  ['other words', (_, worker) => (worker.args = ['api']), 'only the command of workers'],
  [
    'a hook that runs a command',
    (_, worker) => (worker.lifecycle = { postStart: { exec: { command: ['node'] } } }),
    'only the command of workers',
  ],
  [
    'an environment that loads code',
    (_, worker) => worker.env.push({ name: 'NODE_OPTIONS', value: '--import=/scratch/x.js' }),
    'only the environment of workers',
  ],
  [
    'an environment out of a Secret',
    (_, worker) => worker.env.push({ name: 'TRAWL_SANDBOX', valueFrom: { secretKeyRef: { name: 'x', key: 'y' } } }),
    'only the environment of workers',
  ],
  ['a second container', (pod, worker) => pod.containers.push({ ...worker, name: 'second' }), 'one container'],
  ['a container before it', (pod, worker) => (pod.initContainers = [{ ...worker, name: 'first' }]), 'one container'],
  ['another account', (pod) => (pod.serviceAccountName = 'trawl-controller'), 'only the account of workers'],
  [
    'a token for the API server',
    (pod) => (pod.automountServiceAccountToken = true),
    'only the account of workers, and no token',
  ],
  [
    'a folder of the node',
    (pod) => pod.volumes.push({ name: 'node', hostPath: { path: '/' } }),
    'only an empty folder and a token for the gateway',
  ],
  [
    'a Secret as a volume',
    (pod) => pod.volumes.push({ name: 'secret', secret: { secretName: 'x' } }),
    'only an empty folder and a token for the gateway',
  ],
  [
    'a token for somebody else',
    (pod) => (pod.volumes[1].projected.sources[0].serviceAccountToken.audience = 'https://kubernetes.default.svc'),
    'only an empty folder and a token for the gateway',
  ],
  [
    'the network of the node',
    (pod) => Object.assign(pod, { hostNetwork: true, hostUsers: true }),
    'nothing of the node',
  ],
  ['the processes of the node', (pod) => Object.assign(pod, { hostPID: true, hostUsers: true }), 'nothing of the node'],
  ['the users of the node', (pod) => (pod.hostUsers = true), 'nothing of the node'],
  [
    'all rights on the node',
    (_, worker) => Object.assign(worker.securityContext, { privileged: true, allowPrivilegeEscalation: true }),
    'no rights that workers do not need',
  ],
  [
    'a root folder that can be written',
    (_, worker) => (worker.securityContext.readOnlyRootFilesystem = false),
    'no rights that workers do not need',
  ],
  ['no limit of memory', (_, worker) => delete worker.resources.limits.memory, 'limits of time, memory and disk'],
  ['no limit of time', (pod) => delete pod.activeDeadlineSeconds, 'limits of time, memory and disk'],
];

describe('the namespace of the workers', function () {
  this.timeout(120_000);
  let cluster: Cluster;
  let kubelet: FakeKubelet;
  const shape: WorkerShape = aShape(namespace);

  before(async () => {
    cluster = await startCluster();
    kubelet = await startFakeKubelet(cluster);
    await makeWorkersNamespace(cluster, namespace);
  });
  after(async () => {
    await kubelet?.stop();
    await cluster?.stop();
  });

  const ask: Cluster['admin']['ask'] = (...words) => cluster.admin.ask(...words);
  const aJob = (change: (typeof rows)[number][1] = () => undefined): Json => {
    const attempt = { name: attemptName, jobId: attemptName.slice(0, -2), attempt: 1, endpoint: 'video' } as const;
    const job = structuredClone(makeJob({ ...attempt, deadline: Date.now() + 60_000 }, shape, Date.now())) as Json;
    const { spec } = job.spec.template;
    change(spec, spec.containers[0]);
    return job;
  };
  const refusal = (asked: Promise<unknown>): Promise<string> =>
    asked.then(
      () => 'it was let in',
      (error: Error) => error.message,
    );

  for (const [title, change, said] of rows) {
    it(`lets nobody in with ${title}, not even our controller`, async () => {
      const access = await accessAs(cluster, namespace, 'trawl-controller');
      const client = openKubeClient({ access, rateLimit: makeRateLimiter(100, 100, () => performance.now()) });
      expect(await refusal(client.ask('POST', jobs, { body: aJob(change) }))).to.include(`trawl: ${said}`);
      await client.close();
    });
  }

  it('lets no pod in that no Job of ours makes, nor a container into a pod that runs, nor another image', async () => {
    const { metadata, spec } = aJob().spec.template;
    const foreign = { ...spec, containers: [{ ...spec.containers[0], image: 'local.test/shell:1' }] };
    expect(await refusal(ask('POST', pods, { metadata: { name: 'foreign' }, spec: foreign }))).to.include(
      'only the image',
    );
    await ask('POST', pods, { metadata: { ...metadata, name: 'own' }, spec });
    const own = `${pods}/own`;
    await until(async () => (await ask('GET', own)).status.phase === 'Running', 20, 'our own pod runs');
    const { securityContext } = spec.containers[0];
    const debug = { name: 'debug', image: shape.image, securityContext };
    const added = ask('PATCH', `${own}/ephemeralcontainers`, { spec: { ephemeralContainers: [debug] } });
    expect(await refusal(added)).to.include('one container');
    const changed = ask('PATCH', own, { spec: { containers: [{ name: 'worker', image: 'local.test/shell:1' }] } });
    expect(await refusal(changed)).to.include('only the image');
  });

  it('lets go what was admitted under an older rule', async () => {
    const path = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/trawl-workers-in-workers';
    const merge = 'application/merge-patch+json';
    await ask('POST', jobs, aJob());
    const never = { message: 'nothing any more', expression: 'false' };
    await ask('PATCH', path, { spec: { validations: [never] } }, merge);
    const closed = async () => (await refusal(ask('POST', `${jobs}?dryRun=All`, aJob()))).includes(never.message);
    await until(closed, 20, 'the new rule holds');
    const job = `${jobs}/${attemptName}`;
    await ask('PATCH', job, { metadata: { finalizers: null } }, merge);
    await ask('DELETE', job, { propagationPolicy: 'Background' });
    await until(async () => (await refusal(ask('GET', job))).includes('404'), 20, 'it has gone');
  });
});
