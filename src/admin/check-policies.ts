import type { Config } from '../base/config.ts';
import { messageOf } from '../base/errors.ts';
import type { NetworkTrial } from '../model/network-trial.ts';
import { findClusterAccess } from '../runners/kubernetes/cluster-access.ts';
import { openKubeClient } from '../runners/kubernetes/kube-client.ts';
import { podShapeOf } from '../runners/kubernetes/pod-shape.ts';
import { makeRateLimiter } from '../runners/kubernetes/rate-limiter.ts';
import { runNetworkTrial } from '../runners/kubernetes/run-network-trial.ts';
import { type Finding, fine, problem } from './doctor-finding.ts';

const about = 'network policies';
const perSecond = 20;
const defaultMaxSeconds = 240;

/** Has a worker pod try what it reaches, and says whether the cluster enforces the network policies of workers. */
export async function checkPolicies(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
  maxSeconds = defaultMaxSeconds,
): Promise<Finding> {
  const { runner, inspectorAddress } = config;
  if (runner !== 'kubernetes') return problem(about, 'TRAWL_RUNNER is not kubernetes: no worker is a pod.');
  if (inspectorAddress === null || 'path' in inspectorAddress) {
    return problem(about, 'TRAWL_INSPECTOR_ADDRESS names no Service, which a worker pod could try to reach.');
  }
  const { host, port } = inspectorAddress;
  const closed = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  try {
    const access = await findClusterAccess(env);
    const client = openKubeClient({ access, rateLimit: makeRateLimiter(perSecond, perSecond) });
    try {
      return judgeTrial(await runNetworkTrial({ client, shape: podShapeOf(config), closed, maxSeconds }));
    } finally {
      await client.close();
    }
  } catch (error) {
    return problem(about, `The cluster cannot be asked: ${messageOf(error)}.`);
  }
}

/** Judges what a worker pod found, or why it found nothing. */
function judgeTrial(trial: NetworkTrial | string): Finding {
  if (typeof trial === 'string') return problem(about, `No worker pod could try the network: ${trial}.`);
  const { missed, open, kernel } = trial;
  if (open.length > 0) {
    return problem(
      about,
      `The cluster does not enforce network policies: a worker pod reaches ${open.join(' and ')}, which they close to it. An attacker who takes over yt-dlp or ffmpeg gets there too where the kernel of a node is older than Linux 6.7 (that of this pod's node is ${kernel}), so leave workers.policiesEnforced false, and install a network plugin that enforces them, such as Calico, Cilium or kube-network-policies.`,
    );
  }
  if (missed.length > 0) {
    const text = `A worker pod does not reach ${missed.join(' and ')}, so no download can run: look at networkPolicy.dns, at other policies of its namespace and at the network plugin.`;
    return problem(about, text);
  }
  const text =
    'The cluster enforces network policies: a worker pod reaches gateway and egress, but neither inspector nor API server.';
  return fine(about, text);
}
