import type { KubeClient } from './kube-client.ts';
import { listPermissions, type Permission } from './permissions.ts';

/** Returns the permissions that we lack in a namespace, such as `create jobs`. */
export async function findMissingPermissions(client: KubeClient, namespace: string): Promise<string[]> {
  const answers = await Promise.all(
    listPermissions().map(async (right) => ((await mayDo(client, namespace, right)) ? [] : [right])),
  );
  return answers.flat().map(({ verb, resource }) => `${verb} ${resource}`);
}

async function mayDo(client: KubeClient, namespace: string, { group, resource, verb }: Permission): Promise<boolean> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { namespace, group, resource, verb } },
  };
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
  const { status } = await client.ask<{ status?: { allowed: boolean } }>('POST', path, { body });
  return status?.allowed === true;
}
