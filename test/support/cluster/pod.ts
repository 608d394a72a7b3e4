/** The fields of a pod that the fake kubelet reads. */
export interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
    readonly deletionTimestamp?: string;
    readonly deletionGracePeriodSeconds?: number;
  };
  readonly spec: {
    readonly nodeName?: string;
    readonly activeDeadlineSeconds?: number;
    readonly terminationGracePeriodSeconds: number;
    readonly containers: readonly Container[];
    readonly initContainers?: readonly Container[];
  };
  readonly status: {
    readonly phase: string;
    readonly reason?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly containerStatuses?: readonly {
      readonly state: { readonly terminated?: { readonly finishedAt: string } };
    }[];
  };
}

interface Container {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
}

/** The end of a pod's containers as its kubelet reports it. */
export interface Ending {
  readonly exitCode: number;
  /** The termination message. */
  readonly message?: string;
  /** The reason of the containers' end; `Completed` or `Error` when left out. */
  readonly reason?: string;
  /** The reason and the message of the pod's own status, such as `Evicted`. */
  readonly pod?: { readonly reason: string; readonly message: string };
  /** True when the kubelet marks the pod as the target of a disruption. */
  readonly isDisrupted?: boolean;
  /** True when nothing is reported of its containers. */
  readonly isSilent?: boolean;
}

/** The endings as a real kubelet reports them. */
export const endings = {
  success: (message = ''): Ending => ({ exitCode: 0, message }),
  failure: (exitCode: number, message = ''): Ending => ({ exitCode, message }),
  outOfMemory: (): Ending => ({ exitCode: 137, reason: 'OOMKilled' }),
  /** The pod wrote more than its limit; it may end in order. */
  overDisk: (exitCode = 143, message = ''): Ending => ({
    exitCode,
    message,
    pod: { reason: 'Evicted', message: 'Usage of EmptyDir volume "scratch" exceeds the limit "64Mi". ' },
  }),
  /** Its node runs out of memory. */
  nodePressure: (): Ending => ({
    exitCode: 137,
    pod: { reason: 'Evicted', message: 'The node was low on resource: memory. ' },
    isDisrupted: true,
  }),
  /** Its node is shut down in order. */
  nodeShutdown: (): Ending => ({
    exitCode: 143,
    pod: { reason: 'Terminated', message: 'Pod was terminated in response to imminent node shutdown.' },
    isDisrupted: true,
  }),
  /** The kubelet does not take it: `OutOfcpu`, `NodeAffinity`, `UnexpectedAdmissionError`. */
  rejected: (reason: string): Ending => ({
    exitCode: 1,
    pod: { reason, message: 'Pod was rejected: it does not fit' },
    isSilent: true,
  }),
  /** The pod was deleted before its containers started. */
  unstarted: (): Ending => ({
    exitCode: 137,
    reason: 'ContainerStatusUnknown',
    message: 'The container could not be located when the pod was terminated',
  }),
  /** The pod ran longer than its `activeDeadlineSeconds`. */
  deadline: (exitCode = 143, message = ''): Ending => ({
    exitCode,
    message,
    pod: {
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
    },
  }),
} as const;

/** The status of a pod whose containers run. */
export function writeRunning(pod: Pod, startedAt: string, podIP: string): object {
  const running = { running: { startedAt } };
  const done = { terminated: { exitCode: 0, reason: 'Completed', startedAt, finishedAt: startedAt } };
  return {
    phase: 'Running',
    startTime: startedAt,
    hostIP: '127.0.0.1',
    podIP,
    podIPs: [{ ip: podIP }],
    conditions: conditionsOf('True', startedAt),
    initContainerStatuses: pod.spec.initContainers?.map((container) => ({ ...describe(container, done), ready: true })),
    containerStatuses: pod.spec.containers.map((container) => ({
      ...describe(container, running),
      ready: true,
      started: true,
    })),
  };
}

/** The status of a pod whose containers do not start. */
export function writeWaiting(pod: Pod, reason: string, message: string): object {
  const startTime = timestamp();
  return {
    phase: 'Pending',
    startTime,
    hostIP: '127.0.0.1',
    conditions: conditionsOf('False', startTime, 'ContainersNotReady'),
    containerStatuses: pod.spec.containers.map((container) => describe(container, { waiting: { reason, message } })),
  };
}

/** The status of a pod whose containers have ended; `startedAt` is `null` when they never started. */
export function writeEnded(pod: Pod, startedAt: string | null, ending: Ending): object {
  const { exitCode, message = '', reason = exitCode === 0 ? 'Completed' : 'Error' } = ending;
  const { isDisrupted = false, isSilent = false } = ending;
  const now = timestamp();
  const terminated = { exitCode, reason, message, startedAt, finishedAt: startedAt && now };
  const isSuccess = exitCode === 0 && ending.pod === undefined;
  const disruption = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'TerminationByKubelet',
    message: ending.pod?.message,
    lastTransitionTime: now,
  };
  return {
    phase: isSuccess ? 'Succeeded' : 'Failed',
    ...ending.pod,
    conditions: [
      ...conditionsOf('False', now, isSuccess ? 'PodCompleted' : 'PodFailed'),
      ...(isDisrupted ? [disruption] : []),
    ],
    containerStatuses: isSilent ? null : pod.spec.containers.map((container) => describe(container, { terminated })),
  };
}

/** Now, as Kubernetes writes it. */
export function timestamp(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, 'Z');
}

function describe({ name, image }: Container, state: object): object {
  return { name, image, imageID: '', ready: false, started: false, restartCount: 0, state };
}

function conditionsOf(status: string, lastTransitionTime: string, reason?: string): object[] {
  return ['Ready', 'ContainersReady'].map((type) => ({ type, status, reason, lastTransitionTime }));
}
