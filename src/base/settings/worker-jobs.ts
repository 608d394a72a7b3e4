import * as kind from './kinds.ts';
import type { Setting } from './settings.ts';

/** Settings of the Jobs that workers are in a cluster. */
export const kubeSettings = [
  {
    name: 'TRAWL_KUBE_NAMESPACE',
    kind: kind.namespace,
    default: null,
    text: 'Namespace of worker Jobs, and of nothing else.',
  },
  { name: 'TRAWL_KUBE_RATE', kind: kind.count, default: '200', text: 'Most requests a second to the API server.' },
  { name: 'TRAWL_WORKER_IMAGE', kind: kind.text, default: null, text: 'Image of worker Jobs.' },
  { name: 'TRAWL_WORKER_ACCOUNT', kind: kind.kubeName, default: 'trawl-worker', text: 'Their ServiceAccount.' },
  { name: 'TRAWL_WORKER_CPU', kind: kind.quantity, default: '250m', text: 'Processor that each asks for.' },
  { name: 'TRAWL_WORKER_MEMORY', kind: kind.quantity, default: '3Gi', text: 'Memory that each asks for and may use.' },
  { name: 'TRAWL_WORKER_AWAY_SECONDS', kind: kind.seconds, default: '60', text: 'Their wait for a node that is away.' },
  {
    name: 'TRAWL_WORKER_START_SECONDS',
    kind: kind.seconds,
    default: '180',
    text: 'Their wait for what keeps them from starting, such as an image that cannot be fetched.',
  },
  {
    name: 'TRAWL_WORKER_RUNTIME_CLASS',
    kind: kind.kubeName,
    default: null,
    text: 'Their RuntimeClass, such as `gvisor`.',
  },
  { name: 'TRAWL_WORKER_PRIORITY_CLASS', kind: kind.kubeName, default: null, text: 'Their PriorityClass.' },
  { name: 'TRAWL_WORKER_QUEUE', kind: kind.kubeName, default: null, text: 'The LocalQueue of Kueue that admits them.' },
  {
    name: 'TRAWL_WORKER_HOST_USERS',
    kind: kind.flag,
    default: 'false',
    text: 'Whether they share the users of their node, for nodes without user namespaces.',
  },
] as const satisfies readonly Setting[];
