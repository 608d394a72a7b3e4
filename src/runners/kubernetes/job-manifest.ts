import type {
  V1Container,
  V1Job,
  V1PodSpec,
  V1ResourceRequirements,
  V1Toleration,
  V1Volume,
} from '@kubernetes/client-node';
import type { PodPlacement } from '../../base/settings/worker-job-kinds.ts';
import type { AttemptToRun } from '../runner.ts';
import { finalizer, trialJobId, workerLabels } from './labels.ts';

export interface WorkerShape {
  readonly namespace: string;
  readonly image: string;
  readonly serviceAccount: string;
  /** Environment of the worker; it holds no secret. */
  readonly env: Readonly<Record<string, string>>;
  readonly cpu: string;
  readonly memory: string;
  readonly diskBytes: number;
  readonly maxSeconds: number;
  readonly runtimeClass: string | null;
  readonly priorityClass: string | null;
  /** Kueue queue that admits its Job. */
  readonly queue: string | null;
  readonly placement: PodPlacement;
  /** ConfigMap with the authorities that it trusts. */
  readonly caConfigMap: string | null;
  /** Time that a pod tolerates an unreachable node before Kubernetes evicts it. */
  readonly awaySeconds: number;
  /** Time for the cause that keeps a worker from starting, such as an image that cannot be pulled, to pass by itself. */
  readonly startSeconds: number;
  /** True when root in the pod is root of the node. */
  readonly hostUsers: boolean;
  /** True when the cluster chooses user and group of the pod, as OpenShift does. */
  readonly clusterUser: boolean;
}

/** Audience of the token that the cluster projects into a worker pod. */
export const tokenAudience = 'trawl-gateway';
const tokenFile = '/var/run/trawl/token';
/** Arguments of a pod that tries the network; `host:port` of what is closed to workers follows. */
export const trialArgs = ['worker', '--try-network'] as const;
const authorities = { folder: '/var/run/trawl-ca', file: 'ca.crt' } as const;

/** Names of callers are whole: a search in the cluster's own domains would only ask more. */
const defaultDns = { options: [{ name: 'ndots', value: '1' }] };
const user = 65_532;
const tokenSeconds = 3_600;
const graceSeconds = 60;
/** The worker ends by itself. The kubelet ends its pod that much later: it counts from before it fetches the image. */
const podGraceSeconds = 3_600;
const jobGraceSeconds = 3_900;
/** The most that TRAWL_QUEUE_HOURS may say: Kubernetes counts the wait of a Job for its pod and for a node, which a controller ends (`maxQueueMs`). */
const jobWaitSeconds = 100_000 * 3_600;
/** TTL: Kubernetes deletes a finished Job after 15 min if the controller never did. */
const jobTtlSeconds = 900;
/** Disk for logs and system files, besides the work folder. */
const systemBytes = 2 ** 30;

/** Returns the Job of one attempt. It holds no secret: the worker asks the gateway for its task. */
export function makeJob({ name, jobId, maxMs }: AttemptToRun, shape: WorkerShape): V1Job {
  const seconds = Math.ceil(maxMs / 1000);
  const args = ['worker', '--token-file', tokenFile];
  return makeWorkerJob({ name, jobId, seconds, waitSeconds: jobWaitSeconds, args, finalizers: [finalizer] }, shape);
}

/** Returns the Job of a pod that differs from a worker in its command and its job id alone: it tries what workers reach. */
export function makeTrialJob(name: string, closed: string, shape: WorkerShape, seconds: number): V1Job {
  // Nothing records how it ended, so nothing waits for that.
  const args = [...trialArgs, closed];
  return makeWorkerJob({ name, jobId: trialJobId, seconds, waitSeconds: 0, args, finalizers: [] }, shape);
}

interface WorkerTask {
  readonly name: string;
  readonly jobId: string;
  readonly seconds: number;
  readonly waitSeconds: number;
  readonly args: readonly string[];
  readonly finalizers: readonly string[];
}

function makeWorkerJob(task: WorkerTask, shape: WorkerShape): V1Job {
  const { name, jobId, seconds, waitSeconds, args, finalizers } = task;
  const labels = { 'app.kubernetes.io/name': 'trawl-worker', ...workerLabels, 'trawl/job': jobId };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name,
      namespace: shape.namespace,
      labels: { ...labels, ...(shape.queue && { 'kueue.x-k8s.io/queue-name': shape.queue }) },
      finalizers: [...finalizers],
    },
    spec: {
      completions: 1,
      parallelism: 1,
      // Only model/next.ts decides about another attempt, and a pod failure policy would hide the loss of a node.
      backoffLimit: 0,
      activeDeadlineSeconds: waitSeconds + seconds + jobGraceSeconds,
      ttlSecondsAfterFinished: jobTtlSeconds,
      template: {
        metadata: {
          labels,
          annotations: {
            'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
            'karpenter.sh/do-not-disrupt': 'true',
          },
          finalizers: [...finalizers],
        },
        spec: makePodSpec(shape, args, seconds + podGraceSeconds),
      },
    },
  };
}

/** Returns the pod of an attempt, which the kubelet ends after `activeDeadlineSeconds`. */
function makePodSpec(shape: WorkerShape, args: readonly string[], activeDeadlineSeconds: number): V1PodSpec {
  const { nodeSelector, tolerations = [], affinity, dnsPolicy, dnsConfig = defaultDns } = shape.placement;
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
    ...(nodeSelector && { nodeSelector }),
    ...(affinity && { affinity }),
    ...(dnsPolicy && { dnsPolicy }),
    dnsConfig,
    tolerations: [tolerate('not-ready', shape.awaySeconds), tolerate('unreachable', shape.awaySeconds), ...tolerations],
    topologySpreadConstraints: [
      {
        maxSkew: 5,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: workerLabels },
      },
    ],
    securityContext: {
      runAsNonRoot: true,
      ...(!shape.clusterUser && {
        runAsUser: user,
        runAsGroup: user,
        fsGroup: user,
        fsGroupChangePolicy: 'OnRootMismatch',
      }),
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [makeContainer(shape, args)],
    volumes: makeVolumes(shape),
  };
}

export function makeWorkerResources(shape: Pick<WorkerShape, 'cpu' | 'memory' | 'diskBytes'>): V1ResourceRequirements {
  const { cpu, memory, diskBytes } = shape;
  return {
    requests: { cpu, memory, 'ephemeral-storage': String(systemBytes) },
    // No CPU limit: it would only slow ffmpeg down.
    limits: { memory, 'ephemeral-storage': String(diskBytes + systemBytes) },
  };
}

function makeContainer(shape: WorkerShape, args: readonly string[]): V1Container {
  const { image, env, caConfigMap } = shape;
  const folders = { TRAWL_DATA: '/scratch', HOME: '/scratch', TMPDIR: '/scratch', XDG_CACHE_HOME: '/scratch/cache' };
  return {
    name: 'worker',
    image,
    imagePullPolicy: 'IfNotPresent',
    args: [...args],
    env: Object.entries({
      ...env,
      ...folders,
      ...(caConfigMap && { TRAWL_TLS_CA_FILE: `${authorities.folder}/${authorities.file}` }),
      TRAWL_TERMINATION_FILE: '/dev/termination-log',
    }).map(([name, value]) => ({ name, value })),
    resources: makeWorkerResources(shape),
    securityContext: {
      allowPrivilegeEscalation: false,
      privileged: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    terminationMessagePath: '/dev/termination-log',
    // With the end of the log instead, a URL of a caller could get into an object of the cluster.
    terminationMessagePolicy: 'File',
    volumeMounts: [
      { name: 'work', mountPath: '/scratch' },
      { name: 'identity', mountPath: '/var/run/trawl', readOnly: true },
      ...(caConfigMap ? [{ name: 'authorities', mountPath: authorities.folder, readOnly: true }] : []),
    ],
  };
}

function makeVolumes({ diskBytes, caConfigMap }: WorkerShape): V1Volume[] {
  const { file: path } = authorities;
  const serviceAccountToken = { audience: tokenAudience, expirationSeconds: tokenSeconds, path: 'token' };
  return [
    { name: 'work', emptyDir: { sizeLimit: String(diskBytes) } },
    { name: 'identity', projected: { defaultMode: 0o440, sources: [{ serviceAccountToken }] } },
    ...(caConfigMap
      ? [{ name: 'authorities', configMap: { name: caConfigMap, defaultMode: 0o440, items: [{ key: path, path }] } }]
      : []),
  ];
}

function tolerate(fault: string, tolerationSeconds: number): V1Toleration {
  const key = `node.kubernetes.io/${fault}`;
  return { key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds };
}
