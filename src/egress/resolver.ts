import { lookup, Resolver } from 'node:dns/promises';
import { isIP, isIPv4 } from 'node:net';
import type { HostPort } from '../base/settings/kinds.ts';
import { shareRun } from '../base/single-flight.ts';
import { within } from '../base/within.ts';
import { isLocalName, topLabel } from '../model/public-address.ts';

interface ResolveOptions {
  /** Resolvers to ask; none for those of the system. */
  readonly servers: readonly HostPort[];
  readonly limitSeconds: number;
  /** Addresses of this machine, which tell whether it reaches others by IPv4. */
  readonly ownAddresses: () => readonly string[];
}

/**
 * The addresses of a name, in the order to try them. Without any it failed: `late` tells that no answer came in time, `unserved` that the
 * resolvers answer for no name at all.
 */
export interface Resolved {
  readonly addresses: readonly string[];
  readonly late: boolean;
  readonly unserved?: boolean;
}

/** With the signal the answer is wanted no more. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<Resolved>;

/** Returns a function that looks up both address families of a name once and answers within the limit. */
export async function makeResolve({ servers, limitSeconds, ownAddresses }: ResolveOptions): Promise<Resolve> {
  const resolvers = await Promise.all(servers.map(addressOf));
  const limitMs = limitSeconds * 1000;
  const open = () => {
    const resolver = new Resolver({ timeout: 1500, tries: 3 });
    if (resolvers.length > 0) resolver.setServers(resolvers);
    return resolver;
  };
  const tryRoot = shareRun(() => servesRoot(open(), Math.min(limitMs, maxRootMs)));
  // The system's own lookup keeps one of very few threads until the slowest resolver has answered, so a caller's slow domain
  // would stop every other name. It is left to names that mean something here only, which nothing but an exception opens.
  return async (name, signal) => {
    // By RFC 6761 it does not exist, also where no resolver says so.
    if (topLabel(name) === 'invalid') return { addresses: [], late: false };
    if (resolvers.length === 0 && isLocalName(name)) return askSystem(name, limitMs);
    const limits = { limitMs, signal, reachesV4: hasIpv4(ownAddresses()) };
    // A new one for each name: it knows the system's present resolvers, asks from ports of its own, and can be cancelled.
    const { isServed, ...resolved } = await askResolver(name, open(), limits);
    // The name servers of one domain may be away; resolvers that know nothing of the root either are the fault of this machine.
    if (isServed || signal.aborted || (await tryRoot.run())) return resolved;
    return { ...resolved, unserved: true };
  };
}

/** Time limit of the question for the root, which every resolver has at hand. */
const maxRootMs = 2_000;
/** Errors of a question that no resolver answered, or for which none got an answer. */
const unservedCodes = new Set(['ETIMEOUT', 'ECANCELLED', 'ESERVFAIL', 'ECONNREFUSED']);

/** Asks for the root of all names: without records a resolver still answers. */
async function servesRoot(resolver: Resolver, limitMs: number): Promise<boolean> {
  const timer = setTimeout(() => resolver.cancel(), limitMs);
  const { isServed } = await settle(resolver.resolve4('.'));
  clearTimeout(timer);
  return isServed;
}

/** Time for the addresses of IPv6 once there are some of IPv4: some resolvers and firewalls drop each question for AAAA. */
const maxLaterMs = 1_000;

interface LookupLimits {
  readonly limitMs: number;
  readonly signal: AbortSignal;
  /** False where addresses of IPv4 lead nowhere: then those of IPv6 are waited for. */
  readonly reachesV4: boolean;
}

async function askResolver(name: string, resolver: Resolver, limits: LookupLimits): Promise<LookupAnswer> {
  const { limitMs, signal, reachesV4 } = limits;
  const cancel = () => resolver.cancel();
  const timers = [setTimeout(cancel, limitMs)];
  const askV4 = async () => {
    const resolved = await settle(resolver.resolve4(name));
    if (resolved.addresses.length > 0 && reachesV4) timers.push(setTimeout(cancel, maxLaterMs));
    return resolved;
  };
  signal.addEventListener('abort', cancel);
  const [v4, v6] = await Promise.all([askV4(), settle(resolver.resolve6(name))]);
  signal.removeEventListener('abort', cancel);
  for (const timer of timers) clearTimeout(timer);
  const isServed = v4.isServed || v6.isServed;
  return { addresses: mix(v4.addresses, v6.addresses), late: v4.late || v6.late, isServed };
}

/** Every machine has loopback addresses of IPv4, also one in a network of IPv6 alone. */
function hasIpv4(ownAddresses: readonly string[]): boolean {
  return ownAddresses.some((address) => isIPv4(address) && !address.startsWith('127.'));
}

/** `isServed` is false when the resolvers told nothing of the name, not even that it does not exist. */
type LookupAnswer = Pick<Resolved, 'addresses' | 'late'> & { readonly isServed: boolean };

function settle(answer: Promise<string[]>): Promise<LookupAnswer> {
  return answer.then(
    (addresses) => ({ addresses, late: false, isServed: true }),
    ({ code }) => ({
      addresses: [],
      late: code === 'ETIMEOUT' || code === 'ECANCELLED',
      isServed: !unservedCodes.has(code),
    }),
  );
}

async function askSystem(name: string, limitMs: number): Promise<Resolved> {
  let resolved: Resolved = { addresses: [], late: true };
  const ask = async () => {
    const found = await lookup(name, { all: true }).catch(() => []);
    resolved = { addresses: found.map(({ address }) => address), late: false };
  };
  await within(limitMs, ask());
  return resolved;
}

/** Both families in turn, so that one without a route costs little. */
function mix(v4: readonly string[], v6: readonly string[]): string[] {
  const pairs = Array.from({ length: Math.max(v4.length, v6.length) }, (_, at) => [v4[at], v6[at]]);
  return pairs.flat().filter((address) => address !== undefined);
}

async function addressOf({ host, port }: HostPort): Promise<string> {
  const address = isIP(host) ? host : (await lookup(host)).address;
  return `${isIP(address) === 6 ? `[${address}]` : address}:${port ?? 53}`;
}
