import type { Log } from '../../../src/base/log.ts';
import { makeMetrics } from '../../../src/base/metrics.ts';
import type { Access } from '../../../src/runners/kubernetes/access.ts';
import { type Client, openClient } from '../../../src/runners/kubernetes/client.ts';
import {
  makeAdmission,
  makeAdmissionBinding,
  makeNetworkPolicies,
  makeQuota,
} from '../../../src/runners/kubernetes/guard.ts';
import { type KubernetesRunner, openKubernetesRunner } from '../../../src/runners/kubernetes/kubernetes.ts';
import { makePod, type Shape } from '../../../src/runners/kubernetes/manifest.ts';
import type { Times } from '../../../src/runners/kubernetes/mirror.ts';
import { makePace } from '../../../src/runners/kubernetes/pace.ts';
import { makeRole } from '../../../src/runners/kubernetes/permissions.ts';
import { until } from '../until.ts';
import { type Cluster, makeNamespace } from './cluster.ts';

const attemptsMost = 20_000;

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

/**
 * Makes a namespace for workers as the chart would: restricted, with their account, our Role for the controller's account, and closed
 * to everything but pods of this shape.
 */
export async function makeWorkersNamespace(
  cluster: Cluster,
  namespace: string,
  shape = aShape(namespace),
): Promise<void> {
  await makeNamespace(cluster, namespace, { 'pod-security.kubernetes.io/enforce': 'restricted' });
  const post = (path: string, body: object) => cluster.admin.ask('POST', path, body);
  for (const name of ['trawl-worker', 'trawl-controller']) {
    await post(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name } });
  }
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  await post(`${rbac}/roles`, makeRole(namespace));
  await post(`${rbac}/rolebindings`, {
    metadata: { name: 'trawl-controller' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'trawl-controller' },
    subjects: [{ kind: 'ServiceAccount', name: 'trawl-controller', namespace }],
  });
  await post(`/api/v1/namespaces/${namespace}/resourcequotas`, makeQuota(namespace, attemptsMost));
  for (const policy of makeNetworkPolicies(shape, {
    ...{ namespace: 'trawl', gatewayPort: 8082, egressPort: 3128 },
    stores: [],
  })) {
    await post(`/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`, policy);
  }
  const admission = '/apis/admissionregistration.k8s.io/v1';
  await post(`${admission}/validatingadmissionpolicies`, makeAdmission(shape));
  await post(`${admission}/validatingadmissionpolicybindings`, makeAdmissionBinding(shape));
  await until(() => isGuarded(cluster, shape), 20, `${namespace} is closed to what is no worker`);
}

/** Whether the API server has begun to ask the policy. */
async function isGuarded({ admin }: Cluster, shape: Shape): Promise<boolean> {
  const pod = { metadata: { name: 'probe' }, spec: makePod({ ...shape, image: 'local.test/none:1' }, 1) };
  const path = `/api/v1/namespaces/${shape.namespace}/pods?dryRun=All`;
  return admin.ask('POST', path, pod).then(
    () => false,
    (error: Error) => error.message.includes('ValidatingAdmissionPolicy'),
  );
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

/** How many of our Jobs and pods there are, of all attempts or of one. */
export async function countLeft({ admin }: Cluster, namespace: string, name?: string): Promise<number> {
  interface Found {
    readonly items: readonly { readonly metadata: { readonly name: string } }[];
  }
  const paths = [`/apis/batch/v1/namespaces/${namespace}/jobs`, `/api/v1/namespaces/${namespace}/pods`];
  const found = await Promise.all(paths.map((path) => admin.ask<Found>('GET', path)));
  const names = found.flatMap(({ items }) => items.map(({ metadata }) => metadata.name));
  return names.filter((one) => name === undefined || one.startsWith(name)).length;
}
