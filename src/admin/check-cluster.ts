import type { Config } from '../base/config.ts';
import { messageOf } from '../base/errors.ts';
import { type ClusterAccess, findClusterAccess } from '../runners/kubernetes/cluster-access.ts';
import { makeJob, type WorkerShape } from '../runners/kubernetes/job-manifest.ts';
import { apiPathsOf, type KubeClient, KubeError, openKubeClient } from '../runners/kubernetes/kube-client.ts';
import { findMissingPermissions } from '../runners/kubernetes/permissions.ts';
import { readPublishedKeys } from '../runners/kubernetes/pod-identity.ts';
import { podShapeOf } from '../runners/kubernetes/pod-shape.ts';
import { makeRateLimiter } from '../runners/kubernetes/rate-limiter.ts';
import { type Finding, fine, judged, problem } from './doctor-finding.ts';

const attempt = { name: 'doctor-1', jobId: 'doctor', attempt: 1, maxMs: 60_000 } as const;
const foreignImage = 'local.invalid/no-worker:1';
const perSecond = 20;
/** Reasons for which a pod waits for its image. */
const imageFaults = ['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull'];

/** The fields of a pod that say whether it waits. */
interface WaitingPod {
  readonly spec?: { readonly nodeName?: string };
  readonly status?: {
    readonly containerStatuses?: readonly {
      readonly state?: { readonly waiting?: { readonly reason?: string; readonly message?: string } };
    }[];
  };
}

/** Checks what the controller needs of its cluster: rights, the rules of the workers' namespace, and images; makes no object. */
export async function checkCluster(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Finding[]> {
  const shape = podShapeOf(config);
  let access: ClusterAccess;
  try {
    access = await findClusterAccess(env);
  } catch (error) {
    return [problem('cluster', `The cluster cannot be found: ${messageOf(error)}`)];
  }
  const client = openKubeClient({ access, rateLimit: makeRateLimiter(perSecond, perSecond) });
  try {
    const rights = await checkRights(client, access.server, shape.namespace);
    if (rights.level === 'problem') return [rights];
    return [
      rights,
      await checkTokenKeys(client),
      await checkWorkersAreLetIn(client, shape),
      await checkOthersAreNot(client, shape),
      await checkImages(client, shape),
    ];
  } finally {
    await client.close();
  }
}

async function checkRights(client: KubeClient, server: string, namespace: string): Promise<Finding> {
  const about = 'rights';
  try {
    const missing = await findMissingPermissions(client, namespace);
    const well = `The controller may do all it needs in ${namespace}.`;
    const ill = `The controller may not do, in ${namespace}: ${missing.join(', ')}. Apply the Role of the chart or of trawl manifests.`;
    return judged(about, missing.length === 0, well, ill);
  } catch (error) {
    return problem(about, `The API server at ${server} cannot be asked: ${messageOf(error)}.`);
  }
}

/** Reads the keys by which the controller recognises its workers: without them it refuses each of their calls. */
async function checkTokenKeys(client: KubeClient): Promise<Finding> {
  const about = 'tokens';
  try {
    const { issuer } = await readPublishedKeys(client);
    return fine(about, `The cluster publishes the keys of its tokens, which ${issuer} issues.`);
  } catch (error) {
    const remedy =
      ' Bind the ClusterRole system:service-account-issuer-discovery to the group system:serviceaccounts, as Kubernetes does.';
    const isRefused = error instanceof KubeError && error.status === 403;
    return problem(
      about,
      `No worker would be let in by the controller: ${messageOf(error)}.${isRefused ? remedy : ''}`,
    );
  }
}

/** Tries a Job without making it, so quota, LimitRange, Pod Security and admission policy judge it. */
async function checkWorkersAreLetIn(client: KubeClient, shape: WorkerShape): Promise<Finding> {
  const refusal = await tryJob(client, shape);
  if (refusal !== null) return problem('admission', `${shape.namespace} refuses a worker: ${refusal}.`);
  return fine('admission', `${shape.namespace} lets in workers.`);
}

async function checkOthersAreNot(client: KubeClient, shape: WorkerShape): Promise<Finding> {
  const refusal = await tryJob(client, { ...shape, image: foreignImage });
  const { namespace } = shape;
  if (refusal === null) {
    const text = `${namespace} lets in pods with any image: apply the admission policy of the chart or of trawl manifests.`;
    return problem('admission', text);
  }
  const isGuarded = refusal.includes('ValidatingAdmissionPolicy');
  const other = `${namespace} refuses a pod with any image, but not by the admission policy: ${refusal}.`;
  return judged('admission', isGuarded, `${namespace} refuses pods that are no workers.`, other);
}

async function checkImages(client: KubeClient, { namespace, image }: WorkerShape): Promise<Finding> {
  const { items } = await client.ask<{ readonly items: readonly WaitingPod[] }>('GET', apiPathsOf(namespace).pods);
  const waiting = items.flatMap(({ spec, status }) =>
    (status?.containerStatuses ?? []).flatMap(({ state }) => {
      const { reason = '', message = '' } = state?.waiting ?? {};
      return imageFaults.includes(reason) ? [`on ${spec?.nodeName}: ${message || reason}`] : [];
    }),
  );
  if (waiting.length > 0) return problem('images', `${image} cannot be pulled ${waiting[0]}.`);
  return fine('images', 'No worker waits for its image.');
}

/** Returns why the API server would refuse a Job of this shape. */
async function tryJob(client: KubeClient, shape: WorkerShape): Promise<string | null> {
  const body = makeJob(attempt, shape);
  return client.ask('POST', apiPathsOf(shape.namespace).jobs, { query: { dryRun: 'All' }, body }).then(
    () => null,
    (error: Error) => error.message,
  );
}
