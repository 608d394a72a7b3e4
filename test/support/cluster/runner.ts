import { readConfig } from '../../../src/base/config.ts';
import type { Log } from '../../../src/base/log.ts';
import { type Metrics, makeMetrics } from '../../../src/base/metrics.ts';
import type { AdmissionAllowances } from '../../../src/runners/kubernetes/admission-rules.ts';
import type { ClusterAccess } from '../../../src/runners/kubernetes/cluster-access.ts';
import type { InformerTimes } from '../../../src/runners/kubernetes/informer.ts';
import type { WorkerShape } from '../../../src/runners/kubernetes/job-manifest.ts';
import { apiPathsOf, type KubeClient, openKubeClient } from '../../../src/runners/kubernetes/kube-client.ts';
import { KubernetesRunner } from '../../../src/runners/kubernetes/kubernetes-runner.ts';
import { podShapeOf } from '../../../src/runners/kubernetes/pod-shape.ts';
import { makeRateLimiter } from '../../../src/runners/kubernetes/rate-limiter.ts';
import type { Cluster } from './cluster.ts';
import { setUpNamespace } from './worker-namespace.ts';

/** Settings of a test's workers, the same for its controllers and for what is admitted into its namespace. */
export const workerSettings: Readonly<Record<string, string>> = {
  TRAWL_WORKER_IMAGE: 'local.test/worker:1',
  TRAWL_WORKER_MEMORY: '64Mi',
  TRAWL_WORKER_CPU: '10m',
  TRAWL_WORKER_AWAY_SECONDS: '2',
  TRAWL_GATEWAY_ADDRESS: 'http://gateway:8082',
  TRAWL_EGRESS_ADDRESS: 'http://egress:3128',
  TRAWL_YTDLP_PLUGINS: '/opt/plugins:/opt/more',
  TRAWL_MAX_FILE_BYTES: '1000000',
  TRAWL_LOG_LEVEL: 'debug',
};

/** The shape of a test's worker pods; no container of them ever runs on a fake node. */
export function aShape(namespace: string, more: Readonly<Record<string, string>> = {}): WorkerShape {
  return podShapeOf(readConfig({ ...workerSettings, ...more, TRAWL_KUBE_NAMESPACE: namespace }));
}

/** Makes a namespace for workers of this shape, as the chart would. */
export function makeWorkersNamespace(
  { admin }: Cluster,
  namespace: string,
  shape = aShape(namespace),
  allowances?: AdmissionAllowances,
): Promise<void> {
  return setUpNamespace(admin.ask, shape, { gatewayPort: 8082, egressPort: 3128, stores: [] }, allowances);
}

/** The way into the cluster of a pod with this ServiceAccount. */
export async function accessAs(
  { admin, url, authority }: Cluster,
  namespace: string,
  account: string,
): Promise<ClusterAccess> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
  const { status } = await admin.ask('POST', path, { spec: { expirationSeconds: 3600 } });
  return {
    server: url,
    tls: async () => ({ ca: authority.cert }),
    headers: async () => ({ authorization: `Bearer ${status.token}` }),
  };
}

export interface TestRunnerOptions {
  readonly cluster: Cluster;
  readonly namespace: string;
  readonly log: Log;
  readonly now?: () => number;
  readonly shape?: Partial<WorkerShape>;
  readonly times?: Partial<InformerTimes>;
  readonly answerMs?: number;
  readonly defersCleanup?: boolean;
  /** Stands between the runner and its client. */
  readonly between?: (client: KubeClient) => KubeClient;
}

export interface TestRunner extends KubernetesRunner {
  readonly client: KubeClient;
  readonly metrics: Metrics;
}

/** Opens a runner that may do no more than our permissions say. */
export async function openTestRunner(options: TestRunnerOptions): Promise<TestRunner> {
  const { cluster, namespace, log, now = Date.now, times, answerMs, defersCleanup = true } = options;
  const access = await accessAs(cluster, namespace, 'trawl-controller');
  const plain = openKubeClient({
    ...{ access, rateLimit: makeRateLimiter(500, 500, () => performance.now()) },
    ...(answerMs && { answerMs }),
  });
  const client = options.between ? options.between(plain) : plain;
  const shape = { ...aShape(namespace), ...options.shape };
  const metrics = makeMetrics();
  const runner = new KubernetesRunner({
    ...{ client, shape, now, metrics, log, defersCleanup },
    ...(times && { times }),
  });
  return Object.assign(runner, { client, metrics });
}

/** Returns true when a Job or a pod exists, with two cheap requests. */
export async function hasAny({ admin }: Cluster, namespace: string): Promise<boolean> {
  const paths = listPaths(namespace).map((path) => `${path}?limit=1`);
  const found = await Promise.all(paths.map((path) => admin.ask<{ items: readonly object[] }>('GET', path)));
  return found.some(({ items }) => items.length > 0);
}

/** Returns the number of our Jobs and pods, of all attempts or of one. */
export async function countLeft({ admin }: Cluster, namespace: string, name?: string): Promise<number> {
  interface Found {
    readonly items: readonly { readonly metadata: { readonly name: string } }[];
  }
  const found = await Promise.all(listPaths(namespace).map((path) => admin.ask<Found>('GET', path)));
  const names = found.flatMap(({ items }) => items.map(({ metadata }) => metadata.name));
  return names.filter((one) => name === undefined || one.startsWith(name)).length;
}

function listPaths(namespace: string): string[] {
  const { jobs, pods } = apiPathsOf(namespace);
  return [jobs, pods];
}
