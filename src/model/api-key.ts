import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { parseTime, writeTime } from './timestamp.ts';

const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const accountForm = /^[a-z0-9]{12}$/;
const keyForm = /^trawl_[a-z0-9]{12}_[0-9A-Za-z]{49}$/;
// 62^43 is the first power of 62 above 2^256, 62^6 the first above 2^32.
const secretLength = 43;
const checksumLength = 6;

/** The text of an API key, `trawl_<account>_<secret><checksum>`, whose secret is these 32 bytes. */
export function makeKey(account: string, bytes: Uint8Array): string {
  if (!accountForm.test(account)) throw new RangeError('An account id has 12 characters of a-z and 0-9');
  if (bytes.length !== 32) throw new RangeError('A key is made of 32 bytes');
  const start = `trawl_${account}_${encode(toNumber(bytes), secretLength)}`;
  return start + checksumOf(start);
}

/** Parts of a key's text: its account, the hash that the record stores, and its id, the first 24 characters of the hash. */
export interface KeyText {
  readonly accountId: string;
  readonly hash: string;
  readonly keyId: string;
}

export function readKey(text: unknown): KeyText | null {
  if (typeof text !== 'string' || !keyForm.test(text)) return null;
  if (checksumOf(text.slice(0, -checksumLength)) !== text.slice(-checksumLength)) return null;
  const digest = hash('sha256', text);
  return { accountId: text.slice(6, 18), hash: digest, keyId: keyIdOf(digest) };
}

export function keyIdOf(hash: string): string {
  return hash.slice(0, 24);
}

export function makeAccountId(bytes: Uint8Array): string {
  if (bytes.length !== 16) throw new RangeError('An account id is made of 16 bytes');
  return (toNumber(bytes) % 36n ** 12n).toString(36).padStart(12, '0');
}

/** The last millisecond at which a key works: of that UTC day for a date, else the time itself; `null` when invalid. */
export function readExpiry(text: unknown): number | null {
  return parseTime(text, 'last');
}

/** Returns why no key is made that works until then, or `null`: one that has expired is mostly a mistake in the year. */
export function refusalOfExpiry(expires: number | null | undefined, now: number): string | null {
  if (typeof expires !== 'number' || expires >= now) return null;
  return `The key would never work: it would have expired at ${writeTime(expires)}`;
}

function checksumOf(text: string): string {
  let written = '';
  // Not with `encode`: large integers would cost as much as the hash.
  for (let rest = crc32(text); rest > 0; rest = Math.floor(rest / 62)) written = letters.charAt(rest % 62) + written;
  return written.padStart(checksumLength, '0');
}

function encode(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; rest > 0n; rest /= 62n) text = letters.charAt(Number(rest % 62n)) + text;
  return text.padStart(length, '0');
}

function toNumber(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
}
