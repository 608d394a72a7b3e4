import { findClusterAccess } from './cluster-access.ts';
import { apiPathsOf, type KubeClient, KubeError, openKubeClient } from './kube-client.ts';
import { finalizer, workerSelector } from './labels.ts';
import { makeRateLimiter } from './rate-limiter.ts';

interface Listed {
  readonly items: readonly { readonly metadata: { readonly name: string; readonly finalizers?: readonly string[] } }[];
}

const requestsPerSecond = 50;

/** Deletes every Job and pod of workers in a namespace, with our finalizer, and returns how many there were. */
export async function releaseWorkers(
  env: Readonly<Record<string, string | undefined>>,
  namespace: string,
): Promise<number> {
  const rateLimit = makeRateLimiter(requestsPerSecond, 2 * requestsPerSecond, () => performance.now());
  const client = openKubeClient({ access: await findClusterAccess(env), rateLimit });
  try {
    const { jobs, pods } = apiPathsOf(namespace);
    // Jobs first: a Job would replace its pod.
    return (await release(client, jobs)) + (await release(client, pods));
  } finally {
    await client.close();
  }
}

async function release(client: KubeClient, path: string): Promise<number> {
  const query = { labelSelector: workerSelector };
  const { items } = await client.ask<Listed>('GET', path, { query });
  const change = { metadata: { '$deleteFromPrimitiveList/finalizers': [finalizer] } };
  await Promise.all(
    items.map(async ({ metadata: { name, finalizers = [] } }) => {
      await unlessGone(client.change('DELETE', `${path}/${name}`, { propagationPolicy: 'Background' }));
      if (finalizers.includes(finalizer)) await unlessGone(client.change('PATCH', `${path}/${name}`, change));
    }),
  );
  return items.length;
}

async function unlessGone(change: Promise<unknown>): Promise<void> {
  try {
    await change;
  } catch (error) {
    if (!(error instanceof KubeError) || error.status !== 404) throw error;
  }
}
