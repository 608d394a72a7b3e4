import type { Config } from '../base/config.ts';
import { refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { findMissingRights } from '../runners/kubernetes/check-permissions.ts';
import { type Access, findAccess } from '../runners/kubernetes/cluster-access.ts';
import type { Shape } from '../runners/kubernetes/job-manifest.ts';
import { type Client, KubeError, openClient } from '../runners/kubernetes/kube-client.ts';
import { openKubernetesRunner } from '../runners/kubernetes/kubernetes-runner.ts';
import { openIdentity } from '../runners/kubernetes/pod-identity.ts';
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

/** A file, what it is made from and what comes of it lie side by side; beside them there is little. */
const filesAtOnce = 3;
const besideBytes = 2 ** 28;

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

/** What these settings say of worker pods. */
export function podShapeOf(config: Config): Shape {
  const { kubeNamespace, workerImage, gatewayAddress, egressAddress } = config;
  if (!kubeNamespace || !workerImage || !gatewayAddress || !egressAddress) throw new Error('checked with the settings');
  return {
    namespace: kubeNamespace,
    image: workerImage,
    serviceAccount: config.workerAccount,
    env: {
      TRAWL_GATEWAY_ADDRESS: showAddress(gatewayAddress),
      TRAWL_EGRESS_ADDRESS: showAddress(egressAddress),
      TRAWL_LOG_LEVEL: config.logLevel,
      ...(config.ytdlpPlugins.length > 0 && { TRAWL_YTDLP_PLUGINS: config.ytdlpPlugins.join(':') }),
    },
    cpu: config.workerCpu,
    memory: config.workerMemory,
    diskBytes: filesAtOnce * config.maxFileBytes + besideBytes,
    runtimeClass: config.workerRuntimeClass,
    priorityClass: config.workerPriorityClass,
    queue: config.workerQueue,
    awaySeconds: config.workerAwaySeconds,
    startSeconds: config.workerStartSeconds,
    hostUsers: config.workerHostUsers,
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

function showAddress(address: ServerAddress): string {
  if ('path' in address) return `unix:${address.path}`;
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return `http://${host}:${address.port}`;
}
