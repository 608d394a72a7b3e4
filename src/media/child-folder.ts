/**
 * The folder that children write to, as worker and inspector may touch it. A child may lay a link, a pipe or a folder under any
 * name, and may swap one for another at any moment. Therefore:
 * 1. Nothing of trawl's is written there: what children need lies beside it, bound read-only.
 * 2. It is read and removed only after every process of the child has ended, which is when `ended` of the child resolves.
 * 3. Only names directly in it are used, and only with calls that follow no link there; what is read must be a regular file.
 * 4. Folders in it are removed by `rm` of coreutils, which goes from descriptor to descriptor and follows no link.
 */

import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir, rmdir, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { codeOf } from '../base/errors.ts';
import { Failed } from './tools.ts';

/** Shell command that removes its arguments; a folder that a child closed to its owner, who may be trawl's user, is opened first. */
export const removeCommand = 'rm -rf -- "$@" 2>/dev/null || { chmod -R u+rwx -- "$@"; rm -rf -- "$@"; } 2>/dev/null';

/** Folders that one command removes: their paths fit into its arguments. */
const maxRemovedAtOnce = 1000;

/** Opens a file to read it, without following a link and without waiting for the other end of a pipe. */
export async function openRegular(file: string): Promise<FileHandle> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error) => {
    // ELOOP is a link, ENXIO a socket.
    if (['ELOOP', 'ENXIO'].includes(error.code)) throw irregular(file);
    throw error;
  });
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  throw irregular(file);
}

export async function beginningOf(file: string): Promise<Buffer> {
  await using handle = await openRegular(file);
  const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(16) });
  return buffer.subarray(0, bytesRead);
}

/** Returns the bytes of a file, 0 for one that is missing. */
export async function sizeOf(file: string): Promise<number> {
  const stat = await lstat(file).catch(() => null);
  if (stat !== null && !stat.isFile()) throw irregular(file);
  return stat?.size ?? 0;
}

/** Returns the bytes of the regular files whose names begin so, while children may still write them. */
export async function measureFiles(folder: string, beginning: string): Promise<number> {
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.startsWith(beginning));
  // A fragment may vanish between being listed and being measured.
  const stats = await Promise.all(names.map((name) => lstat(join(folder, name)).catch(() => null)));
  return stats.reduce((sum, stat) => sum + (stat?.isFile() ? stat.size : 0), 0);
}

/** Removes every file and folder directly in the folder whose name fits the pattern, also thousands that a child made. */
export async function removeNames(folder: string, pattern: RegExp): Promise<void> {
  const paths = (await readdir(folder)).filter((name) => pattern.test(name)).map((name) => join(folder, name));
  const ends = await Promise.allSettled(paths.map((path) => unlink(path)));
  const folders = paths.filter((_, n) => ends[n]?.status === 'rejected');
  for (let n = 0; n < folders.length; n += maxRemovedAtOnce) {
    await removeTrees(folders.slice(n, n + maxRemovedAtOnce));
  }
}

/** Removes a folder with all that is in it; resolves also when there is none. */
export async function removeFolder(folder: string): Promise<void> {
  try {
    await rmdir(folder);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    await removeTrees([folder]);
  }
}

async function removeTrees(paths: readonly string[]): Promise<void> {
  await promisify(execFile)('/bin/sh', ['-c', removeCommand, 'sh', ...paths], { env: { PATH: '/usr/bin:/bin' } });
}

function irregular(file: string): Failed {
  return new Failed('worker_failed', `${basename(file)} is no regular file`);
}
