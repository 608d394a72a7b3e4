import { createHash } from 'node:crypto';
import type { AddressException } from '../base/settings/kinds.ts';
import {
  type IpAddress,
  type IpRange,
  isInRange,
  isLocalName,
  isPublicAddress,
  readAddress,
  readLiteral,
  readRange,
  topLabel,
} from './public-address.ts';

export type JudgedUrl =
  | { readonly ok: true; readonly href: string }
  | { readonly ok: false; readonly sentence: string };

export const maxUrlLength = 8192;
export const maxWebhookUrlLength = 2048;
export const notUrl = 'must be an http or https URL';

const loopbacks = ['127.0.0.1', '::1'].map((text) => readAddress(text) as IpAddress);
const unfitCharacters = /[\p{Cc}\p{Cs}]/u;

/** Returns the receiver of a webhook: its host and, behind a slash, a short hash of its path. */
export function receiverOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host}/${createHash('sha256').update(pathname).digest('base64url').slice(0, 8)}`;
}

/** Judges a URL of a caller (D28, webhooks: D55) and returns it as it is handed on: serialised, without its fragment. */
export function judgeUrl(text: string, exceptions: readonly AddressException[], maxLength = maxUrlLength): JudgedUrl {
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
  if (Math.max(text.length, url.href.length) > maxLength) {
    return refused(`must be a URL of at most ${maxLength} characters`);
  }
  return { ok: true, href: url.href };
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
  if (hostname.replace(/\.$/, '').split('.').includes('')) return 'must be a URL with a valid host name';
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
