import type { V1PolicyRule, V1Role, V1RoleBinding } from '@kubernetes/client-node';
import type { KubeClient } from './kube-client.ts';

/** All permissions of the controller; they hold in the namespace of the workers alone. */
const permissions = [
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['create', 'get', 'list', 'watch', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['events'], verbs: ['list'] },
] as const satisfies readonly Readonly<V1PolicyRule>[];

type Asking = Pick<KubeClient, 'ask'>;

interface Permission {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
}

/** Returns every permission by itself, as the API server is asked for it. */
function listPermissions(): Permission[] {
  return permissions.flatMap(({ apiGroups: [group], resources: [resource], verbs }) =>
    verbs.map((verb) => ({ group, resource, verb })),
  );
}

/** Name of the Role, of its binding and of the service account that the controller runs under. */
const controller = 'trawl-controller';

export function makeRole(namespace: string): V1Role {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: controller, namespace },
    rules: permissions.map(({ apiGroups, resources, verbs }) => ({
      apiGroups: [...apiGroups],
      resources: [...resources],
      verbs: [...verbs],
    })),
  };
}

/** Binds the Role to the controller's service account, which may be in another namespace. */
export function makeRoleBinding(namespace: string, controllerNamespace: string): V1RoleBinding {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: controller, namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: controller },
    subjects: [{ kind: 'ServiceAccount', name: controller, namespace: controllerNamespace }],
  };
}

/** Returns the permissions that we lack in a namespace, such as `create jobs`. */
export async function findMissingPermissions(
  client: Asking,
  namespace: string,
  signal?: AbortSignal,
): Promise<string[]> {
  const answers = await Promise.all(
    listPermissions().map(async (right) => ((await mayDo(client, namespace, right, signal)) ? [] : [right])),
  );
  return answers.flat().map(({ verb, resource }) => `${verb} ${resource}`);
}

async function mayDo(
  client: Asking,
  namespace: string,
  { group, resource, verb }: Permission,
  signal?: AbortSignal,
): Promise<boolean> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { namespace, group, resource, verb } },
  };
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
  const { status } = await client.ask<{ status?: { allowed: boolean } }>('POST', path, {
    body,
    signal,
  });
  return status?.allowed === true;
}
