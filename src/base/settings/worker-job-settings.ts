import * as kind from './kinds.ts';
import * as jobKind from './worker-job-kinds.ts';

export const workerJobSettings = {
  TRAWL_KUBE_NAMESPACE: { kind: jobKind.namespace, text: 'Namespace of worker Jobs, and of nothing else.' },
  TRAWL_KUBE_RATE: {
    kind: kind.count,
    default: '200',
    text: 'Most requests per second to the Kubernetes API server, with bursts of twice as many; further requests wait.',
  },
  TRAWL_WORKER_IMAGE: { kind: kind.text, text: 'Container image of worker pods.' },
  TRAWL_WORKER_ACCOUNT: {
    kind: jobKind.kubeName,
    default: 'trawl-worker',
    text: 'ServiceAccount of worker pods; it needs no rights.',
  },
  TRAWL_WORKER_CPU: {
    kind: jobKind.quantity,
    default: '250m',
    text: 'CPU that each worker pod requests; its use is not limited.',
  },
  TRAWL_WORKER_MEMORY: {
    kind: jobKind.quantity,
    default: '3Gi',
    text: 'Memory that each worker pod requests and is limited to; a pod that needs more is killed.',
  },
  TRAWL_WORKER_AWAY_SECONDS: {
    kind: kind.seconds,
    default: '60',
    text: 'How long a worker pod tolerates an unreachable node before Kubernetes evicts it, in seconds; its attempt then counts as interrupted.',
  },
  TRAWL_WORKER_START_SECONDS: {
    kind: jobKind.startSeconds,
    default: '180',
    text: 'How long a worker pod may be refused by the cluster, or fail to start on its node, such as for an image that cannot be fetched, in seconds; its attempt then fails as `worker_failed`.',
  },
  TRAWL_WORKER_PLACEMENT: {
    kind: jobKind.podPlacement,
    default: '{}',
    text: "Where worker pods run and whom they ask for names: JSON with `nodeSelector`, `tolerations`, `affinity`, `dnsPolicy` and `dnsConfig`, as in a pod. Tolerations come after trawl's own two; `dnsConfig` replaces its `ndots` of 1.",
  },
  TRAWL_WORKER_RUNTIME_CLASS: { kind: jobKind.kubeName, text: 'RuntimeClass of worker pods, such as `gvisor`.' },
  TRAWL_WORKER_PRIORITY_CLASS: { kind: jobKind.kubeName, text: 'PriorityClass of worker pods.' },
  TRAWL_WORKER_QUEUE: { kind: jobKind.kubeName, text: 'LocalQueue of Kueue that admits worker Jobs.' },
  TRAWL_WORKER_CA_CONFIG_MAP: {
    kind: jobKind.kubeName,
    text: 'ConfigMap in the namespace of the workers whose key `ca.crt` holds the authorities that workers trust at https:// addresses of gateway and `egress`; the public ones without it.',
  },
  TRAWL_WORKER_HOST_USERS: {
    kind: kind.flag,
    default: 'false',
    text: '`true` lets worker pods share the user ids of their node; only for nodes without user namespaces.',
  },
  TRAWL_WORKER_CLUSTER_USER: {
    kind: kind.flag,
    default: 'false',
    text: '`true` leaves user and group of worker pods to the cluster, as OpenShift wants it; they are 65532 otherwise.',
  },
  TRAWL_WORKER_NETWORK: {
    kind: kind.oneOf('policies-enforced'),
    text: "`policies-enforced`: the cluster enforces the network policies of `trawl manifests`, so workers and inspector start on nodes whose kernel cannot bar a child's TCP connections (Linux before 6.7, or without Landlock); they refuse to start there otherwise.",
  },
} as const satisfies kind.SettingTable;
