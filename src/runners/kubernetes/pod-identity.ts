import type { V1Pod } from '@kubernetes/client-node';
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose';
import { type AttemptId, attemptNumberOf, jobIdOf } from '../runner.ts';
import type { ClusterState } from './cluster-state.ts';
import { tokenAudience, type WorkerShape } from './job-manifest.ts';
import { isTerminal } from './judge-attempt.ts';
import { apiPathsOf, type KubeClient, nullWhenMissing } from './kube-client.ts';
import { workerLabels } from './labels.ts';
import { type KubeJson, type PodSnapshot, readPodSnapshot } from './snapshot.ts';

interface PodIdentityOptions {
  readonly client: Pick<KubeClient, 'ask'>;
  readonly state: Pick<ClusterState, 'pod'>;
  readonly shape: Pick<WorkerShape, 'namespace' | 'serviceAccount'>;
  /** Clocks, in milliseconds since 1970. Times of a token follow the clock of the cluster, which cannot be read: a token is valid while it is by one of these. */
  readonly clocks: readonly (() => number)[];
  /** Least time between two reads of the cluster's keys and issuer. */
  readonly minKeysAgeMs?: number;
}

interface TokenPod {
  readonly name: string;
  readonly uid: string;
}

const defaultMinKeysAgeMs = 10_000;
/** A token holds from the second in which the cluster made it, and its clock may be a little ahead: API servers allow each other as much. */
const clockTolerance = '60s';
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'ES256', 'ES384', 'ES512'];

/**
 * Returns a function that finds the attempt of a token: the cluster issued the token for one of our pods and for our audience, its
 * signature fits the cluster's published keys, and its pod exists and has not ended. `null` for every other token.
 */
export function openPodIdentity(options: PodIdentityOptions): (token: string) => Promise<AttemptId | null> {
  const keys = keepKeys(options);
  return async (token) => {
    const payload = await verify(token, keys, options.clocks);
    const named = payload && readPod(payload, options.shape);
    if (!named) return null;
    const pod = await findPod(options, named);
    if (!pod || pod.uid !== named.uid || isTerminal(pod) || pod.attemptName === '') return null;
    return { jobId: jobIdOf(pod.attemptName), attempt: attemptNumberOf(pod.attemptName) };
  };
}

type Keys = ReturnType<typeof keepKeys>;

interface Published {
  /** Every issuer that the cluster has named: a pod keeps its token when `--service-account-issuer` changes. */
  readonly issuers: readonly string[];
  readonly find: ReturnType<typeof createLocalJWKSet>;
}

/** Reads the issuer of the tokens of a cluster, and the keys that they are signed with. */
export async function readPublishedKeys(client: Pick<KubeClient, 'ask'>) {
  const [{ issuer }, set] = await Promise.all([
    client.ask<{ issuer: string }>('GET', '/.well-known/openid-configuration'),
    client.ask<JSONWebKeySet>('GET', '/openid/v1/jwks', { accept: 'application/jwk-set+json' }),
  ]);
  return { issuer, set };
}

/** Caches the published keys of the cluster; they are read when first needed and when a token has an unknown key or issuer. */
function keepKeys({ client, minKeysAgeMs = defaultMinKeysAgeMs }: PodIdentityOptions) {
  const issuers = new Set<string>();
  let reading: Promise<Published> | null = null;
  let readAt = Number.NEGATIVE_INFINITY;
  const read = async (): Promise<Published> => {
    const { issuer, set } = await readPublishedKeys(client);
    issuers.add(issuer);
    return { issuers: [...issuers], find: createLocalJWKSet(set) };
  };
  const start = () => {
    readAt = performance.now();
    reading = read();
    // The next token reads them again.
    reading.catch(() => {
      reading = null;
    });
    return reading;
  };
  return {
    get: () => reading ?? start(),
    /** Returns newer keys than these, which another token may have asked for already; `null` when these were read just now. */
    again: (known: Promise<Published>) => {
      if (reading !== known) return reading ?? start();
      return performance.now() - readAt < minKeysAgeMs ? null : start();
    },
  };
}

type Clocks = PodIdentityOptions['clocks'];

async function verify(token: string, keys: Keys, clocks: Clocks): Promise<JWTPayload | null> {
  const known = keys.get();
  try {
    return await verifyWith(token, await known, clocks);
  } catch (error) {
    if (isUnknownSigner(error)) {
      const newer = keys.again(known);
      return newer && verifyWith(token, await newer, clocks).catch(nullWhenRefused);
    }
    return nullWhenRefused(error);
  }
}

async function verifyWith(token: string, { issuers, find }: Published, clocks: Clocks): Promise<JWTPayload> {
  const requiredClaims = ['exp', 'iat', 'sub'];
  const expected = { issuer: [...issuers], audience: tokenAudience, algorithms, requiredClaims, clockTolerance };
  let failure: unknown;
  for (const clock of clocks) {
    try {
      return (await jwtVerify(token, find, { ...expected, currentDate: new Date(clock()) })).payload;
    } catch (error) {
      if (!isTimeFault(error)) throw error;
      failure = error;
    }
  }
  throw failure;
}

/** True for the error of a token whose key or issuer is not among those that were read. */
function isUnknownSigner(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey ||
    (error instanceof errors.JWTClaimValidationFailed && error.claim === 'iss')
  );
}

function isTimeFault(error: unknown): boolean {
  return (
    error instanceof errors.JWTExpired || (error instanceof errors.JWTClaimValidationFailed && error.claim === 'nbf')
  );
}

/** Returns `null` for a wrong token; throws any other error. */
function nullWhenRefused(error: unknown): null {
  if (error instanceof errors.JOSEError) return null;
  throw error;
}

function readPod(payload: JWTPayload, { namespace, serviceAccount }: PodIdentityOptions['shape']): TokenPod | null {
  const bound = payload['kubernetes.io'] as
    | { readonly namespace?: unknown; readonly pod?: Partial<TokenPod> }
    | undefined;
  const { name, uid } = bound?.pod ?? {};
  const isOurs =
    bound?.namespace === namespace && payload.sub === `system:serviceaccount:${namespace}:${serviceAccount}`;
  return isOurs && typeof name === 'string' && typeof uid === 'string' ? { name, uid } : null;
}

/** Returns the cached pod, else reads it: a worker may be faster than the watch. */
async function findPod(
  { client, state, shape }: PodIdentityOptions,
  { name, uid }: TokenPod,
): Promise<PodSnapshot | null> {
  const known = state.pod(name);
  if (known?.uid === uid) return known;
  const path = `${apiPathsOf(shape.namespace).pods}/${encodeURIComponent(name)}`;
  const raw = await client.ask<KubeJson<V1Pod>>('GET', path).catch(nullWhenMissing);
  const labels = raw?.metadata?.labels ?? {};
  const isWorker = Object.entries(workerLabels).every(([label, value]) => labels[label] === value);
  return raw !== null && isWorker ? readPodSnapshot(raw) : null;
}
