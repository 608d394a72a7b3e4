import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { HostPort } from '../base/settings/kinds.ts';
import { within } from '../base/within.ts';
import { isLocalName } from '../model/public-address.ts';

interface ResolveOptions {
  /** Resolvers to ask; none for those of the system. */
  readonly servers: readonly HostPort[];
  readonly limitSeconds: number;
  /** Addresses of this machine, which tell by which families it reaches others. */
  readonly ownAddresses: () => readonly string[];
}

/** The addresses of a name, in the order to try them. Without any it failed, and `late` tells that no answer came in time. */
export interface Resolved {
  readonly addresses: readonly string[];
  readonly late: boolean;
}

/** With the signal the answer is wanted no more. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<Resolved>;

/** Returns a function that looks up both address families of a name once and answers within the limit. */
export async function makeResolve({ servers, limitSeconds, ownAddresses }: ResolveOptions): Promise<Resolve> {
  const resolvers = await Promise.all(servers.map(addressOf));
  const limitMs = limitSeconds * 1000;
  // The system's own lookup keeps one of very few threads until the slowest resolver has answered, so a caller's slow domain
  // would stop every other name. It is left to names that mean something here only, which nothing but an exception opens.
  return (name, signal) => {
    if (resolvers.length === 0 && isLocalName(name)) return askSystem(name, limitMs);
    // A new one for each name: it knows the system's present resolvers, asks from ports of its own, and can be cancelled.
    const resolver = new Resolver({ timeout: 1500, tries: 3 });
    if (resolvers.length > 0) resolver.setServers(resolvers);
    return askResolver(name, resolver, { limitMs, signal, families: reachableFamilies(ownAddresses()) });
  };
}

/** Time for the other address family once one has addresses that can be reached: some resolvers and firewalls drop each question for AAAA. */
const otherFamilyMs = 1_000;

interface LookupLimits {
  readonly limitMs: number;
  readonly signal: AbortSignal;
  /** With an address of one of these the other family need not be waited for. */
  readonly families: ReadonlySet<number>;
}

async function askResolver(
  name: string,
  resolver: Resolver,
  { limitMs, signal, families }: LookupLimits,
): Promise<Resolved> {
  const cancel = () => resolver.cancel();
  const limits = [setTimeout(cancel, limitMs)];
  const ask = async (family: number, answer: Promise<string[]>) => {
    const resolved = await settle(answer);
    if (resolved.addresses.length > 0 && families.has(family)) limits.push(setTimeout(cancel, otherFamilyMs));
    return resolved;
  };
  signal.addEventListener('abort', cancel);
  const [v4, v6] = await Promise.all([ask(4, resolver.resolve4(name)), ask(6, resolver.resolve6(name))]);
  signal.removeEventListener('abort', cancel);
  for (const limit of limits) clearTimeout(limit);
  return { addresses: mix(v4.addresses, v6.addresses), late: v4.late || v6.late };
}

/** Returns 4, 6 or both. Every machine has loopback addresses, and mostly a link-local one of IPv6: they reach no server of the Internet. */
function reachableFamilies(ownAddresses: readonly string[]): ReadonlySet<number> {
  return new Set(ownAddresses.filter((address) => !/^(?:127\.|::1$|fe80:)/i.test(address)).map(isIP));
}

function settle(answer: Promise<string[]>): Promise<Resolved> {
  return answer.then(
    (addresses) => ({ addresses, late: false }),
    ({ code }) => ({ addresses: [], late: code === 'ETIMEOUT' || code === 'ECANCELLED' }),
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
