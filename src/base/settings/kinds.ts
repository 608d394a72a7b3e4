import { isIP } from 'node:net';
import type { ServerAddress } from '../server-address.ts';
import { hasHost, isPlainWebUrl, isRedisUrl } from './url-forms.ts';

export type SettingTable = Readonly<Record<`TRAWL_${string}`, SettingRow>>;

export interface Setting extends SettingRow {
  readonly name: `TRAWL_${string}`;
}

/** One setting, an environment variable. It is read as its default when it is not set or empty. */
interface SettingRow {
  readonly kind: SettingKind<unknown>;
  /** As one would write it; without it there is no value without the setting. */
  readonly default?: string;
  /** Default in words, where `default` does not say it. */
  readonly absent?: string;
  /** The value may come from the file that NAME_FILE names, and is never shown. */
  readonly secret?: true;
  /** The file of the secret is read again while a role runs. */
  readonly followed?: true;
  /** Meaning for the operator: the thing that the value limits, its unit, and the consequence at the limit. */
  readonly text: string;
}

/** Kind of value: `allowed` follows "must be" in sentences; `read` returns `undefined` for a text that is not allowed. */
export interface SettingKind<T> {
  readonly allowed: string;
  readonly read: (text: string) => T | undefined;
  /** Matches every text that is allowed, and few others; the chart, which cannot call `read`, refuses the rest. */
  readonly form?: RegExp;
}

export interface Network {
  readonly family: 'ipv4' | 'ipv6';
  readonly address: string;
  readonly prefix: number;
}

/** Addresses that may be reached on one port, or on every port when it is `null`. */
export interface AddressException extends Network {
  readonly port: number | null;
}

export interface HostPort {
  readonly host: string;
  readonly port: number | null;
}

const maxPort = 65_535;
const hostName = /^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$/i;
/** A name that ends in a number would be taken for an address, so 10.0.0.999 is neither. */
const numberAtEnd = /(^|\.)\d+$/;

export const text = pattern('one line of text', /^[^\r\n\0]+$/);

export const headerText = pattern('visible ASCII characters without blanks', /^[!-~]+$/);

export const host: SettingKind<string> = { allowed: 'a host name or an IP address', read: readHost };

export const port = whole(`a port from 1 to ${maxPort}, or 0 for any free one`, 0, maxPort);

export const count = whole('a whole number of 1 or more', 1, Number.MAX_SAFE_INTEGER);

export const countOrNone = whole('a whole number', 0, Number.MAX_SAFE_INTEGER);

export const memoryBytes = whole('a whole number of bytes from 67108864 (64 MiB) on', 2 ** 26, Number.MAX_SAFE_INTEGER);

/** Bounded, because a timer of more than 24 days fires at once. */
export const seconds = whole('a whole number of seconds from 1 to 1000000', 1, 1_000_000);

const decimal = /^\d+(\.\d+)?$/;

export const duration: SettingKind<number> = {
  allowed: 'a number above 0 and up to 100000, fractions allowed',
  form: decimal,
  read: (text) => {
    const value = Number(matching(decimal, text));
    return value > 0 && value <= 100_000 ? value : undefined;
  },
};

export const flag: SettingKind<boolean> = {
  allowed: 'true or false',
  form: /^(true|false)$/,
  read: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
};

export const secretKey: SettingKind<Buffer> = {
  allowed: '32 bytes in base64',
  read: (text) => {
    const bytes = Buffer.from(text, 'base64');
    return bytes.length === 32 && bytes.toString('base64') === text ? bytes : undefined;
  },
};

/** While a secret is changed, both values are named here: which of them is the other one, the present one tells. */
export const secretKeys: SettingKind<readonly Buffer[]> = {
  allowed: '32 bytes in base64, or two of these with a comma between',
  read: (text) => {
    const keys = text.split(',').map((part) => secretKey.read(part.trim()));
    return keys.length <= 2 && keys.every((key) => key !== undefined) ? keys : undefined;
  },
};

export const webUrl: SettingKind<string> = {
  allowed: 'an http:// or https:// URL without user, query and fragment',
  form: /^https?:\/\/[^\s?#]+$/,
  read: (text) => (isPlainWebUrl(text) ? text : undefined),
};

/** A URL that paths are appended to: it is read without the slash at its end. A path that begins with two slashes would name a host. */
export const linkStart: SettingKind<string> = {
  allowed: `${webUrl.allowed}, and with one slash before its path`,
  form: /^https?:\/\/[^\s?#/]+(\/[^\s?#/][^\s?#]*|\/*)$/,
  read: (text) => {
    const start = webUrl.read(text)?.replace(/\/+$/, '');
    return start === undefined || new URL(start).pathname.startsWith('//') ? undefined : start;
  },
};

export const serverUrl: SettingKind<string> = {
  allowed: 'an http:// or https:// URL of a server, without user, path, query and fragment',
  form: /^https?:\/\/[^\s?#@/]+\/?$/,
  read: (text) => (isPlainWebUrl(text) && URL.parse(text)?.pathname === '/' ? new URL(text).origin : undefined),
};

export const bucket: SettingKind<string> = {
  allowed: 'the name of a bucket: 3 to 63 small letters, digits, hyphens and single dots',
  form: /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
  read: (text) =>
    isIP(text)
      ? undefined
      : matching(/^(?=.{3,63}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/, text),
};

export const region = pattern('the name of a region, such as eu-central-1', /^[a-z0-9][a-z0-9-]{0,62}$/);

export const mailUrl: SettingKind<string> = {
  allowed: 'an smtp:// or smtps:// URL, with / ? # of a password as %2F %3F %23',
  read: (text) => (hasHost(text, ['smtp:', 'smtps:']) ? text : undefined),
};

export const mailAddress = pattern('a mail address', /^[^@\r\n]+@[^@\s]+$/);

export const redisUrl: SettingKind<string> = {
  allowed:
    'a redis:// or rediss:// URL, several with commas between for a Cluster, or redis+sentinel://host:port,host:port/name, with / ? # % , of a password as %2F %3F %23 %25 %2C',
  read: (text) => (isRedisUrl(text) ? text : undefined),
};

export const address: SettingKind<ServerAddress> = {
  allowed: 'unix:/path, http://host:port or https://host:port',
  read: readAddress,
};

export const ports: SettingKind<readonly number[]> = {
  ...list(`ports from 1 to ${maxPort}`, ',', (text) => readWhole(text, 1, maxPort)),
  form: /^\s*\d+\s*(,\s*\d+\s*)*$/,
};

export const networks: SettingKind<readonly Network[]> = {
  ...list('IP addresses or CIDRs such as 10.0.0.0/8', ',', readNetwork),
  form: /^[\s,.:/0-9A-Fa-f]*$/,
};

export const exceptions = list('cidr:port or cidr:*, such as 127.0.0.1:* or [fd00::/8]:443', ',', readException);

export const peers = list('host or host:port', ',', readPeer);

export const folders = list('folders', ':', text.read);

export function oneOf<const T extends string | number>(...words: readonly T[]): SettingKind<T> {
  const allowed = [words.slice(0, -1).join(', '), words.at(-1)].filter(Boolean).join(' or ');
  const form = new RegExp(`^(${words.join('|')})$`);
  return { allowed, form, read: (text) => words.find((word) => String(word) === text) };
}

/** Adds one word to a kind; its value is computed, such as the number of processors. */
export function orWord<T>(word: string, find: () => T, kind: SettingKind<T>): SettingKind<T> {
  return {
    allowed: `${kind.allowed}, or ${word}`,
    ...(kind.form && { form: new RegExp(`^${word}$|${kind.form.source}`) }),
    read: (text) => (text === word ? find() : kind.read(text)),
  };
}

function list<T>(each: string, separator: ',' | ':', read: (text: string) => T | undefined): SettingKind<readonly T[]> {
  const between = separator === ',' ? 'commas' : 'colons';
  return {
    allowed: `${each}, several with ${between} between`,
    read: (text) => {
      const parts = text === '' ? [] : text.split(separator).map((part) => read(part.trim()));
      return parts.every((part) => part !== undefined) ? Object.freeze(parts) : undefined;
    },
  };
}

export function pattern(allowed: string, form: RegExp): SettingKind<string> {
  return { allowed, form, read: (text) => matching(form, text) };
}

export function whole(allowed: string, min: number, max: number): SettingKind<number> {
  const form = min > 0 ? /^0*[1-9]\d*$/ : /^\d+$/;
  return { allowed, form, read: (text) => readWhole(text, min, max) };
}

function matching(pattern: RegExp, text: string): string | undefined {
  return pattern.test(text) ? text : undefined;
}

function readWhole(text: string, min: number, max: number): number | undefined {
  const value = Number(matching(/^\d{1,16}$/, text));
  return value >= min && value <= max ? value : undefined;
}

function readHost(text: string): string | undefined {
  return isIP(text) || (hostName.test(text) && !numberAtEnd.test(text)) ? text : undefined;
}

function readNetwork(text: string): Network | undefined {
  const [address = '', length, ...more] = text.split('/');
  const version = isIP(address);
  // The zone of an address (fe80::1%eth0) has a meaning on one machine only.
  if (!version || more.length || address.includes('%')) return undefined;
  const family = version === 4 ? 'ipv4' : 'ipv6';
  const bits = version === 4 ? 32 : 128;
  const prefix = length === undefined ? bits : readWhole(length, 0, bits);
  return prefix === undefined ? undefined : { family, address, prefix };
}

function readException(text: string): AddressException | undefined {
  const colon = text.lastIndexOf(':');
  const [cidr, last] = [text.slice(0, colon), text.slice(colon + 1)];
  const bracketed = cidr.startsWith('[') && cidr.endsWith(']');
  const network = readNetwork(bracketed ? cidr.slice(1, -1) : cidr);
  // A bare IPv6 address would not show where it ends and its port begins.
  const clear = network?.family === 'ipv6' ? bracketed || cidr.includes('/') : !bracketed;
  const port = last === '*' ? null : readWhole(last, 1, maxPort);
  return network && clear && port !== undefined ? { ...network, port } : undefined;
}

function readPeer(text: string): HostPort | undefined {
  if (readHost(text)) return { host: text, port: null };
  const [, bracketed, bare, digits] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(text) ?? [];
  const host = bracketed === undefined ? readHost(bare ?? '') : isIP(bracketed) === 6 ? bracketed : undefined;
  const port = digits === undefined ? null : readWhole(digits, 1, maxPort);
  return host !== undefined && port !== undefined ? { host, port } : undefined;
}

function readAddress(text: string): ServerAddress | undefined {
  if (text.startsWith('unix:/')) return { path: text.slice('unix:'.length) };
  const url = URL.parse(text);
  const scheme = url?.protocol ?? '';
  const isPlain = ['http:', 'https:'].includes(scheme) && url?.pathname === '/' && !url.search && !url.username;
  if (!url?.hostname || !isPlain) return undefined;
  const isSecure = scheme === 'https:';
  const address = { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || (isSecure ? 443 : 80)) };
  return isSecure ? { ...address, tls: { caFile: null } } : address;
}
