import type { Config } from '../base/config.ts';
import { refuse } from '../base/errors.ts';
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

/** Runs workers as Jobs of the cluster that `env` names, each with a token that the cluster made for its pod. Refuses to start without the permissions. */
export function openKubernetesWorkers(options: {
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => number;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly defersCleanup?: boolean;
}): OpenWorkers {
  const { config, env, now, metrics, log: parentLog, defersCleanup = true } = options;
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
    try {
      await refuseWithoutRights(client, access.server, shape.namespace);
    } catch (error) {
      await client.close();
      throw error;
    }
    const log = parentLog.with({ part: 'kubernetes runner' });
    // Pods have times of the cluster's clock, which nobody reads here: one has waited too long only when both of ours say so.
    const ageNow = () => Math.min(now(), Date.now());
    const runner = new KubernetesRunner({ client, shape, now, ageNow, metrics, log, defersCleanup });
    return { runner, attemptOf: openPodIdentity({ client, state: runner.state, shape, clocks: [now, Date.now] }) };
  };
}

async function refuseWithoutRights(client: KubeClient, server: string, namespace: string): Promise<void> {
  const missing = await findMissingPermissions(client, namespace).catch((error: Error) => {
    const verb = error instanceof KubeError ? 'refused to say what this program may do' : 'cannot be asked';
    throw refuse('unavailable', `The API server at ${server} ${verb}: ${error.message}`);
  });
  if (missing.length > 0) {
    throw refuse('forbidden', `The cluster does not let this program do in ${namespace}: ${missing.join(', ')}`);
  }
}
