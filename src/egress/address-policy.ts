import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Exception, Network } from '../base/settings/kinds.ts';

/** How a connection that was asked for ended. A closed set: it stands in metrics and in the header of a refusal. */
export const verdicts = [
  'open',
  'refused_request',
  'refused_name',
  'refused_address',
  'refused_port',
  'failed_dns',
  'failed_connect',
  'failed_answer',
  'limited',
] as const;
export type Verdict = (typeof verdicts)[number];
export type Judgement = Extract<Verdict, 'open' | 'refused_name' | 'refused_address' | 'refused_port' | 'failed_dns'>;

/** What follows from a host and a port alone: a refusal, addresses to connect to, or a name to resolve and judge. */
export type HostJudgement =
  | { readonly verdict: Exclude<Judgement, 'open'> }
  | { readonly verdict: 'open'; readonly addresses: readonly string[] }
  | { readonly verdict: 'resolve' };

export interface PolicyOptions {
  /** Ports that are open on public addresses. */
  readonly ports: readonly number[];
  /** Addresses that are open on their port although they are not public, whatever their name. */
  readonly allow: readonly Exception[];
  /** Addresses that are never open, not even as an exception. */
  readonly deny: readonly Network[];
  /** The addresses of this machine: public or not, only an exception opens them. */
  readonly ownAddresses: () => readonly string[];
}

export interface Policy {
  /** Judges a host as URL writes it, before anything is resolved. */
  readonly judgeHost: (host: string, port: number) => HostJudgement;
  /** Judges every address that a name stands for: one bad address refuses all of them, and a local name without any is refused too. */
  readonly judgeAddresses: (name: string, addresses: readonly string[], port: number) => Judgement;
}

/** Which verdict is told when addresses have several. */
const gravest: readonly Judgement[] = ['refused_name', 'refused_address', 'refused_port'];

type Address = ReturnType<typeof ipaddr.process>;
type Range = readonly [Address, number];

const localTops = new Set(['localhost', 'internal', 'local', 'svc']);
/** A localhost name means this machine, whatever a resolver says (RFC 6761). */
const loopbacks = ['127.0.0.1', '::1'];
/** The host of an Azure machine, which answers for its keys and extensions: the one public address that is none. */
const azureHost = '168.63.129.16';
/** The only part of IPv6 that is given out to the public; the rest can embed any IPv4 address, as ::127.0.0.1 does. */
const publicV6: Range = [ipaddr.parse('2000::'), 3];

/** Gives the rules of what may be reached. */
export function makePolicy({ ports, allow, deny, ownAddresses }: PolicyOptions): Policy {
  const denied = deny.map(rangeOf);
  const excepted = allow.map((exception) => ({ range: rangeOf(exception), port: exception.port }));
  const exceptedOn = (port: number) => excepted.filter((one) => one.port === null || one.port === port);

  /** Reads the addresses of this machine once, and only if there is a public address to compare with. */
  const compareOwn = () => {
    let own: (string | undefined)[] | undefined;
    return (address: Address) => {
      own ??= ownAddresses().map((text) => readAddress(text)?.toString());
      return own.includes(address.toString());
    };
  };
  const judge = (local: boolean, text: string, port: number, isOwn = compareOwn()): Judgement => {
    const address = readAddress(text);
    if (address === null) return 'refused_address';
    if (denied.some((range) => contains(range, address))) return 'refused_address';
    if (exceptedOn(port).some(({ range }) => contains(range, address))) return 'open';
    if (local) return 'refused_name';
    if (!isPublic(address) || isOwn(address)) return 'refused_address';
    return ports.includes(port) ? 'open' : 'refused_port';
  };

  return {
    judgeHost: (host, port) => {
      const literal = readLiteral(host);
      if (literal !== null) {
        const verdict = judge(false, literal, port);
        return verdict === 'open' ? { verdict, addresses: [literal] } : { verdict };
      }
      if (topOf(host) === 'localhost') {
        const addresses = loopbacks.filter((address) => judge(true, address, port) === 'open');
        return addresses.length > 0 ? { verdict: 'open', addresses } : { verdict: 'refused_name' };
      }
      // Nothing is asked about a name that no answer could open.
      if (exceptedOn(port).length > 0) return { verdict: 'resolve' };
      if (isLocalName(host)) return { verdict: 'refused_name' };
      return { verdict: ports.includes(port) ? 'resolve' : 'refused_port' };
    },
    judgeAddresses: (name, addresses, port) => {
      const local = isLocalName(name);
      if (addresses.length === 0) return local ? 'refused_name' : 'failed_dns';
      const isOwn = compareOwn();
      const judged = addresses.map((address) => judge(local, address, port, isOwn));
      return gravest.find((verdict) => judged.includes(verdict)) ?? 'open';
    },
  };
}

/** Whether a name means something on this network only. */
export function isLocalName(name: string): boolean {
  const labels = withoutDot(name).split('.');
  return labels.length === 1 || labels.includes('') || localTops.has(topOf(name));
}

/** Whether two texts spell the same address, an IPv4 address inside IPv6 included. */
export function isSameAddress(one: string, other: string): boolean {
  const address = readAddress(one);
  return address !== null && address.toString() === readAddress(other)?.toString();
}

/** Reads an address, one with an IPv4 address inside as that; null when it is none, or has a meaning on one wire only (fe80::1%eth0). */
function readAddress(text: string): Address | null {
  if (isIPv4(text)) return ipaddr.process(text);
  // Spelled by URL first: resolvers write ::127.0.0.1 with dots, and ipaddr.js takes that for ::ffff:127.0.0.1.
  const host = isIPv6(text) ? URL.parse(`http://[${text}]/`)?.hostname : undefined;
  return host ? ipaddr.process(host.slice(1, -1)) : null;
}

/** The address that a host spells out, or null for a name. URL has written every odd form in the plain one. */
function readLiteral(host: string): string | null {
  if (isIPv4(host)) return host;
  return host.startsWith('[') ? host.slice(1, -1) : null;
}

function topOf(name: string): string {
  return withoutDot(name).split('.').at(-1)?.toLowerCase() ?? '';
}

function withoutDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

function isPublic(address: Address): boolean {
  if (address.range() !== 'unicast') return false;
  return address.kind() === 'ipv6' ? contains(publicV6, address) : address.toString() !== azureHost;
}

/** Addresses are judged as IPv4 when they hold an IPv4 address, so a network of such is one too. */
function rangeOf({ family, address, prefix }: Network): Range {
  const base = readAddress(address);
  if (base === null) throw new Error(`${address} is no address`);
  const unwrapped = family === 'ipv6' && base.kind() === 'ipv4';
  if (!unwrapped) return [base, prefix];
  return prefix >= 96 ? [base, prefix - 96] : [ipaddr.parse(address), prefix];
}

function contains([base, bits]: Range, address: Address): boolean {
  return base.kind() === address.kind() && address.match(base, bits);
}
