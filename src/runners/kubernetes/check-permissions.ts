import type { Client } from './kube-client.ts';
import { listRights, type Right } from './permissions.ts';

/** Asks the API server which of our permissions are missing in a namespace; answers them as sentences would name them. */
export async function findMissingRights(client: Client, namespace: string): Promise<string[]> {
  const answers = await Promise.all(
    listRights().map(async (right) => ((await mayDo(client, namespace, right)) ? [] : [right])),
  );
  return answers.flat().map(({ verb, resource }) => `${verb} ${resource}`);
}

async function mayDo(client: Client, namespace: string, { group, resource, verb }: Right): Promise<boolean> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { namespace, group, resource, verb } },
  };
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
  const { status } = await client.ask<{ status?: { allowed: boolean } }>('POST', path, { body });
  return status?.allowed === true;
}
