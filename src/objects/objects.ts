import type { Readable } from 'node:stream';
import { longestKey } from '../model/outcome.ts';
import type { ByteRange } from '../model/range.ts';

/**
 * Keeps finished files, each under a key. Everything may be repeated. When the storage cannot be reached, read or written,
 * it throws the refusal `unavailable` with the cause.
 */
export interface ObjectStore {
  /** Gives what a worker needs to upload exactly this object. */
  readonly permit: (key: string, bytes: number) => Promise<Permit>;
  /** Tells what is kept under a key, as the store itself verified it; `null` when nothing is. */
  readonly see: (key: string) => Promise<SeenObject | null>;
  /** Opens an object or a part of it; `null` when nothing is kept under the key. Who gets a stream reads it to its end or destroys it. */
  readonly open: (key: string, range?: ByteRange) => Promise<OpenedObject | null>;
  /** Removes every object whose key begins with a prefix; the prefix ends with a slash. */
  readonly remove: (prefix: string) => Promise<void>;
}

/** Plain data with which one object may be uploaded through the gateway, and nothing else be done. */
export interface Permit {
  readonly key: string;
  readonly bytes: number;
  /** Milliseconds; the upload must have begun before. */
  readonly expires_at: number;
  readonly signature: string;
}

export interface SeenObject {
  readonly bytes: number;
  /** SHA-256 of its bytes, in hex. */
  readonly checksum: string;
}

export type OpenedObject =
  /** `bytes` is the size of the whole object. */
  | { readonly is: 'stream'; readonly bytes: number; readonly stream: Readable }
  | { readonly is: 'redirect'; readonly url: string };

/** Tells whether something may be kept under a key. Every key is also a path: two to five names, none of which begins with a dot. */
export function isObjectKey(key: unknown): key is string {
  return typeof key === 'string' && key.length <= longestKey && /^[a-z0-9-]+(?:\/[a-z0-9-][a-z0-9.-]*){1,4}$/.test(key);
}

/** Tells whether a text is what keys begin with: one to four of their names, each with its slash. */
export function isObjectPrefix(prefix: string): boolean {
  return prefix.endsWith('/') && isObjectKey(`${prefix}x`);
}
