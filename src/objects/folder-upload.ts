import { createHash } from 'node:crypto';
import { lstatSync, renameSync } from 'node:fs';
import { lstat, mkdir, mkdtemp, open, readdir, rename, rm, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf, refuse, refuseWithout } from '../base/errors.ts';
import { syncFolder } from '../base/private-file.ts';
import { callDisk, storageFull } from './file-system.ts';
import type { StoredObject } from './object-store.ts';

/** Name of the file of an upload until it is complete. */
const unfinished = 'body';

/** Returns the folder of incomplete uploads. No key leads into it. */
export function uploadsFolder(root: string): string {
  return join(root, '.uploads');
}

/**
 * Writes an object that appears when it is complete and on the disk. A body that breaks off or is not of the permitted
 * length leaves nothing. An object never changes: a second one under its key is refused unless it is the same, or the first one
 * was made before a time.
 */
export async function receiveObject(
  root: string,
  key: string,
  bytes: number,
  body: AsyncIterable<Uint8Array>,
  before = 0,
): Promise<StoredObject> {
  await callDisk(checkRoom(root, bytes));
  const folder = await callDisk(mkdtemp(join(uploadsFolder(root), 'upload-')));
  try {
    const checksum = await writeBody(join(folder, unfinished), bytes, body);
    await callDisk(finish(join(root, key), root, { folder, checksum, before }));
    return { bytes, checksum };
  } finally {
    // After a success the folder has been renamed. A folder that cannot be removed now is swept later.
    await rm(folder, { recursive: true, force: true }).catch(() => {});
  }
}

/** Removes uploads that were last written to before a time; returns their number. One that cannot be removed stops no other. */
export async function sweepUploads(root: string, before: number): Promise<number> {
  let removed = 0;
  let failure: unknown;
  for (const name of await readdir(uploadsFolder(root))) {
    const folder = join(uploadsFolder(root), name);
    const writtenAt = Math.max(...(await Promise.all([folder, join(folder, unfinished)].map(readTime))));
    if (writtenAt >= before) continue;
    try {
      await rm(folder, { recursive: true, force: true });
      removed += 1;
    } catch (error) {
      failure ??= error;
    }
  }
  if (failure !== undefined) throw failure;
  return removed;
}

/** Throws when a file does not fit. Each try of its worker would fill the disk, on which the redis-server of `trawl up` may have its record. */
async function checkRoom(root: string, bytes: number): Promise<void> {
  const { blocks, bavail, bsize } = await statfs(root);
  const free = bavail * bsize;
  // Some file systems tell no size.
  if (blocks > 0 && free < bytes)
    throw refuseWithout('object store', new Error(`${bytes} bytes are needed, ${free} are free`), storageFull);
}

/** Writes exactly so many bytes to a new file; returns their checksum. */
async function writeBody(path: string, bytes: number, body: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256');
  const file = await callDisk(open(path, 'wx', 0o600));
  try {
    let received = 0;
    for await (const chunk of body) {
      received += chunk.length;
      if (received > bytes) throw refuse('payload_too_large', `Payload Too Large: the permit is for ${bytes} bytes`);
      hash.update(chunk);
      await callDisk(file.writeFile(chunk));
    }
    if (received < bytes) throw refuse('bad_request', `Bad Request: the upload has ${received} of ${bytes} bytes`);
    await callDisk(file.sync());
  } finally {
    await callDisk(file.close());
  }
  return hash.digest('hex');
}

interface ReceivedFile {
  readonly folder: string;
  readonly checksum: string;
  readonly before: number;
}

/** Publishes the object: a folder with one file named by its checksum, so that one rename shows both at once. */
async function finish(target: string, root: string, { folder, checksum, before }: ReceivedFile): Promise<void> {
  await rename(join(folder, unfinished), join(folder, checksum));
  await syncFolder(folder);
  await makeInside(root, dirname(target));
  try {
    await rename(folder, target);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes(codeOf(error))) throw error;
    if ((await readdir(target)).includes(checksum)) return;
    const replaced = `${folder}-replaced`;
    if (!replaceOlder(target, { folder, replaced, before }))
      throw refuse('already_exists', 'Another file was uploaded under this key before');
    await rm(replaced, { recursive: true, force: true });
  }
  await syncFolder(dirname(target));
}

/** Puts a folder in place of one from before a time, without a pause in which another upload could; returns false for a newer one. */
function replaceOlder(
  target: string,
  { folder, replaced, before }: { readonly folder: string; readonly replaced: string; readonly before: number },
): boolean {
  if (lstatSync(target).mtimeMs >= before) return false;
  renameSync(target, replaced);
  renameSync(folder, target);
  return true;
}

/** Creates a folder inside another one, step by step, so that no symbolic link is followed. */
async function makeInside(root: string, path: string): Promise<void> {
  if (path === root) return;
  await makeInside(root, dirname(path));
  try {
    await mkdir(path, 0o700);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    if ((await lstat(path)).isDirectory()) return;
    throw new Error(`${path} is not a folder`, { cause: error });
  }
  await syncFolder(dirname(path));
}

/** Returns when a file or folder was written last; 0 when it is gone, like an upload that has just ended. */
async function readTime(path: string): Promise<number> {
  return lstat(path).then(
    (found) => found.mtimeMs,
    () => 0,
  );
}
