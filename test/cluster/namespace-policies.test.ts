import { expect } from 'chai';
import { makeJob, type WorkerShape } from '../../src/runners/kubernetes/job-manifest.ts';
import { openKubeClient } from '../../src/runners/kubernetes/kube-client.ts';
import { makeRateLimiter } from '../../src/runners/kubernetes/rate-limiter.ts';
import { type Cluster, startCluster } from '../support/cluster/cluster.ts';
import { type FakeKubelet, startFakeKubelet } from '../support/cluster/fake-kubelet.ts';
import { foreignJobs } from '../support/cluster/foreign-jobs.ts';
import { accessAs, aShape, makeWorkersNamespace } from '../support/cluster/runner.ts';
import { makeWorkerPod } from '../support/cluster/worker-namespace.ts';
import { attemptName } from '../support/cluster-objects.ts';
import type { Json } from '../support/json.ts';
import { until } from '../support/until.ts';

const namespace = 'workers';
const jobs = `/apis/batch/v1/namespaces/${namespace}/jobs`;
const pods = `/api/v1/namespaces/${namespace}/pods`;

describe('the namespace of the workers', () => {
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
  const aJob = (change: (typeof foreignJobs)[number][1] = () => undefined): Json => {
    const attempt = { name: attemptName, jobId: attemptName.slice(0, -2), attempt: 1, endpoint: 'video' } as const;
    const job = structuredClone(makeJob({ ...attempt, maxMs: 60_000 }, shape)) as Json;
    const { spec } = job.spec.template;
    change(spec, spec.containers[0], job);
    return job;
  };
  const refusal = (asked: Promise<unknown>): Promise<string> =>
    asked.then(
      () => 'it was let in',
      (error: Error) => error.message,
    );

  for (const [title, change, said] of foreignJobs) {
    it(`lets nobody in with ${title}, not even our controller`, async () => {
      const access = await accessAs(cluster, namespace, 'trawl-controller');
      const client = openKubeClient({ access, rateLimit: makeRateLimiter(100, 100, () => performance.now()) });
      expect(await refusal(client.ask('POST', `${jobs}?dryRun=All`, { body: aJob(change) }))).to.include(
        `trawl: ${said}`,
      );
      await client.close();
    });
  }

  it('refuses a pod of another image, and another container or image in a running pod', async () => {
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
    expect(await refusal(added)).to.match(/workers have no .*ephemeralContainers/);
    const changed = ask('PATCH', own, { spec: { containers: [{ name: 'worker', image: 'local.test/shell:1' }] } });
    expect(await refusal(changed)).to.include('only the image');
  });

  it('refuses the pod of each such Job as well, whoever makes it', async () => {
    // A pod may have any priority, because a cluster may give all pods one by default; only a Job is ours to make.
    const ofPods = foreignJobs.filter(
      ([title, , said]) => !said.endsWith('Jobs') && !/of the Job|Kueue|priority/.test(title),
    );
    for (const [title, change] of ofPods) {
      const { metadata, spec } = aJob(change).spec.template;
      const { labels, annotations } = metadata;
      const pod = { metadata: { name: 'foreign', labels, annotations }, spec };
      expect(await refusal(ask('POST', `${pods}?dryRun=All`, pod)), title).to.match(
        /trawl: |PodSecurity|priority|maximum memory/,
      );
    }
  });

  it('refuses an annotation or a label that our controller changes, and lets others do so', async () => {
    await ask('POST', pods, makeWorkerPod('marked', shape));
    const access = await accessAs(cluster, namespace, 'trawl-controller');
    const client = openKubeClient({ access, rateLimit: makeRateLimiter(100, 100, () => performance.now()) });
    const path = `${pods}/marked`;
    const body = { metadata: { annotations: { 'k8s.v1.cni.cncf.io/networks': 'host-net' } } };
    expect(await refusal(client.change('PATCH', path, body))).to.include('trawl: ');
    await client.close();
    await ask('PATCH', path, { metadata: { annotations: { 'cni.example.com/address': '192.0.2.1' } } });
  });

  it('lets in what the operator allows: another image, values of fields, marks, and what Kueue adds to its queue', async () => {
    const other = 'workers-with-more';
    const toleration = { key: 'films', operator: 'Exists', effect: 'NoSchedule' };
    const more: WorkerShape = { ...aShape(other), queue: 'films' };
    const { tolerations } = makeWorkerPod('x', more).spec;
    await makeWorkersNamespace(cluster, other, more, {
      images: ['local.test/worker:0'],
      fields: [
        { name: 'nodeSelector', value: { pool: 'films' } },
        { name: 'tolerations', value: [...tolerations, toleration] },
        {
          name: 'worker.resources',
          value: { limits: { cpu: '2', memory: '1Gi' }, requests: { cpu: '1', memory: '1Gi' } },
        },
      ],
      marks: ['kubernetes.io/limit-ranger'],
    });
    const path = `/api/v1/namespaces/${other}/pods?dryRun=All`;
    const said = (change: (pod: Json, worker: Json, marks: Json) => void) => {
      const pod = makeWorkerPod('more', more);
      change(pod.spec, pod.spec.containers[0], pod.metadata);
      return refusal(ask('POST', path, pod));
    };
    const letIn = 'it was let in';
    expect(await said(() => undefined)).to.equal(letIn);
    expect(await said((_, worker) => (worker.image = 'local.test/worker:0'))).to.equal(letIn);
    expect(await said((_, worker) => (worker.image = 'local.test/worker:2'))).to.include('only the image');
    expect(await said((pod) => (pod.nodeSelector = { pool: 'films' }))).to.equal(letIn);
    expect(await said((pod) => (pod.nodeSelector = { pool: 'other' }))).to.include('only the nodeSelector');
    expect(await said((pod) => pod.tolerations.push(toleration))).to.equal(letIn);
    expect(await said((pod) => pod.tolerations.push({ operator: 'Exists' }))).to.include('only the tolerations');
    const limits = { limits: { cpu: '2000m', memory: '1024Mi' }, requests: { cpu: '1' } };
    // The API server adds the request of memory that its limit stands for.
    expect(await said((_, worker) => (worker.resources = limits))).to.equal(letIn);
    expect(await said((_, worker) => delete worker.resources.requests)).to.include('only the resources');
    expect(await said((_, __, marks) => (marks.annotations['kubernetes.io/limit-ranger'] = 'cpu'))).to.equal(letIn);
    expect(await said((_, __, marks) => (marks.labels['kueue.x-k8s.io/podset'] = 'main'))).to.equal(letIn);
    const attempt = { name: attemptName, jobId: attemptName.slice(0, -2), attempt: 1, endpoint: 'video' } as const;
    const job = structuredClone(makeJob({ ...attempt, maxMs: 60_000 }, more)) as Json;
    const jobsThere = `/apis/batch/v1/namespaces/${other}/jobs?dryRun=All`;
    expect(await refusal(ask('POST', jobsThere, { ...job, spec: { ...job.spec, suspend: true } }))).to.equal(letIn);
    job.metadata.labels['kueue.x-k8s.io/queue-name'] = 'other';
    expect(await refusal(ask('POST', jobsThere, job))).to.include('only the labels');
  });

  it('lets in workers at the place that the settings name, and at no other', async () => {
    const other = 'workers-with-a-place';
    const placement: WorkerShape['placement'] = {
      nodeSelector: { pool: 'films' },
      tolerations: [{ key: 'films', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 3_600 }],
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 10, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector: {} } },
          ],
        },
      },
      dnsPolicy: 'None',
      dnsConfig: { nameservers: ['192.0.2.1'] },
    };
    const placed: WorkerShape = { ...aShape(other), placement };
    await makeWorkersNamespace(cluster, other, placed);
    const said = (change: (pod: Json) => void) => {
      const pod = makeWorkerPod('placed', placed);
      change(pod.spec);
      return refusal(ask('POST', `/api/v1/namespaces/${other}/pods?dryRun=All`, pod));
    };
    expect(await said(() => undefined)).to.equal('it was let in');
    for (const [field, change] of [
      ['nodeSelector', (pod: Json) => delete pod.nodeSelector],
      ['tolerations', (pod: Json) => pod.tolerations.pop()],
      ['affinity', (pod: Json) => (pod.affinity = {})],
      ['dnsPolicy', (pod: Json) => (pod.dnsPolicy = 'Default')],
      ['dnsConfig', (pod: Json) => (pod.dnsConfig = { nameservers: ['192.0.2.2'] })],
    ] as const) {
      expect(await said(change), field).to.include(`only the ${field} of workers`);
    }
  });

  it('lets in the pods of our Jobs in a cluster that gives pods a default priority and always pulls images', async () => {
    const classes = '/apis/scheduling.k8s.io/v1/priorityclasses';
    const other = 'workers-with-a-priority';
    await ask('POST', classes, { metadata: { name: 'low' }, value: 1 });
    await makeWorkersNamespace(cluster, other, { ...aShape(other), priorityClass: 'low' });
    await ask('POST', classes, { metadata: { name: 'usual' }, value: 1_000, globalDefault: true });
    const there = `/api/v1/namespaces/${other}/pods?dryRun=All`;
    const isUsual = async () =>
      /only the priorityClassName/.test(await refusal(ask('POST', there, makeWorkerPod('usual', aShape(other)))));
    await until(isUsual, 20, 'pods get the priority, also where another one is wanted');
    const plain = makeWorkerPod('usual', shape);
    // As the plugin AlwaysPullImages does.
    plain.spec.containers[0].imagePullPolicy = 'Always';
    expect(await refusal(ask('POST', `${pods}?dryRun=All`, plain))).to.equal('it was let in');
    expect(await refusal(ask('POST', `${jobs}?dryRun=All`, aJob()))).to.equal('it was let in');
    await ask('DELETE', `${classes}/usual`);
  });

  it('lets the cluster choose a user that is not root where the settings say so, as OpenShift does', async () => {
    const other = 'workers-of-any-user';
    const chosen: WorkerShape = { ...aShape(other), clusterUser: true };
    await makeWorkersNamespace(cluster, other, chosen);
    const said = (change: (pod: Json, worker: Json, marks: Json) => void) => {
      const pod = makeWorkerPod('chosen', chosen);
      expect(pod.spec.securityContext).to.have.all.keys('runAsNonRoot', 'seccompProfile');
      asOpenShift(pod.spec, pod.spec.containers[0], pod.metadata);
      change(pod.spec, pod.spec.containers[0], pod.metadata);
      return refusal(ask('POST', `/api/v1/namespaces/${other}/pods?dryRun=All`, pod));
    };
    expect(await said(() => undefined)).to.equal('it was let in');
    for (const change of [
      (_: Json, worker: Json) => (worker.securityContext.runAsUser = 0),
      (_: Json, worker: Json) => (worker.securityContext.runAsNonRoot = false),
      (_: Json, worker: Json) => delete worker.securityContext.readOnlyRootFilesystem,
      (_: Json, worker: Json) => (worker.securityContext.runAsGroup = 0),
      (pod: Json, _: Json, { annotations }: Json) => {
        pod.securityContext.seccompProfile = { type: 'Unconfined' };
        annotations['seccomp.security.alpha.kubernetes.io/pod'] = 'unconfined';
      },
      (pod: Json) => (pod.securityContext.fsGroup = 0),
      (pod: Json) => (pod.securityContext.supplementalGroups = [1_000_680_000, 0]),
      // The level "restricted" of PodSecurity takes this type.
      (pod: Json) => (pod.securityContext.seLinuxOptions.type = 'container_engine_t'),
      (_: Json, worker: Json) => (worker.securityContext.seLinuxOptions = { type: 'container_engine_t' }),
      (pod: Json) => (pod.securityContext.sysctls = [{ name: 'kernel.shm_rmid_forced', value: '1' }]),
    ]) {
      expect(await said(change), String(change)).to.match(/only the securityContext of workers|PodSecurity/);
    }
    expect(await said((_, __, marks) => (marks.annotations.other = 'x'))).to.include('only the annotations');
    expect(await said((pod) => pod.imagePullSecrets.push({ name: 'x' }))).to.include('only the imagePullSecrets');
  });

  it('lets in pull secrets of the operator beside the one that OpenShift gives each worker, and none of another service account', async () => {
    const other = 'workers-with-secrets';
    const chosen: WorkerShape = { ...aShape(other), clusterUser: true };
    const value = [{ name: 'registry' }, { name: 'mirror' }];
    const fields = [{ name: 'imagePullSecrets', value }];
    await makeWorkersNamespace(cluster, other, chosen, { images: [], marks: [], fields });
    const said = (...names: string[]) => {
      const pod = makeWorkerPod('chosen', chosen);
      pod.spec.imagePullSecrets = names.map((name) => ({ name }));
      return refusal(ask('POST', `/api/v1/namespaces/${other}/pods?dryRun=All`, pod));
    };
    const own = 'trawl-worker-dockercfg-x7k2p';
    for (const names of [[], ['mirror'], ['registry', 'mirror'], [own], [own, 'registry']])
      expect(await said(...names), String(names)).to.equal('it was let in');
    for (const foreign of ['x', 'trawl-controller-dockercfg-x7k2p', `x-${own}`])
      expect(await said(own, foreign), foreign).to.include('only the imagePullSecrets of workers');
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

/** Gives a pod what the constraint restricted-v2 of OpenShift gives it. */
function asOpenShift(pod: Json, worker: Json, { annotations }: Json): void {
  annotations['openshift.io/scc'] = 'restricted-v2';
  annotations['seccomp.security.alpha.kubernetes.io/pod'] = 'runtime/default';
  pod.imagePullSecrets = [{ name: 'trawl-worker-dockercfg-x7k2p' }];
  Object.assign(pod.securityContext, { fsGroup: 1_000_680_000, seLinuxOptions: { level: 's0:c26,c5' } });
  Object.assign(worker.securityContext, { runAsUser: 1_000_680_000, runAsNonRoot: true });
}
