import type { Log } from '../../../src/base/log.ts';
import { makeMetrics } from '../../../src/base/metrics.ts';
import type { ClusterAccess } from '../../../src/runners/kubernetes/cluster-access.ts';
import type { InformerTimes } from '../../../src/runners/kubernetes/informer.ts';
import type { WorkerShape } from '../../../src/runners/kubernetes/job-manifest.ts';
import { apiPathsOf, type KubeClient, openKubeClient } from '../../../src/runners/kubernetes/kube-client.ts';
import { KubernetesRunner } from '../../../src/runners/kubernetes/kubernetes-runner.ts';
import { makeRateLimiter } from '../../../src/runners/kubernetes/rate-limiter.ts';
import type { Cluster } from './cluster.ts';
import { layGround } from './ground.ts';

/** What a test's worker pods look like; no container of them ever runs on a fake node. */
export function aShape(namespace: string): WorkerShape {
  return {
    namespace,
    image: 'local.test/worker:1',
    serviceAccount: 'trawl-worker',
    env: { TRAWL_GATEWAY_ADDRESS: 'http://gateway:8082' },
    ...{ cpu: '10m', memory: '64Mi', diskBytes: 2 ** 26 },
    ...{ runtimeClass: null, priorityClass: null, queue: null, awaySeconds: 2, startSeconds: 180, hostUsers: false },
  };
}

/** Makes a namespace for workers of this shape, as the chart would. */
export function makeWorkersNamespace({ admin }: Cluster, namespace: string, shape = aShape(namespace)): Promise<void> {
  return layGround(admin.ask, shape, { gatewayPort: 8082, egressPort: 3128, stores: [] });
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
    tls: { ca: authority.cert },
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
  const runner = new KubernetesRunner({
    ...{ client, shape, now, metrics: makeMetrics(), log, defersCleanup },
    ...(times && { times }),
  });
  return Object.assign(runner, { client });
}

/** Whether there is a Job or a pod, asked at little cost to who is measured. */
export async function hasAny({ admin }: Cluster, namespace: string): Promise<boolean> {
  const paths = listPaths(namespace).map((path) => `${path}?limit=1`);
  const found = await Promise.all(paths.map((path) => admin.ask<{ items: readonly object[] }>('GET', path)));
  return found.some(({ items }) => items.length > 0);
}

/** How many of our Jobs and pods there are, of all attempts or of one. */
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
