import type { V1PolicyRule, V1Role, V1RoleBinding } from '@kubernetes/client-node';
import type { KubeClient } from './kube-client.ts';

/** All permissions of the controller; they hold in the namespace of the workers alone. */
const permissions: V1PolicyRule[] = [
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['create', 'get', 'list', 'watch', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['events'], verbs: ['list'] },
];

/** Name of the Role, of its binding and of the service account that the controller runs under. */
const controller = 'trawl-controller';

export function makeRole(namespace: string): V1Role {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: controller, namespace },
    rules: permissions,
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
  client: Pick<KubeClient, 'ask'>,
  namespace: string,
  signal?: AbortSignal,
): Promise<string[]> {
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
  const asked = permissions.flatMap(({ apiGroups: [group] = [], resources: [resource] = [], verbs }) =>
    verbs.map(async (verb) => {
      const body = {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { namespace, group, resource, verb } },
      };
      const { status } = await client.ask<{ status?: { allowed: boolean } }>('POST', path, { body, signal });
      return status?.allowed === true ? [] : [`${verb} ${resource}`];
    }),
  );
  return (await Promise.all(asked)).flat();
}
