import type { Log } from '../../../src/base/log.ts';
import { makeMetrics } from '../../../src/base/metrics.ts';
import type { Access } from '../../../src/runners/kubernetes/cluster-access.ts';
import { pathsOf } from '../../../src/runners/kubernetes/cluster-state.ts';
import type { Times } from '../../../src/runners/kubernetes/informer.ts';
import type { Shape } from '../../../src/runners/kubernetes/job-manifest.ts';
import { type Client, openClient } from '../../../src/runners/kubernetes/kube-client.ts';
import { type KubernetesRunner, openKubernetesRunner } from '../../../src/runners/kubernetes/kubernetes-runner.ts';
import { makePace } from '../../../src/runners/kubernetes/rate-limiter.ts';
import type { Cluster } from './cluster.ts';
import { layGround } from './ground.ts';

/** What a test's worker pods look like; no container of them ever runs on a fake node. */
export function aShape(namespace: string): Shape {
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
): Promise<Access> {
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
  readonly shape?: Partial<Shape>;
  readonly times?: Partial<Times>;
  readonly answerMilliseconds?: number;
  /** Stands between the runner and its client. */
  readonly between?: (client: Client) => Client;
}

export interface TestRunner extends KubernetesRunner {
  readonly client: Client;
}

/** Opens a runner that may do no more than our permissions say. */
export async function openTestRunner(options: TestRunnerOptions): Promise<TestRunner> {
  const { cluster, namespace, log, now = Date.now, times, answerMilliseconds } = options;
  const access = await accessAs(cluster, namespace, 'trawl-controller');
  const plain = openClient({
    ...{ access, pace: makePace(500, 500, () => performance.now()) },
    ...(answerMilliseconds && { answerMilliseconds }),
  });
  const client = options.between ? options.between(plain) : plain;
  const runner = openKubernetesRunner({
    ...{ client, shape: { ...aShape(namespace), ...options.shape }, now, metrics: makeMetrics(), log },
    ...(times && { times }),
  });
  const close = async () => {
    await runner.close();
    await client.close();
    return [];
  };
  return { ...runner, client, close };
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
  const { jobs, pods } = pathsOf(namespace);
  return [jobs, pods];
}
