import { hash } from 'node:crypto';
import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { AddressException, Network } from '../base/settings/kinds.ts';

type JudgedUrl = { readonly ok: true; readonly href: string } | { readonly ok: false; readonly sentence: string };

/** A parsed address; one with an IPv4 address inside (::ffff:a.b.c.d) is parsed as that. */
export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;
export type IpRange = readonly [base: IpAddress, prefix: number];

/** Last labels of names that nobody can register: clusters, routers and companies call their own machines so (RFC 6762, appendix G). */
const localTops = new Set('localhost localdomain local internal intranet private corp home lan svc'.split(' '));
/** The home network of RFC 8375. */
const homeName = /(?:^|\.)home\.arpa\.?$/i;
/** Ranges in which the peers of one's own network stand: loopback, private, link-local and shared ones. */
const privateRanges = new Set(['loopback', 'private', 'linkLocal', 'carrierGradeNat', 'uniqueLocal']);
/** Metadata and key service of an Azure machine: the one address of public space that is not public. */
const azureHost = '168.63.129.16';
/** The only part of IPv6 that is given out to the public; the rest can embed any IPv4 address, as ::127.0.0.1 does. */
const publicV6: IpRange = [ipaddr.parse('2000::'), 3];

export const maxUrlLength = 8192;
export const maxWebhookUrlLength = 2048;
export const notUrl = 'must be an http or https URL';
const unfitName = 'must be a URL with a valid host name';

const loopbacks = ['127.0.0.1', '::1'].map((text) => readAddress(text) as IpAddress);
const withCredentials = 'must be a URL without a user name or password';
const webScheme = /^[\s\p{Cc}]*https?:/iu;
/** Texts that common parsers read differently: some skip what others take for a part of the host or of the path. */
const ambiguities: readonly (readonly [RegExp, string])[] = [
  [/[\p{Cc}\p{Cs}]/u, 'must be a URL without control characters, tabs and line breaks'],
  [/\\/, 'must be a URL without a backslash'],
  [/^ *https?:(?!\/\/[^/?#])/i, 'must be a URL whose host follows two slashes'],
  [/^ *https?:\/\/[^/?#]*@/i, withCredentials],
];
const encodedHost = /^ *https?:\/\/[^/?#]*%/i;
/** yt-dlp takes orders for its own extractors, such as headers, from a fragment with this word. */
const smuggled = '__youtubedl_smuggle';

/**
 * Judges the URL of a medium (D28) and returns it as it is handed on: serialised, so that API, yt-dlp, ffmpeg and egress read the same
 * URL. Its fragment stays, because many sites tell their media apart by it, but for one with orders to yt-dlp.
 */
export function judgeUrl(text: string, exceptions: readonly AddressException[], maxLength = maxUrlLength): JudgedUrl {
  if (!webScheme.test(text)) return refused(notUrl);
  const ambiguity = ambiguities.find(([pattern]) => pattern.test(text));
  if (ambiguity !== undefined) return refused(ambiguity[1]);
  const url = URL.parse(text);
  if (url === null) return refused(notUrl);
  const sentence = judgeHost(url, exceptions) ?? (encodedHost.test(text) ? unfitName : null);
  if (sentence !== null) return refused(sentence);
  if (url.hash === '' || isOrder(url.hash)) url.hash = '';
  // Serialising writes one character as up to nine, and ends a bare host with a slash.
  if (text.length > maxLength || url.href.length > maxLength + 1) {
    return refused(`must be a URL of at most ${maxLength} characters`);
  }
  return { ok: true, href: url.href };
}

/** Judges the URL of a webhook (D55) by the rules of `judgeUrl`; drops its fragment, which no request sends. */
export function judgeWebhookUrl(text: string, exceptions: readonly AddressException[]): JudgedUrl {
  const judged = judgeUrl(text, exceptions, maxWebhookUrlLength);
  return judged.ok ? { ok: true, href: judged.href.replace(/#.*$/, '') } : judged;
}

/** Returns true for a fragment with orders to yt-dlp, in capital letters and percent-encoded any number of times too. */
function isOrder(fragment: string): boolean {
  const plain = fragment.replace(/%(?:25)*([\da-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return plain.toLowerCase().includes(smuggled);
}

/** Returns the receiver of a webhook, `account@host/path` with a short hash of the path: webhooks take turns by it. */
export function receiverOf(accountId: string, url: string): string {
  const { host, pathname } = new URL(url);
  return `${accountId}@${host}/${hash('sha256', pathname, 'base64url').slice(0, 8)}`;
}

/** Returns the sentence about a host that is not allowed, or null. URL has already written every odd form of an address in the plain one. */
function judgeHost({ hostname, port: given, protocol }: URL, exceptions: readonly AddressException[]): string | null {
  const port = given === '' ? (protocol === 'https:' ? 443 : 80) : Number(given);
  const open = exceptions.filter((exception) => exception.port === null || exception.port === port).map(readRange);
  const literal = readLiteral(hostname);
  if (literal !== null) {
    const address = readAddress(literal);
    const isFine = address && (isPublicAddress(address) || open.some((range) => isInRange(range, address)));
    return isFine ? null : 'must be a URL with a public address';
  }
  if (!/^[a-z\d_.-]+$/.test(hostname) || hostname.replace(/\.$/, '').split('.').includes('')) return unfitName;
  // Nothing is resolved here, so a name cannot be judged by its address. But a localhost name always means this machine
  // (RFC 6761): it is as open as a loopback address. What other local names mean only a resolver knows: always refused.
  const isRefused = topLabel(hostname) === 'localhost' ? !open.some(coversLoopback) : isLocalName(hostname);
  return isRefused ? 'must be a URL with a public host name' : null;
}

function coversLoopback(range: IpRange): boolean {
  return range[0].range() === 'loopback' || loopbacks.some((address) => isInRange(range, address));
}

function refused(sentence: string): { readonly ok: false; readonly sentence: string } {
  return { ok: false, sentence };
}

/** Returns null for a text that is no address, or one with a meaning on one link only (fe80::1%eth0). */
export function readAddress(text: string): IpAddress | null {
  // A socket for both families spells each IPv4 peer so.
  const plain = text.startsWith('::ffff:') ? text.slice(7) : text;
  if (isIPv4(plain)) return new ipaddr.IPv4(plain.split('.').map(Number));
  // URL spells it first: resolvers write ::127.0.0.1 with dots, and ipaddr.js takes that for ::ffff:127.0.0.1.
  const host = isIPv6(text) ? URL.parse(`http://[${text}]/`)?.hostname : undefined;
  if (!host) return null;
  const address = ipaddr.IPv6.parse(host.slice(1, -1));
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/** Returns an IPv4 address, or the /64 of an IPv6 address: one network, or one caller, has all of it. */
export function networkOf(address: IpAddress): string {
  if (!('parts' in address)) return address.toString();
  const network = address.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(':')}::/64`;
}

/** Returns the address that a URL's host spells out, or null for a name. URL has written every odd form in the plain one. */
export function readLiteral(hostname: string): string | null {
  if (isIPv4(hostname)) return hostname;
  return hostname.startsWith('[') ? hostname.slice(1, -1) : null;
}

/** The one rule of which addresses are public: unicast and given out, by the IANA registries that ipaddr.js holds. */
export function isPublicAddress(address: IpAddress): boolean {
  if (address.range() !== 'unicast') return false;
  return address.kind() === 'ipv6' ? isInRange(publicV6, address) : address.toString() !== azureHost;
}

/** Returns true for an address of one's own networks: of this machine, a private one, or a link's. */
export function isPrivateAddress(address: IpAddress): boolean {
  return privateRanges.has(address.range());
}

/** Returns true for a name with a meaning on this network only. */
export function isLocalName(name: string): boolean {
  const labels = name.replace(/\.$/, '').split('.');
  return labels.length === 1 || labels.includes('') || localTops.has(topLabel(name)) || homeName.test(name);
}

export function topLabel(name: string): string {
  return name.replace(/\.$/, '').split('.').at(-1)!.toLowerCase();
}

export function isSameAddress(one: string, other: string): boolean {
  const address = readAddress(one);
  return address !== null && address.toString() === readAddress(other)?.toString();
}

/** A network of IPv4 addresses inside IPv6 becomes one of IPv4, as its addresses do. */
export function readRange({ family, address, prefix }: Network): IpRange {
  const base = readAddress(address);
  if (base === null) throw new Error(`${address} is no address`);
  if (family === 'ipv4' || base.kind() === 'ipv6') return [base, prefix];
  return prefix >= 96 ? [base, prefix - 96] : [ipaddr.parse(address), prefix];
}

export function isInRange([base, prefix]: IpRange, address: IpAddress): boolean {
  return base.kind() === address.kind() && address.match(base, prefix);
}
