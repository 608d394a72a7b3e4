import { tokenAudience } from '../../../src/runners/kubernetes/job-manifest.ts';
import type { Cluster } from './cluster.ts';
import type { Pod } from './pod.ts';

/** The differences of a token from that of a worker. */
export interface TokenOptions {
  readonly audiences?: readonly string[];
  readonly account?: string;
  readonly in?: string;
  readonly isBound?: boolean;
}

/** The token that a kubelet would give to this pod. */
export async function makePodToken(
  { admin }: Cluster,
  { metadata: { name, uid, namespace } }: Pod,
  wanted: TokenOptions = {},
): Promise<string> {
  const { audiences = [tokenAudience], account = 'trawl-worker', in: space = namespace, isBound = true } = wanted;
  const boundObjectRef = isBound ? { kind: 'Pod', apiVersion: 'v1', name, uid } : undefined;
  const path = `/api/v1/namespaces/${space}/serviceaccounts/${account}/token`;
  const { status } = await admin.ask('POST', path, { spec: { audiences, expirationSeconds: 600, boundObjectRef } });
  return status.token;
}
