import { constants } from 'node:fs';
import { lstat, open, readdir, realpath, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { codeOf, nullWhen, refuse } from '../base/errors.ts';
import { makeFolder } from '../base/make-folder.ts';
import { syncFolder } from '../base/private-file.ts';
import type { Seal } from '../base/seal.ts';
import type { ByteRange } from '../model/byte-range.ts';
import { callDisk } from './file-system.ts';
import { receiveObject, sweepUploads, uploadsFolder } from './folder-upload.ts';
import {
  isObjectKey,
  isObjectPrefix,
  type ObjectStore,
  type OpenedObject,
  type StoredObject,
  type Upload,
  type WholePermit,
} from './object-store.ts';

export interface FolderOptions {
  /** Created when it is missing. */
  readonly folder: string;
  readonly seal: Pick<Seal, 'sign' | 'verify'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** A folder of one machine as an object store; the gateway takes uploads in for it. */
export interface FolderStore extends ObjectStore {
  readonly permit: (key: string, upload: Pick<Upload, 'bytes'>) => Promise<WholePermit>;
  readonly open: (key: string, shown?: unknown, range?: ByteRange) => Promise<OpenedObject | null>;
}

const purpose = 'permit';
const permitMs = 3_600_000;
const pageLength = 1_000;

/** Opens a folder as an object store. The folder's own path may contain symbolic links, paths inside it may not. */
export async function openFolder({ folder, seal, now }: FolderOptions): Promise<FolderStore> {
  await callDisk(makeFolder(uploadsFolder(folder), 0o700));
  const root = await callDisk(realpath(folder));
  const store: FolderStore = {
    partBytes: null,
    permit: async (key, { bytes }) => {
      if (!isObjectKey(key)) throw refuse('bad_request', 'Bad Request: nothing can be kept under this key');
      if (!Number.isSafeInteger(bytes) || bytes < 1)
        throw refuse('bad_request', 'Bad Request: bytes must be 1 or more');
      const permit = { is: 'whole', key, bytes, expires_at: now() + permitMs } as const;
      return { ...permit, signature: seal.sign(purpose, permitText(permit)) };
    },
    receive: async (permit, body, before) => {
      const { key, bytes, expires_at, signature } = permit;
      const isOurs =
        isObjectKey(key) &&
        typeof signature === 'string' &&
        seal.verify(purpose, permitText({ key, bytes, expires_at }), signature);
      if (!isOurs || now() >= expires_at) throw refuse('forbidden', 'Forbidden: this permit is not good');
      await callDisk(checkPresence(root));
      return receiveObject(root, key, bytes, body, before);
    },
    // A received file is complete.
    finish: async () => false,
    see: (key) => callDisk(find(root, () => seeObject(root, key))),
    open: (key, _, range) => callDisk(find(root, () => openObject(root, key, range))),
    keep: async (key, body) => {
      if (!isObjectKey(key)) throw refuse('bad_request', 'Bad Request: nothing can be kept under this key');
      await callDisk(checkPresence(root));
      await receiveObject(root, key, body.length, Readable.from([body])).catch(nullWhen('already_exists'));
    },
    read: async (key) => {
      const opened = await store.open(key);
      return opened?.is === 'stream' ? callDisk(buffer(opened.stream)) : null;
    },
    remove: async (prefix) => {
      if (!isObjectPrefix(prefix)) throw new Error(`${JSON.stringify(prefix)} is not what keys begin with`);
      await callDisk(find(root, () => removeFolder(root, prefix)));
    },
    sweepTemporary: async (before) => {
      await callDisk(checkPresence(root));
      return callDisk(sweepUploads(root, before));
    },
    listNames: async function* (prefix = '') {
      await callDisk(checkPresence(root));
      const found = await callDisk(find(root, () => readdir(join(root, prefix))));
      const names = (found ?? []).filter((name) => !name.startsWith('.'));
      for (let n = 0; n < names.length; n += pageLength) yield names.slice(n, n + pageLength);
    },
  };
  return store;
}

function permitText({ key, bytes, expires_at }: Pick<WholePermit, 'key' | 'bytes' | 'expires_at'>): string {
  return JSON.stringify([key, bytes, expires_at]);
}

/** Returns `null` for a missing file; throws when the whole folder is missing. */
async function find<T>(root: string, look: () => Promise<T>): Promise<T | null> {
  try {
    return await look();
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(codeOf(error))) throw error;
    await checkPresence(root);
    return null;
  }
}

/** Throws when this is not the folder that was opened: without its disk an empty mount point may stand there. */
async function checkPresence(root: string): Promise<void> {
  await refuseLinks(uploadsFolder(root));
}

async function seeObject(root: string, key: string): Promise<StoredObject | null> {
  const file = await findFile(root, key);
  return file && { bytes: (await lstat(file.path)).size, checksum: file.checksum };
}

async function openObject(root: string, key: string, range?: ByteRange): Promise<OpenedObject | null> {
  const found = await findFile(root, key);
  if (found === null) return null;
  const file = await open(found.path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = await file.stat();
    return { is: 'stream', bytes: size, stream: file.createReadStream({ start: range?.first, end: range?.last }) };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function removeFolder(root: string, prefix: string): Promise<void> {
  await checkPresence(root);
  const path = join(root, prefix.slice(0, -1));
  await refuseLinks(dirname(path));
  await rm(path, { recursive: true, force: true });
  await syncFolder(dirname(path));
}

/** Returns the file of an object; its name is its checksum. */
async function findFile(root: string, key: string): Promise<{ path: string; checksum: string } | null> {
  if (!isObjectKey(key)) return null;
  const folder = join(root, key);
  const [entries] = await Promise.all([readdir(folder, { withFileTypes: true }), refuseLinks(folder)]);
  const file = entries.find((entry) => entry.isFile() && /^[0-9a-f]{64}$/.test(entry.name));
  return file ? { path: join(folder, file.name), checksum: file.name } : null;
}

async function refuseLinks(path: string): Promise<void> {
  if ((await realpath(path)) !== path) throw new Error(`${path} leads over a link`);
}
