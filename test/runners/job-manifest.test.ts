import { expect } from 'chai';
import { limitSettings } from '../../src/base/settings/limit-settings.ts';
import { workerJobSettings } from '../../src/base/settings/worker-job-settings.ts';
import { makeJob, makeTrialJob, type WorkerShape } from '../../src/runners/kubernetes/job-manifest.ts';
import type { KubeClient } from '../../src/runners/kubernetes/kube-client.ts';
import { findMissingPermissions, makeRole } from '../../src/runners/kubernetes/permissions.ts';
import { attemptName } from '../support/cluster-objects.ts';

const shape: WorkerShape = {
  namespace: 'workers',
  image: 'registry.example/trawl-worker@sha256:00',
  serviceAccount: 'trawl-worker',
  env: { TRAWL_GATEWAY_ADDRESS: 'http://gateway:8082' },
  cpu: '250m',
  memory: '3Gi',
  diskBytes: 2 ** 34,
  maxSeconds: 7_200,
  runtimeClass: null,
  priorityClass: null,
  caConfigMap: null,
  placement: {},
  queue: null,
  awaySeconds: 60,
  startSeconds: 180,
  hostUsers: false,
  clusterUser: false,
};
const jobId = attemptName.slice(0, -2);
const attempt = { name: attemptName, jobId, attempt: 1, maxMs: 7_200_000 } as const;
const labels = {
  'app.kubernetes.io/name': 'trawl-worker',
  'app.kubernetes.io/managed-by': 'trawl',
  'app.kubernetes.io/component': 'worker',
  'trawl/job': jobId,
};

const whole = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: attemptName, namespace: 'workers', labels, finalizers: ['trawl/unsettled'] },
  spec: {
    completions: 1,
    parallelism: 1,
    backoffLimit: 0,
    activeDeadlineSeconds: 360_011_100,
    ttlSecondsAfterFinished: 900,
    template: {
      metadata: {
        labels,
        annotations: {
          'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
          'karpenter.sh/do-not-disrupt': 'true',
        },
        finalizers: ['trawl/unsettled'],
      },
      spec: {
        restartPolicy: 'Never',
        activeDeadlineSeconds: 10_800,
        terminationGracePeriodSeconds: 60,
        serviceAccountName: 'trawl-worker',
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        hostUsers: false,
        dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
        tolerations: ['not-ready', 'unreachable'].map((fault) => ({
          key: `node.kubernetes.io/${fault}`,
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds: 60,
        })),
        topologySpreadConstraints: [
          {
            maxSkew: 5,
            topologyKey: 'kubernetes.io/hostname',
            whenUnsatisfiable: 'ScheduleAnyway',
            labelSelector: {
              matchLabels: { 'app.kubernetes.io/managed-by': 'trawl', 'app.kubernetes.io/component': 'worker' },
            },
          },
        ],
        securityContext: {
          runAsNonRoot: true,
          runAsUser: 65532,
          runAsGroup: 65532,
          fsGroup: 65532,
          fsGroupChangePolicy: 'OnRootMismatch',
          seccompProfile: { type: 'RuntimeDefault' },
        },
        containers: [
          {
            name: 'worker',
            image: 'registry.example/trawl-worker@sha256:00',
            imagePullPolicy: 'IfNotPresent',
            args: ['worker', '--token-file', '/var/run/trawl/token'],
            env: [
              { name: 'TRAWL_GATEWAY_ADDRESS', value: 'http://gateway:8082' },
              { name: 'TRAWL_DATA', value: '/scratch' },
              { name: 'HOME', value: '/scratch' },
              { name: 'TMPDIR', value: '/scratch' },
              { name: 'XDG_CACHE_HOME', value: '/scratch/cache' },
              { name: 'TRAWL_TERMINATION_FILE', value: '/dev/termination-log' },
            ],
            resources: {
              requests: { cpu: '250m', memory: '3Gi', 'ephemeral-storage': '1073741824' },
              limits: { memory: '3Gi', 'ephemeral-storage': '18253611008' },
            },
            securityContext: {
              allowPrivilegeEscalation: false,
              privileged: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ['ALL'] },
            },
            terminationMessagePath: '/dev/termination-log',
            terminationMessagePolicy: 'File',
            volumeMounts: [
              { name: 'work', mountPath: '/scratch' },
              { name: 'identity', mountPath: '/var/run/trawl', readOnly: true },
            ],
          },
        ],
        volumes: [
          { name: 'work', emptyDir: { sizeLimit: '17179869184' } },
          {
            name: 'identity',
            projected: {
              defaultMode: 0o440,
              sources: [{ serviceAccountToken: { audience: 'trawl-gateway', expirationSeconds: 3600, path: 'token' } }],
            },
          },
        ],
      },
    },
  },
};

describe('the Job of an attempt', () => {
  it('the Job of an attempt has exactly these fields', () => {
    expect(makeJob(attempt, shape)).to.deep.equal(whole);
  });

  it('takes runtime class, priority class, users of the node and the queue of Kueue from the settings', () => {
    const wanted = { runtimeClass: 'gvisor', priorityClass: 'downloads', queue: 'media', hostUsers: true };
    const { metadata, spec } = makeJob(attempt, { ...shape, ...wanted });
    expect(metadata?.labels).to.deep.equal({ ...labels, 'kueue.x-k8s.io/queue-name': 'media' });
    expect(spec?.template.metadata?.labels).to.deep.equal(labels);
    expect(spec?.template.spec).to.deep.include({
      runtimeClassName: 'gvisor',
      priorityClassName: 'downloads',
      hostUsers: true,
    });
  });

  it('names no user and no group where the cluster chooses them', () => {
    const { spec } = makeJob(attempt, { ...shape, clusterUser: true });
    expect(spec?.template.spec?.securityContext).to.deep.equal({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    });
  });

  it('lets the worker end before the kubelet ends it, and that before the Job does', () => {
    const { spec } = makeJob({ ...attempt, maxMs: 500 }, shape);
    const [podSeconds = 0, jobSeconds = 0] = [spec?.template.spec?.activeDeadlineSeconds, spec?.activeDeadlineSeconds];
    expect(podSeconds).to.equal(3601);
    expect(jobSeconds).to.be.above(podSeconds);
  });

  it('leaves an attempt its whole time after the longest start that TRAWL_WORKER_START_SECONDS may allow', () => {
    const { kind } = workerJobSettings.TRAWL_WORKER_START_SECONDS;
    const longest = 3_000;
    expect([longest, longest + 1].map((seconds) => kind.read(String(seconds)))).to.deep.equal([longest, undefined]);
    const { activeDeadlineSeconds = 0 } = makeJob(attempt, shape).spec?.template.spec ?? {};
    expect(activeDeadlineSeconds - attempt.maxMs / 1000).to.be.above(longest);
  });

  it('lets a Job wait for its pod as long as TRAWL_QUEUE_HOURS may say', () => {
    const { kind } = limitSettings.TRAWL_QUEUE_HOURS;
    const maxHours = 100_000;
    expect([maxHours, maxHours + 1].map((hours) => kind.read(String(hours)))).to.deep.equal([maxHours, undefined]);
    const { spec } = makeJob({ ...attempt, maxMs: 500 }, shape);
    const podSeconds = spec?.template.spec?.activeDeadlineSeconds ?? 0;
    expect(spec?.activeDeadlineSeconds).to.be.above(maxHours * 3_600 + podSeconds);
  });
});

describe('the Job that tries the network', () => {
  it('differs from that of an attempt in its arguments, its job id, its finalizers and its wait for a node alone', () => {
    const trial = makeTrialJob(attemptName, 'inspector:8083', shape, 7_200);
    const args = ['worker', '--try-network', 'inspector:8083'];
    const own = { labels: { ...labels, 'trawl/job': 'network-trial' }, finalizers: [] };
    const { spec } = whole.spec.template;
    const containers = spec.containers.map((container) => ({ ...container, args }));
    expect(trial).to.deep.equal({
      ...whole,
      metadata: { ...whole.metadata, ...own },
      spec: {
        ...whole.spec,
        activeDeadlineSeconds: 11_100,
        template: { metadata: { ...whole.spec.template.metadata, ...own }, spec: { ...spec, containers } },
      },
    });
  });
});

describe('what the controller may do in the cluster', () => {
  it('is this, and no status of a pod, no secret and nothing beyond its namespace', () => {
    expect(makeRole('workers')).to.deep.equal({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'trawl-controller', namespace: 'workers' },
      rules: [
        { apiGroups: ['batch'], resources: ['jobs'], verbs: ['create', 'get', 'list', 'watch', 'patch', 'delete'] },
        { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'patch', 'delete'] },
        { apiGroups: [''], resources: ['events'], verbs: ['list'] },
      ],
    });
  });

  it('is asked for one by one', async () => {
    const asked: unknown[] = [];
    const ask: KubeClient['ask'] = async <T>(_: string, path: string, { body }: { readonly body?: object } = {}) => {
      asked.push({ path, body });
      return { status: { allowed: asked.length > 1 } } as T;
    };
    expect(await findMissingPermissions({ ask }, 'workers')).to.deep.equal(['create jobs']);
    expect(asked).to.have.length(12);
    const resourceAttributes = { namespace: 'workers', group: 'batch', resource: 'jobs', verb: 'create' };
    expect(asked[0]).to.deep.equal({
      path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
      body: { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec: { resourceAttributes } },
    });
  });
});
