import { setTimeout as pause } from 'node:timers/promises';
import { findClusterAccess } from './cluster-access.ts';
import { apiPathsOf, type KubeClient, openKubeClient } from './kube-client.ts';
import { finalizer, workerSelector } from './labels.ts';
import { makeRateLimiter } from './rate-limiter.ts';

interface ListedMetadata {
  readonly name: string;
  readonly uid: string;
  readonly deletionTimestamp?: string;
  readonly finalizers?: readonly string[];
}

interface Listed {
  readonly items: readonly { readonly metadata: ListedMetadata }[];
}

const requestsPerSecond = 50;
/** Changed between two calls of `keepLead`: under 10 s at that rate. */
const maxAtOnce = 200;
/** A controller that has lost the lead may just be making a Job. */
const lateJobMs = 5_000;

/**
 * Deletes every Job and pod of workers in a namespace, with our finalizer, and returns how many there were. `keepLead` is called again
 * and again while controllers must not begin attempts; then it also waits for a Job that was on its way. `null` when none can begin.
 */
export async function releaseWorkers(
  env: Readonly<Record<string, string | undefined>>,
  namespace: string,
  keepLead: (() => Promise<void>) | null,
): Promise<number> {
  const rateLimit = makeRateLimiter(requestsPerSecond, 2 * requestsPerSecond);
  const client = openKubeClient({ access: await findClusterAccess(env), rateLimit });
  const released = new Set<string>();
  try {
    const { jobs, pods } = apiPathsOf(namespace);
    for (let newest = performance.now(); ; ) {
      // Jobs first: a Job would replace its pod.
      const found =
        (await release(client, jobs, released, keepLead)) + (await release(client, pods, released, keepLead));
      if (found > 0) newest = performance.now();
      else if (keepLead === null || performance.now() >= newest + lateJobMs) return released.size;
      await pause(200);
    }
  } finally {
    await client.close();
  }
}

/**
 * Deletes those that are not among the released ones yet, adds them, and returns how many it found. The client ignores a conflict: one
 * that is still whole, or still has our finalizer, is found again.
 */
async function release(
  client: KubeClient,
  path: string,
  released: Set<string>,
  keepLead: (() => Promise<void>) | null,
): Promise<number> {
  await keepLead?.();
  const query = { labelSelector: workerSelector };
  const { items } = await client.ask<Listed>('GET', path, { query });
  const change = { metadata: { '$deleteFromPrimitiveList/finalizers': [finalizer] } };
  const found = items.filter(
    ({ metadata: { uid, deletionTimestamp, finalizers } }) =>
      !released.has(uid) || deletionTimestamp === undefined || finalizers?.includes(finalizer),
  );
  for (let start = 0; start < found.length; start += maxAtOnce) {
    await keepLead?.();
    await Promise.all(
      found.slice(start, start + maxAtOnce).map(async ({ metadata: { name, uid, finalizers = [] } }) => {
        await client.change('DELETE', `${path}/${name}`, { propagationPolicy: 'Background' });
        if (finalizers.includes(finalizer)) await client.change('PATCH', `${path}/${name}`, change);
        released.add(uid);
      }),
    );
  }
  return found.length;
}
