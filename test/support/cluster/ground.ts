import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeRole } from '../../../src/runners/kubernetes/permissions.ts';
import { apply, type Kubeconfig, kubectl } from './kubectl.ts';

const account = 'trawl-controller';

/**
 * Makes a namespace for workers on whatever cluster a kubeconfig leads to, as the chart would; answers the kubeconfig of the
 * controller, which may do there what our permissions say, and nothing else anywhere.
 */
export async function layGround(cluster: Kubeconfig, namespace: string, folder: string): Promise<string> {
  const metadata = { name: account, namespace };
  const accounts = [account, 'trawl-worker'].map((name) => ({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name, namespace },
  }));
  await apply(
    cluster,
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    },
    ...accounts,
    makeRole(namespace),
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: account },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    },
  );
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
