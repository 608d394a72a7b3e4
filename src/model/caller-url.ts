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

/** Returns the receiver of a webhook, `account@host/path` with a short hash of the path: webhooks take turns by it. */
export function receiverOf(accountId: string, url: string): string {
  const { host, pathname } = new URL(url);
  return `${accountId}@${host}/${createHash('sha256').update(pathname).digest('base64url').slice(0, 8)}`;
}

/**
 * Judges a URL of a caller (D28, webhooks: D55) and returns it as it is handed on: serialised, without its fragment, so that API,
 * yt-dlp, ffmpeg and egress read the same URL.
 */
export function judgeUrl(text: string, exceptions: readonly AddressException[], maxLength = maxUrlLength): JudgedUrl {
  if (!webScheme.test(text)) return refused(notUrl);
  const ambiguity = ambiguities.find(([pattern]) => pattern.test(text));
  if (ambiguity !== undefined) return refused(ambiguity[1]);
  const url = URL.parse(text);
  if (url === null) return refused(notUrl);
  const sentence = judgeHost(url, exceptions) ?? (encodedHost.test(text) ? unfitName : null);
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
