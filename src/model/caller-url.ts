import { createHash } from 'node:crypto';
import { BlockList, isIPv4 } from 'node:net';
import type { Exception, Network } from '../base/settings/kinds.ts';

export type JudgedUrl =
  | { readonly ok: true; readonly href: string }
  | { readonly ok: false; readonly sentence: string };

export const queryLengthMax = 8192;
export const webhookUrlLengthMax = 2048;
export const notUrl = 'must be an http or https URL';

const privateV4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12
  192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`;
// Public IPv6 is 2000::/3 without these: the first three are all the rest of the address space, which holds loopback,
// fc00::/7, fe80::/10, fec0::/10, multicast and 64:ff9b::/96; 2001::/23 holds Teredo (2001::/32), 2002::/16 is 6to4.
const privateV6 = '::/3 4000::/2 8000::/1 2001::/23 2001:db8::/32 2002::/16 3fff::/20';

// One list per family: a BlockList compares an IPv4 address with IPv6 nets as if it were written ::ffff:a.b.c.d.
const notPublic = { ipv4: listOf(privateV4), ipv6: listOf(privateV6) };
const loopback = listOf('127.0.0.0/8 ::1/128');
const localTops = new Set(['internal', 'local', 'svc']);
const unfitCharacters = /[\p{Cc}\p{Cs}]/u;

/** Says whether a caller may name this media URL (D28), and how it is handed on: serialised, without its fragment. */
export function judgeUrl(text: string, exceptions: readonly Exception[]): JudgedUrl {
  return judge(text, queryLengthMax, exceptions);
}

/** The same for a URL that receives a webhook (D55). */
export function judgeWebhookUrl(text: string, exceptions: readonly Exception[]): JudgedUrl {
  return judge(text, webhookUrlLengthMax, exceptions);
}

/** Names who receives what is posted to a URL: its host and, behind a slash, a mark of its path. */
export function receiverOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host}/${createHash('sha256').update(pathname).digest('base64url').slice(0, 8)}`;
}

function judge(text: string, lengthMax: number, exceptions: readonly Exception[]): JudgedUrl {
  const url = unfitCharacters.test(text) ? null : URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    return refused(notUrl);
  }
  if (url.username !== '' || url.password !== '') return refused('must be a URL without a user name or password');
  const sentence = judgeHost(url, exceptions);
  if (sentence !== null) return refused(sentence);
  // yt-dlp takes orders from a fragment (__youtubedl_smuggle), and no server ever sees one.
  url.hash = '';
  // Serialising writes one character as up to nine.
  if (Math.max(text.length, url.href.length) > lengthMax) {
    return refused(`must be a URL of at most ${lengthMax} characters`);
  }
  return { ok: true, href: url.href };
}

/** What is wrong with the host, or null. URL has already written every odd form of an address in the plain one. */
function judgeHost(url: URL, exceptions: readonly Exception[]): string | null {
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  const open = exceptions.filter((exception) => exception.port === null || exception.port === port);
  const address = readLiteral(url.hostname);
  if (address !== null) {
    const fine = isPublic(address) || open.some((exception) => contains(exception, address));
    return fine ? null : 'must be a URL with a public address';
  }
  const labels = url.hostname.replace(/\.$/, '').split('.');
  if (labels.includes('')) return 'must be a URL with a valid host name';
  const top = labels.at(-1) ?? '';
  // Nothing is resolved here, so a name cannot be judged by its address. But a localhost name always means this machine
  // (RFC 6761): it is as open as a loopback address. What other local names mean only a resolver knows: always refused.
  const local = top === 'localhost' ? !open.some(coversLoopback) : labels.length === 1 || localTops.has(top);
  return local ? 'must be a URL with a public host name' : null;
}

/** The address that a parsed host spells out, an IPv4 one inside IPv6 unwrapped; null for a name. */
function readLiteral(hostname: string): string | null {
  if (isIPv4(hostname)) return hostname;
  if (!hostname.startsWith('[')) return null;
  const address = hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(address);
  if (mapped === null) return address;
  const [high, low] = [parseInt(mapped[1] ?? '', 16), parseInt(mapped[2] ?? '', 16)];
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}

function isPublic(address: string): boolean {
  const family = familyOf(address);
  return !notPublic[family].check(address, family);
}

function coversLoopback(exception: Exception): boolean {
  const { family, address } = exception;
  return loopback.check(address, family) || contains(exception, '127.0.0.1') || contains(exception, '::1');
}

function contains({ family, address, prefix }: Network, candidate: string): boolean {
  if (familyOf(candidate) !== family) return false;
  const list = new BlockList();
  list.addSubnet(address, prefix, family);
  return list.check(candidate, family);
}

function familyOf(addressOrCidr: string): 'ipv4' | 'ipv6' {
  return addressOrCidr.includes(':') ? 'ipv6' : 'ipv4';
}

function listOf(cidrs: string): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs.split(/\s+/)) {
    const [base = '', bits] = cidr.split('/');
    list.addSubnet(base, Number(bits), familyOf(base));
  }
  return list;
}

function refused(sentence: string): { readonly ok: false; readonly sentence: string } {
  return { ok: false, sentence };
}
