import { BlockList, isIPv4, isIPv6, SocketAddress } from 'node:net';
import type { Network } from '../base/settings/kinds.ts';

/** Who is asking, as far as the network tells. */
export interface Peer {
  /** Address of the caller, for the request log. */
  readonly ip: string;
  /** What failed authentications are counted under: the address, or its /64; `null` when nobody may be blamed. */
  readonly blame: string | null;
}

export type FindPeer = (remote: string | undefined, forwarded: string | undefined) => Peer;

const knownMost = 10_000;
const local = new BlockList();
for (const net of ['127.0.0.0/8', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16', '100.64.0.0/10']) {
  const [address = '', prefix] = net.split('/');
  local.addSubnet(address, Number(prefix), 'ipv4');
}
for (const net of ['::1/128', 'fc00::/7', 'fe80::/10']) {
  const [address = '', prefix] = net.split('/');
  local.addSubnet(address, Number(prefix), 'ipv6');
}

/**
 * Finds callers behind the proxies that the operator trusts: the last address that no trusted proxy added. A private peer
 * that forwards for others without being trusted is a proxy that nobody configured (D38): the first one is told of.
 */
export function findPeers(trusted: readonly Network[], tellStrayProxy: (address: string) => void): FindPeer {
  let isTold = false;
  const list = new BlockList();
  for (const { address, prefix, family } of trusted) list.addSubnet(address, prefix, family);
  const findBehind = (proxy: string, forwarded: string): Peer => {
    for (const entry of forwarded.split(',').reverse()) {
      const address = plain(entry.trim());
      // What a trusted proxy wrote and nobody can read tells nothing about who stands before it.
      if (address === null) break;
      if (!holds(list, address)) return { ip: address, blame: blameOf(address) };
    }
    return { ip: proxy, blame: null };
  };
  // Most requests come over few connections: their addresses are read once.
  const known = new Map<string, Peer>();
  const findDirect = (remote: string): Peer => {
    const peer = plain(remote) ?? '';
    if (known.size >= knownMost) known.clear();
    const found = holds(list, peer) ? { ip: peer, blame: null } : { ip: peer, blame: blameOf(peer) };
    known.set(remote, found);
    return found;
  };
  return (remote, forwarded) => {
    if (forwarded === undefined) return known.get(remote ?? '') ?? findDirect(remote ?? '');
    const peer = plain(remote ?? '') ?? '';
    if (holds(list, peer)) return findBehind(peer, forwarded);
    if (!holds(local, peer)) return { ip: peer, blame: blameOf(peer) };
    if (!isTold) tellStrayProxy(peer);
    isTold = true;
    return { ip: peer, blame: null };
  };
}

/** An address in its usual spelling, without port, brackets, zone and IPv4-in-IPv6; `null` when it is none. */
function plain(text: string): string | null {
  const bare = /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
  const [found = ''] = bare.split('%');
  if (!isIPv6(found)) return isIPv4(found) ? found : null;
  const { address } = new SocketAddress({ address: found, family: 'ipv6' });
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1] ?? address;
}

function holds(list: BlockList, address: string): boolean {
  if (isIPv4(address)) return list.check(address, 'ipv4');
  return isIPv6(address) && list.check(address, 'ipv6');
}

/** An IPv6 caller has a whole /64 to himself. */
function blameOf(address: string): string | null {
  if (address === '') return null;
  if (!isIPv6(address)) return address;
  const [head = '', tail = ''] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === '' ? [] : tail.split(':');
  const missing = address.includes('::') ? 8 - left.length - right.length : 0;
  const groups = [...left, ...Array<string>(Math.max(0, missing)).fill('0'), ...right];
  return `${groups
    .slice(0, 4)
    .map((group) => parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
