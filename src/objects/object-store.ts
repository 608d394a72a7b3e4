import type { Readable } from 'node:stream';
import type { UploadPart, UploadPermit, UploadRequest } from '../model/attempt-protocol.ts';
import type { ByteRange } from '../model/byte-range.ts';
import { maxKeyLength } from '../model/outcome.ts';

/**
 * Keeps finished files, archived days and notes of revocations, each under a key. Every method may be repeated. Each throws the refusal `unavailable` with the cause while the
 * storage cannot be reached, read or written.
 */
export interface ObjectStore {
  /** Bytes of every part of an upload but the last; `null` when files come whole, through the gateway. */
  readonly partBytes: number | null;
  /**
   * Returns what a worker needs to upload exactly this file. A second call names only the parts that are missing. An upload that was
   * begun before the time `before`, in milliseconds since 1970, may be of another file: it is aborted.
   */
  readonly permit: (key: string, upload: Upload, before?: number) => Promise<Permit>;
  /**
   * Stores the whole file of a permit. The body is not read when the permit is invalid. An object under its key is replaced when it
   * was made before the time `before`, in milliseconds since 1970; another one is refused.
   */
  readonly receive: (permit: WholePermit, body: AsyncIterable<Uint8Array>, before?: number) => Promise<StoredObject>;
  /** Joins uploaded parts into the object; does nothing when there are none. Returns true when the store says that it has joined them now. */
  readonly finish: (key: string) => Promise<boolean>;
  /** Returns size and checksum of an object, as the store itself verified them; `null` without an object. */
  readonly see: (key: string) => Promise<StoredObject | null>;
  /** Opens an object or a part of it; `null` without an object. The caller reads a stream to its end or destroys it. */
  readonly open: (key: string, shown: LinkHeaders, range?: ByteRange) => Promise<OpenedObject | null>;
  /** Stores our own bytes as one object. An object that exists under the key stays unchanged. */
  readonly keep: (key: string, body: Uint8Array) => Promise<void>;
  /** Returns all bytes of an object, which must fit into memory; `null` without an object. */
  readonly read: (key: string) => Promise<Buffer | null>;
  /** Removes every object and every upload whose key begins with a prefix; the prefix ends with a slash. */
  readonly remove: (prefix: string) => Promise<void>;
  /** Removes uploads that were last written to before a time, in milliseconds since 1970; returns their number. */
  readonly sweepTemporary: (before: number) => Promise<number>;
  /** Lists the first name of every key, or the next one behind a prefix, once for all keys that share it, in pages. */
  readonly listNames: (prefix?: string) => AsyncIterable<readonly string[]>;
}

/** A file that is to be uploaded. A store that takes files whole does not read `parts`. */
export type Upload = Omit<UploadRequest, 'ext'>;

/** Plain data that permits the upload of one object and nothing else. */
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

/** Headers of a download link, where the store itself answers the download. */
export interface LinkHeaders {
  readonly content_type: string;
  readonly disposition: string;
}

export interface StoredObject {
  readonly bytes: number;
  /** SHA-256 of its bytes, in hex; `null` when the object is not the permitted one. */
  readonly checksum: string | null;
}

export type OpenedObject =
  /** `bytes` is the size of the whole object. */
  | { readonly is: 'stream'; readonly bytes: number; readonly stream: Readable }
  | { readonly is: 'redirect'; readonly url: string };

/** Returns true for a valid key. Every key is also a path: two to five names, none of which begins with a dot. */
export function isObjectKey(key: unknown): key is string {
  return (
    typeof key === 'string' && key.length <= maxKeyLength && /^[a-z0-9-]+(?:\/[a-z0-9-][a-z0-9.-]*){1,4}$/.test(key)
  );
}

/** Returns true for a prefix of keys: one to four names, each with its slash. */
export function isObjectPrefix(prefix: string): boolean {
  return prefix.endsWith('/') && isObjectKey(`${prefix}x`);
}
