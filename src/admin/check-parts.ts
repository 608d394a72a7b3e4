import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Config } from '../base/config.ts';
import { innermost, messageOf } from '../base/errors.ts';
import { ProxyRefusal, postJson, sendRequest } from '../base/http-client.ts';
import { findListenError, isListening, isSilent } from '../base/reach-server.ts';
import { type ServerAddress, showAddress } from '../base/server-address.ts';
import { readInspection } from '../model/inspection-result.ts';
import { type Finding, fine, note, problem } from './doctor-finding.ts';

/** An address that egress reaches for nobody. */
const closedUrl = 'http://127.0.0.1/';
const limitMs = 30_000;

/**
 * Checks names and ways between the parts of a cluster, as its controller has them; asks for no address of the Internet. Where the chart
 * makes no network policies, the gateway is open to this pod.
 */
export async function checkParts(config: Config, hasPolicies = true): Promise<Finding[]> {
  const { egressAddress, inspectorAddress, gatewayAddress } = config;
  const named = { egress: egressAddress, inspector: inspectorAddress, gateway: gatewayAddress };
  const names = Object.entries(named).map(([part, address]) => (address ? checkName(part, address) : null));
  return Promise.all([
    ...names.filter((finding) => finding !== null),
    ...(egressAddress ? [checkEgress(egressAddress)] : []),
    ...(inspectorAddress ? [checkInspector(inspectorAddress)] : []),
    ...(gatewayAddress && hasPolicies ? [checkNetworkPolicies(gatewayAddress, config)] : []),
  ]);
}

async function checkName(part: string, address: ServerAddress): Promise<Finding> {
  const about = 'dns';
  if ('path' in address || isIP(address.host)) return fine(about, `The ${part} has an address, not a name.`);
  try {
    const { address: found } = await lookup(address.host);
    return fine(about, `${address.host} is ${found}.`);
  } catch (error) {
    return problem(about, `The name ${address.host} of the ${part} cannot be resolved: ${messageOf(error)}.`);
  }
}

/** Checks that egress answers, and that it reaches no address of its own pod. */
async function checkEgress(proxy: ServerAddress): Promise<Finding> {
  const about = 'egress';
  const signal = AbortSignal.timeout(limitMs);
  try {
    await sendRequest({ to: new URL(closedUrl), proxy, method: 'GET', signal, maxAnswerBytes: 1_000 });
    return problem(about, `${showAddress(proxy)} reached ${closedUrl}: it is no egress of trawl.`);
  } catch (error) {
    if (!(error instanceof ProxyRefusal) || error.verdict === null) return awayFinding(about, proxy, error);
    return fine(about, `${showAddress(proxy)} answers and refuses private addresses.`);
  }
}

/** Checks that the inspector answers, and asks egress. */
async function checkInspector(address: ServerAddress): Promise<Finding> {
  const about = 'inspector';
  try {
    const asked = { url: closedUrl, account: 'doctor' };
    const { status, text } = await postJson(address, '/inspect', asked, AbortSignal.timeout(limitMs));
    if (status === 503 || status === 429) return note(about, 'The inspector is busy.');
    const found = readInspection(JSON.parse(text));
    const code = found !== null && 'failure' in found ? found.failure.code : 'no failure';
    const told = `${showAddress(address)} answers`;
    if (code === 'address_not_allowed') return fine(about, `${told}.`);
    return problem(about, `${told} ${code} where egress refuses the address.`);
  } catch (error) {
    return awayFinding(about, address, error);
  }
}

/** The gateway is open to workers alone: a pod that reaches it, although it is none, shows that nothing enforces network policies. */
async function checkNetworkPolicies(
  gateway: ServerAddress,
  { gatewayPort, workerNetwork: vouched }: Pick<Config, 'gatewayPort' | 'workerNetwork'>,
): Promise<Finding> {
  const about = 'network policies';
  // Kubernetes lets no policy bar a pod from itself, and the Service of the gateway may lead to this pod.
  if (await isListening({ host: 'localhost', port: gatewayPort })) {
    const text =
      'Network policies cannot be judged in a pod of the controller, which always reaches itself: helm test tells whether they are enforced.';
    return note(about, text);
  }
  const error = await findListenError(gateway);
  if (error !== null && isSilent(error)) {
    return fine(about, 'This pod cannot reach the gateway, as network policies want it.');
  }
  if (error !== null) {
    const text = `Network policies cannot be judged here: the gateway does not answer, or one that rejects closes it (${messageOf(error)}). helm test tells whether they are enforced.`;
    return note(about, text);
  }
  const text =
    'The cluster enforces no network policies, or networkPolicy.enabled is false: this pod reaches the gateway, which is open to workers alone. helm test says what that means.';
  if (vouched === null) return note(about, text);
  return problem(about, `${text} TRAWL_WORKER_NETWORK says that it does.`);
}

function awayFinding(about: string, address: ServerAddress, error: unknown): Finding {
  return problem(
    about,
    `${showAddress(address)} cannot be asked: ${messageOf(innermost(error))}. Look at its pods and the network policies.`,
  );
}
