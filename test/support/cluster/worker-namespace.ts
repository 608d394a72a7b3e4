import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AdmissionAllowances } from '../../../src/runners/kubernetes/admission-rules.ts';
import { makeJob, type WorkerShape } from '../../../src/runners/kubernetes/job-manifest.ts';
import {
  type AllowedTargets,
  makeAdmissionBinding,
  makeAdmissionPolicy,
  makeLimitRange,
  makeNetworkPolicies,
  makeQuota,
} from '../../../src/runners/kubernetes/namespace-policies.ts';
import { makeRole, makeRoleBinding } from '../../../src/runners/kubernetes/permissions.ts';
import type { Json } from '../json.ts';
import { until } from '../until.ts';
import { type Kubeconfig, kubectl } from './kubectl.ts';

/** Asks an API server for something as its administrator; rejects with what it says against it. */
export type Ask = (method: 'GET' | 'POST' | 'PUT', path: string, object?: object) => Promise<Json>;

const account = 'trawl-controller';
const attemptsMost = 20_000;
const admission = '/apis/admissionregistration.k8s.io/v1';
const policies = `${admission}/validatingadmissionpolicies`;

/**
 * Makes a namespace for workers as the chart would: restricted, with their account, our Role for the controller's account, and closed
 * to everything but pods of this shape. Answers when it is closed.
 */
export async function setUpNamespace(
  ask: Ask,
  shape: WorkerShape,
  ways: Omit<AllowedTargets, 'namespace'>,
  allowances?: AdmissionAllowances,
): Promise<void> {
  const { namespace, serviceAccount } = shape;
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  await ask('POST', '/api/v1/namespaces', { metadata: { name: namespace, labels } });
  for (const name of [serviceAccount, account]) {
    await ask('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name } });
  }
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  await ask('POST', `${rbac}/roles`, makeRole(namespace));
  await ask('POST', `${rbac}/rolebindings`, makeRoleBinding(namespace, namespace));
  await ask('POST', `/api/v1/namespaces/${namespace}/resourcequotas`, makeQuota(namespace, attemptsMost));
  if (!allowances?.fields.some(({ name }) => name === 'worker.resources')) {
    await ask('POST', `/api/v1/namespaces/${namespace}/limitranges`, makeLimitRange(shape));
  }
  for (const policy of makeNetworkPolicies(shape, { ...ways, namespace: 'trawl' })) {
    await ask('POST', `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`, policy);
  }
  await ask('POST', policies, makeAdmissionPolicy(shape, allowances));
  await ask('POST', `${admission}/validatingadmissionpolicybindings`, makeAdmissionBinding(shape));
  await until(() => isPolicyEnforced(ask, shape), 20, `${namespace} is closed to what is no worker`);
}

/** Closes it to everything but pods of another shape, as the chart would with its next release. */
export async function changeAdmissionPolicy(ask: Ask, shape: WorkerShape): Promise<void> {
  const policy = makeAdmissionPolicy(shape);
  const path = `${policies}/${policy.metadata?.name}`;
  const { metadata } = await ask('GET', path);
  await ask('PUT', path, { ...policy, metadata });
  const limits = `/api/v1/namespaces/${shape.namespace}/limitranges/trawl-workers`;
  await ask('PUT', limits, { ...makeLimitRange(shape), metadata: (await ask('GET', limits)).metadata });
  await until(() => isPolicyEnforced(ask, shape), 20, `${shape.namespace} is open to other workers`);
}

/** Returns a pod of a worker's shape that no Job made. */
export function makeWorkerPod(name: string, shape: WorkerShape): Json {
  const attempt = { name: `${name}-1`, jobId: name, attempt: 1, maxMs: 1_000 } as const;
  const { metadata, spec } = structuredClone(makeJob(attempt, shape).spec?.template ?? {});
  const { labels, annotations } = metadata ?? {};
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels, annotations }, spec };
}

/** Returns true when the API server enforces the policy: it admits a worker, and refuses another image. */
async function isPolicyEnforced(ask: Ask, shape: WorkerShape): Promise<boolean> {
  const path = `/api/v1/namespaces/${shape.namespace}/pods?dryRun=All`;
  const refusal = (image: string) => {
    return ask('POST', path, makeWorkerPod('probe', { ...shape, image })).then(
      () => null,
      (error: Error) => error.message,
    );
  };
  const said = await refusal('local.test/none:1');
  return (said?.includes('ValidatingAdmissionPolicy') ?? false) && (await refusal(shape.image)) === null;
}

/** Asks whatever cluster a kubeconfig leads to. */
export function askWithKubectl(cluster: Kubeconfig): Ask {
  const verbs = { GET: 'get', POST: 'create', PUT: 'replace' };
  return async (method, path, object) => {
    const given = object ? ['--filename', '-'] : [];
    return JSON.parse(await kubectl(cluster, [verbs[method], '--raw', path, ...given], object));
  };
}

/** Takes away what stands outside of the namespace of this name. */
export async function removeNamespace(cluster: Kubeconfig, namespace: string): Promise<void> {
  const name = makeAdmissionBinding({ namespace }).metadata?.name ?? '';
  for (const kind of ['validatingadmissionpolicybinding', 'validatingadmissionpolicy']) {
    await kubectl(cluster, ['delete', kind, name, '--ignore-not-found']);
  }
  await kubectl(cluster, ['delete', 'namespace', namespace, '--ignore-not-found', '--timeout=120s']);
}

/** Writes the kubeconfig of the controller, which may do what its Role says, and nothing else anywhere. */
export async function writeControllerConfig(cluster: Kubeconfig, namespace: string, folder: string): Promise<string> {
  const token = await kubectl(cluster, ['create', 'token', account, '-n', namespace, '--duration=1h']);
  const shown = await kubectl(cluster, ['config', 'view', '--raw', '--minify', '--flatten', '-o', 'json']);
  const { clusters } = JSON.parse(shown) as { clusters: { name: string; cluster: object }[] };
  const file = join(folder, 'controller.kubeconfig');
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters,
      users: [{ name: account, user: { token } }],
      contexts: [{ name: account, context: { cluster: clusters[0]?.name, user: account } }],
      'current-context': account,
    }),
  );
  return file;
}
