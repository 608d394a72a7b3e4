import { retry } from '../base/backoff.ts';
import type { Config } from '../base/config.ts';
import { Refusal, refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { type ClusterAccess, findClusterAccess } from '../runners/kubernetes/cluster-access.ts';
import { type KubeClient, KubeError, openKubeClient } from '../runners/kubernetes/kube-client.ts';
import { KubernetesRunner } from '../runners/kubernetes/kubernetes-runner.ts';
import { findMissingPermissions } from '../runners/kubernetes/permissions.ts';
import { openPodIdentity } from '../runners/kubernetes/pod-identity.ts';
import { podShapeOf } from '../runners/kubernetes/pod-shape.ts';
import { makeRateLimiter } from '../runners/kubernetes/rate-limiter.ts';
import type { OpenWorkers } from './build-controller.ts';

const wait = { firstMs: 1_000, maxMs: 30_000 };

/**
 * Runs workers as Jobs of the cluster that `env` names, each with a token that the cluster made for its pod. Waits for an API server that
 * is away, until `ending`; refuses to start without the permissions.
 */
export function openKubernetesWorkers(options: {
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => number;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly ending: AbortSignal;
  readonly defersCleanup?: boolean;
}): OpenWorkers {
  const { config, env, now, metrics, ending, defersCleanup = true } = options;
  const log = options.log.with({ part: 'kubernetes runner' });
  return async () => {
    const access: ClusterAccess = await findClusterAccess(env).catch((error: Error) => {
      throw refuse('unavailable', `The cluster cannot be found: ${error.message}`);
    });
    const limiter = makeRateLimiter(config.kubeRate, 2 * config.kubeRate);
    const halve = () => {
      metrics.kube_refused_total.inc();
      limiter.halve();
    };
    const rateLimit = { ...limiter, halve };
    const client: KubeClient = openKubeClient({ access, rateLimit });
    const shape = podShapeOf(config);
    const delayOf = (error: unknown, delayMs: number) => {
      if (isLasting(error)) return null;
      log.warn('the API server cannot be asked yet: the start waits', {
        server: access.server,
        error,
        again_ms: delayMs,
      });
      return delayMs;
    };
    try {
      const findMissing = () => findMissingPermissions(client, shape.namespace, ending);
      const missing = await retry(findMissing, { ...wait, signal: ending, delayOf });
      if (missing.length > 0) {
        const rights = missing.join(', ');
        throw refuse('forbidden', `The cluster does not let this program do in ${shape.namespace}: ${rights}`);
      }
    } catch (error) {
      await client.close();
      throw explainFailure(error, access.server);
    }
    // Pods have times of the cluster's clock, which nobody reads here: one has waited too long only when both of ours say so.
    const ageNow = () => Math.min(now(), Date.now());
    const runner = new KubernetesRunner({ client, shape, now: ageNow, metrics, log, defersCleanup });
    return { runner, attemptOf: openPodIdentity({ client, state: runner.state, shape, clocks: [now, Date.now] }) };
  };
}

/** True for an answer that repeating changes nothing about, such as that to an unknown token, or that of another program. */
function isLasting(error: unknown): boolean {
  return error instanceof SyntaxError || (error instanceof KubeError && error.status < 500 && error.status !== 429);
}

function explainFailure(error: unknown, server: string): unknown {
  if (error instanceof Refusal || !(error instanceof Error)) return error;
  const verb = error instanceof KubeError ? 'refused to say what this program may do' : 'cannot be asked';
  return refuse('unavailable', `The API server at ${server} ${verb}: ${error.message}`);
}
