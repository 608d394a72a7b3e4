import type { V1Container, V1Job, V1PodSpec, V1Toleration, V1Volume } from '@kubernetes/client-node';
import type { AttemptToRun } from '../runner.ts';
import { finalizer, ours } from './snapshot.ts';

/** What the operator says of worker pods. */
export interface Shape {
  readonly namespace: string;
  readonly image: string;
  readonly serviceAccount: string;
  /** What the worker is told, and nothing secret. */
  readonly env: Readonly<Record<string, string>>;
  readonly cpu: string;
  readonly memory: string;
  /** Bytes of the folder that it works in. */
  readonly diskBytes: number;
  readonly runtimeClass: string | null;
  readonly priorityClass: string | null;
  /** The queue of Kueue that admits it. */
  readonly queue: string | null;
  /** After this long without its node a pod is lost. */
  readonly awaySeconds: number;
  /** What keeps a worker from starting, such as an image that cannot be fetched, may pass for this long. */
  readonly startSeconds: number;
  /** Whether root in the pod is root of the node. */
  readonly hostUsers: boolean;
}

/** Whom the token of a pod is for. */
export const audience = 'trawl-gateway';
export const tokenFile = '/var/run/trawl/token';

const user = 65_532;
const tokenSeconds = 3_600;
const graceSeconds = 60;
/** The worker ends by itself at the deadline; the kubelet a little later, then the Job. */
const podLateSeconds = 60;
const jobLateSeconds = 120;
/** For what nobody has cleared away. */
const leftSeconds = 900;
/** Beside the folder: logs, and what the system writes. */
const besideBytes = 2 ** 30;

/** Makes the Job of one attempt. It holds no secret: the worker asks the gateway what to do. */
export function makeJob(attempt: AttemptToRun, shape: Shape, now: number): V1Job {
  const labels = { 'app.kubernetes.io/name': 'trawl-worker', ...ours, 'trawl/job': attempt.jobId };
  const seconds = Math.max(1, Math.ceil((attempt.deadline - now) / 1000));
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: attempt.name,
      namespace: shape.namespace,
      labels: { ...labels, ...(shape.queue && { 'kueue.x-k8s.io/queue-name': shape.queue }) },
      finalizers: [finalizer],
    },
    spec: {
      completions: 1,
      parallelism: 1,
      // Only model/next.ts tries again, and a policy of its own would hide the end of a lost node.
      backoffLimit: 0,
      activeDeadlineSeconds: seconds + jobLateSeconds,
      ttlSecondsAfterFinished: leftSeconds,
      template: {
        metadata: {
          labels,
          annotations: {
            'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
            'karpenter.sh/do-not-disrupt': 'true',
          },
          finalizers: [finalizer],
        },
        spec: makePod(shape, seconds + podLateSeconds),
      },
    },
  };
}

/** Makes what the pod of an attempt is; the kubelet ends it after so many seconds. */
export function makePod(shape: Shape, activeDeadlineSeconds: number): V1PodSpec {
  return {
    restartPolicy: 'Never',
    activeDeadlineSeconds,
    terminationGracePeriodSeconds: graceSeconds,
    serviceAccountName: shape.serviceAccount,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    hostUsers: shape.hostUsers,
    ...(shape.priorityClass && { priorityClassName: shape.priorityClass }),
    ...(shape.runtimeClass && { runtimeClassName: shape.runtimeClass }),
    dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
    tolerations: [tolerate('not-ready', shape.awaySeconds), tolerate('unreachable', shape.awaySeconds)],
    topologySpreadConstraints: [
      {
        maxSkew: 5,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: ours },
      },
    ],
    securityContext: {
      runAsNonRoot: true,
      runAsUser: user,
      runAsGroup: user,
      fsGroup: user,
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [makeContainer(shape)],
    volumes: makeVolumes(shape),
  };
}

function makeContainer({ image, env, cpu, memory, diskBytes }: Shape): V1Container {
  const places = { TRAWL_DATA: '/scratch', HOME: '/scratch', TMPDIR: '/scratch', XDG_CACHE_HOME: '/scratch/cache' };
  return {
    name: 'worker',
    image,
    imagePullPolicy: 'IfNotPresent',
    args: ['worker', '--token-file', tokenFile],
    env: Object.entries({ ...env, ...places, TRAWL_TERMINATION_FILE: '/dev/termination-log' }).map(([name, value]) => {
      return { name, value };
    }),
    resources: {
      requests: { cpu, memory, 'ephemeral-storage': String(besideBytes) },
      // No limit of processor: it would only slow ffmpeg down.
      limits: { memory, 'ephemeral-storage': String(diskBytes + besideBytes) },
    },
    securityContext: {
      allowPrivilegeEscalation: false,
      privileged: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    terminationMessagePath: '/dev/termination-log',
    // With the end of a log instead, an address that a caller named could come into an object of the cluster.
    terminationMessagePolicy: 'File',
    volumeMounts: [
      { name: 'work', mountPath: '/scratch' },
      { name: 'identity', mountPath: '/var/run/trawl', readOnly: true },
    ],
  };
}

function makeVolumes({ diskBytes }: Shape): V1Volume[] {
  const serviceAccountToken = { audience, expirationSeconds: tokenSeconds, path: 'token' };
  return [
    { name: 'work', emptyDir: { sizeLimit: String(diskBytes) } },
    { name: 'identity', projected: { defaultMode: 0o440, sources: [{ serviceAccountToken }] } },
  ];
}

function tolerate(fault: string, tolerationSeconds: number): V1Toleration {
  const key = `node.kubernetes.io/${fault}`;
  return { key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds };
}
