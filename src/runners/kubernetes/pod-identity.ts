import type { V1Pod } from '@kubernetes/client-node';
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose';
import { type AttemptId, attemptNumberOf, jobIdOf } from '../runner.ts';
import type { ClusterState } from './cluster-state.ts';
import { tokenAudience, type WorkerShape } from './job-manifest.ts';
import { isTerminal } from './judge-attempt.ts';
import { apiPathsOf, type KubeClient, KubeError } from './kube-client.ts';
import { workerLabels } from './labels.ts';
import { type KubeJson, type PodSnapshot, readPodSnapshot } from './snapshot.ts';

export interface PodIdentityOptions {
  readonly client: KubeClient;
  readonly state: Pick<ClusterState, 'pod'>;
  readonly shape: Pick<WorkerShape, 'namespace' | 'serviceAccount'>;
}

/** The pod that a token was made for. */
interface PodOf {
  readonly name: string;
  readonly uid: string;
}

/** Keys are asked for again when one is missing, but not more often than this. */
const minKeysAgeMs = 10_000;
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'ES256', 'ES384', 'ES512'];

/**
 * Tells the attempt of a token that the cluster made for one of our pods and for us: its signature is checked with the
 * cluster's published keys, and its pod must be there and not have ended. `null` for every other token.
 */
export function openPodIdentity(options: PodIdentityOptions): (token: string) => Promise<AttemptId | null> {
  const keys = keepKeys(options.client);
  return async (token) => {
    const payload = await verify(token, keys);
    const told = payload && readPod(payload, options.shape);
    if (!told) return null;
    const pod = await findPod(options, told);
    if (!pod || pod.uid !== told.uid || isTerminal(pod) || pod.attemptName === '') return null;
    return { jobId: jobIdOf(pod.attemptName), attempt: attemptNumberOf(pod.attemptName) };
  };
}

type Keys = ReturnType<typeof keepKeys>;

interface Published {
  readonly issuer: string;
  readonly find: ReturnType<typeof createLocalJWKSet>;
}

/** What the cluster publishes of its keys; read when it is first needed and when it lacks one. */
function keepKeys(client: KubeClient) {
  let reading: Promise<Published> | null = null;
  let readAt = Number.NEGATIVE_INFINITY;
  const read = async (): Promise<Published> => {
    const [{ issuer }, set] = await Promise.all([
      client.ask<{ issuer: string }>('GET', '/.well-known/openid-configuration'),
      client.ask<JSONWebKeySet>('GET', '/openid/v1/jwks', { accept: 'application/jwk-set+json' }),
    ]);
    return { issuer, find: createLocalJWKSet(set) };
  };
  const start = () => {
    readAt = performance.now();
    reading = read();
    // The next one asks anew.
    reading.catch(() => {
      reading = null;
    });
    return reading;
  };
  return {
    get: () => reading ?? start(),
    /** Newer ones, or `null` when they were read just now. */
    again: () => (performance.now() - readAt < minKeysAgeMs ? null : start()),
  };
}

async function verify(token: string, keys: Keys): Promise<JWTPayload | null> {
  try {
    return await verifyWith(token, await keys.get());
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) {
      const newer = keys.again();
      return newer && verifyWith(token, await newer).catch(orRefused);
    }
    return orRefused(error);
  }
}

async function verifyWith(token: string, { issuer, find }: Published): Promise<JWTPayload> {
  const required = ['exp', 'iat', 'sub'];
  const { payload } = await jwtVerify(token, find, {
    issuer,
    audience: tokenAudience,
    algorithms,
    requiredClaims: required,
  });
  return payload;
}

/** What is wrong with a token is no fault of ours; what cannot be read is. */
function orRefused(error: unknown): null {
  if (error instanceof errors.JOSEError) return null;
  throw error;
}

function readPod(payload: JWTPayload, { namespace, serviceAccount }: PodIdentityOptions['shape']): PodOf | null {
  const bound = payload['kubernetes.io'] as { readonly namespace?: unknown; readonly pod?: Partial<PodOf> } | undefined;
  const { name, uid } = bound?.pod ?? {};
  const isOurs =
    bound?.namespace === namespace && payload.sub === `system:serviceaccount:${namespace}:${serviceAccount}`;
  return isOurs && typeof name === 'string' && typeof uid === 'string' ? { name, uid } : null;
}

/** The pod as it is known; a worker may be faster than the watch. */
async function findPod(
  { client, state, shape }: PodIdentityOptions,
  { name, uid }: PodOf,
): Promise<PodSnapshot | null> {
  const known = state.pod(name);
  if (known?.uid === uid) return known;
  try {
    const raw = await client.ask<KubeJson<V1Pod>>(
      'GET',
      `${apiPathsOf(shape.namespace).pods}/${encodeURIComponent(name)}`,
    );
    const labels = raw.metadata?.labels ?? {};
    return Object.entries(workerLabels).every(([label, value]) => labels[label] === value)
      ? readPodSnapshot(raw)
      : null;
  } catch (error) {
    if (error instanceof KubeError && error.status === 404) return null;
    throw error;
  }
}
