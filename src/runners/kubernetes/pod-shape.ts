import type { Config } from '../../base/config.ts';
import { copiesOfFile } from '../../base/resource-limits.ts';
import { showAddress } from '../../base/server-address.ts';
import { maxDurationSeconds } from '../../model/request-limits.ts';
import type { WorkerShape } from './job-manifest.ts';

/** Logs and caches, besides the files of an attempt. */
const besideBytes = 2 ** 28;

export function podShapeOf(config: Config): WorkerShape {
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
      ...(config.workerNetwork && { TRAWL_WORKER_NETWORK: config.workerNetwork }),
      ...(config.ytdlpPlugins.length > 0 && { TRAWL_YTDLP_PLUGINS: config.ytdlpPlugins.join(':') }),
    },
    cpu: config.workerCpu,
    memory: config.workerMemory,
    diskBytes: copiesOfFile * config.maxFileBytes + besideBytes,
    maxSeconds: config.jobSeconds + maxDurationSeconds,
    runtimeClass: config.workerRuntimeClass,
    priorityClass: config.workerPriorityClass,
    queue: config.workerQueue,
    placement: config.workerPlacement,
    caConfigMap: config.workerCaConfigMap,
    awaySeconds: config.workerAwaySeconds,
    startSeconds: config.workerStartSeconds,
    hostUsers: config.workerHostUsers,
    clusterUser: config.workerClusterUser,
  };
}
