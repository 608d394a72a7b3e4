import type { Readable } from 'node:stream';
import type { UploadPart, UploadPermit, UploadRequest } from '../model/attempt-protocol.ts';
import type { ByteRange } from '../model/byte-range.ts';
import { maxKeyLength } from '../model/outcome.ts';

/**
 * Keeps finished files, each under a key. Everything may be repeated. When the storage cannot be reached, read or written,
 * it throws the refusal `unavailable` with the cause.
 */
export interface ObjectStore {
  /** Bytes of every part of an upload but the last; `null` when files come whole, through the gateway. */
  readonly partBytes: number | null;
  /** Gives what a worker needs to upload exactly this file. Asked again, it names only the parts that are missing. */
  readonly permit: (key: string, upload: Upload) => Promise<Permit>;
  /** Takes in the whole file of a permit. The body is not read when the permit is not good. */
  readonly receive: (permit: WholePermit, body: AsyncIterable<Uint8Array>) => Promise<SeenObject>;
  /** Lets parts that were uploaded become the object; does nothing where there are none. */
  readonly finish: (key: string) => Promise<void>;
  /** Tells what is kept under a key, as the store itself verified it; `null` when nothing is. */
  readonly see: (key: string) => Promise<SeenObject | null>;
  /** Opens an object or a part of it; `null` when nothing is kept under the key. Who gets a stream reads it to its end or destroys it. */
  readonly open: (key: string, shown: Shown, range?: ByteRange) => Promise<OpenedObject | null>;
  /** Keeps bytes of our own, as one object. What is kept under the key already stays as it is. */
  readonly keep: (key: string, body: Uint8Array) => Promise<void>;
  /** Gives all bytes of an object, which must fit into memory; `null` when nothing is kept under the key. */
  readonly read: (key: string) => Promise<Buffer | null>;
  /** Removes every object and every upload whose key begins with a prefix; the prefix ends with a slash. */
  readonly remove: (prefix: string) => Promise<void>;
  /** Removes what broken uploads left, once nothing was written to it for some time; gives their number. */
  readonly sweepTemporary: (olderThanMs: number) => Promise<number>;
}

/** A file that is to be uploaded. A store that takes files whole does not read `parts`. */
export type Upload = Omit<UploadRequest, 'ext'>;

/** Plain data with which one object may be uploaded, and nothing else be done. */
export type Permit = WholePermit | PartsPermit;

/** The file goes through the gateway. */
export interface WholePermit {
  readonly is: 'whole';
  readonly key: string;
  readonly bytes: number;
  /** Milliseconds; the upload must have begun before. */
  readonly expires_at: number;
  readonly signature: string;
}

/** The file goes to the store itself, part by part. */
export interface PartsPermit extends UploadPermit {
  readonly is: 'parts';
  readonly parts: readonly UploadPart[];
}

/** What the one who downloads an object is told about it, where the store itself tells it. */
export interface Shown {
  readonly content_type: string;
  readonly disposition: string;
}

export interface SeenObject {
  readonly bytes: number;
  /** SHA-256 of its bytes, in hex; `null` when what is kept is not what was permitted. */
  readonly checksum: string | null;
}

export type OpenedObject =
  /** `bytes` is the size of the whole object. */
  | { readonly is: 'stream'; readonly bytes: number; readonly stream: Readable }
  | { readonly is: 'redirect'; readonly url: string };

/** Tells whether something may be kept under a key. Every key is also a path: two to five names, none of which begins with a dot. */
export function isObjectKey(key: unknown): key is string {
  return (
    typeof key === 'string' && key.length <= maxKeyLength && /^[a-z0-9-]+(?:\/[a-z0-9-][a-z0-9.-]*){1,4}$/.test(key)
  );
}

/** Tells whether a text is what keys begin with: one to four of their names, each with its slash. */
export function isObjectPrefix(prefix: string): boolean {
  return prefix.endsWith('/') && isObjectKey(`${prefix}x`);
}
