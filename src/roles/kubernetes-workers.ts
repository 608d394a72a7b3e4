import type { Config } from '../base/config.ts';
import { refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { findMissingRights } from '../runners/kubernetes/check-permissions.ts';
import { type Access, findAccess } from '../runners/kubernetes/cluster-access.ts';
import { type Client, KubeError, openClient } from '../runners/kubernetes/kube-client.ts';
import { openKubernetesRunner } from '../runners/kubernetes/kubernetes-runner.ts';
import { openIdentity } from '../runners/kubernetes/pod-identity.ts';
import { podShapeOf } from '../runners/kubernetes/pod-shape.ts';
import { makePace } from '../runners/kubernetes/rate-limiter.ts';
import type { OpenWorkers } from './build-controller.ts';

/** What Jobs are made with. */
export interface KubernetesWorkersOptions {
  readonly config: Config;
  /** Where the cluster is found. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => number;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** Runs workers as Jobs of a cluster, each with a token that the cluster made for its pod. Refuses to start without the rights. */
export function openKubernetesWorkers(options: KubernetesWorkersOptions): OpenWorkers {
  const { config, env, now, metrics, log } = options;
  return async () => {
    const access: Access = await findAccess(env).catch((error: Error) => {
      throw refuse('unavailable', `The cluster cannot be found: ${error.message}`);
    });
    const pace = makePace(config.kubeRate, 2 * config.kubeRate, () => performance.now());
    const client: Client = openClient({ access, pace });
    const shape = podShapeOf(config);
    try {
      await refuseWithoutRights(client, access.server, shape.namespace);
    } catch (error) {
      await client.close();
      throw error;
    }
    const runner = openKubernetesRunner({ client, shape, now, metrics, log });
    const close = async () => {
      await runner.close();
      await client.close();
      return [];
    };
    return { runner: { ...runner, close }, attemptOf: openIdentity({ client, view: runner.view, shape }) };
  };
}

async function refuseWithoutRights(client: Client, server: string, namespace: string): Promise<void> {
  const missing = await findMissingRights(client, namespace).catch((error: Error) => {
    const verb = error instanceof KubeError ? 'refused to say what this program may do' : 'cannot be asked';
    throw refuse('unavailable', `The API server at ${server} ${verb}: ${error.message}`);
  });
  if (missing.length > 0) {
    throw refuse('forbidden', `The cluster does not let this program do in ${namespace}: ${missing.join(', ')}`);
  }
}
