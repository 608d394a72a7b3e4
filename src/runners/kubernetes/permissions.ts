import type { V1PolicyRule, V1Role } from '@kubernetes/client-node';

/** What the controller may do, in the namespace of the workers and nowhere else. */
export const permissions = [
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['create', 'get', 'list', 'watch', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['events'], verbs: ['list'] },
] as const satisfies readonly Readonly<V1PolicyRule>[];

/** One thing that the controller does. */
export interface Right {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
}

/** Every right by itself, as the API server is asked for it. */
export function listRights(): Right[] {
  return permissions.flatMap(({ apiGroups: [group], resources: [resource], verbs }) =>
    verbs.map((verb) => ({ group, resource, verb })),
  );
}

/** The Role that grants exactly these permissions. */
export function makeRole(namespace: string): V1Role {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'trawl-controller', namespace },
    rules: permissions.map(({ apiGroups, resources, verbs }) => ({
      apiGroups: [...apiGroups],
      resources: [...resources],
      verbs: [...verbs],
    })),
  };
}
