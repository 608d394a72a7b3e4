import { createHash } from 'node:crypto';
import { lstat, mkdir, mkdtemp, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { refuse } from '../base/errors.ts';
import { codeOf, reach, syncFolder } from './file-system.ts';
import type { SeenObject } from './object-store.ts';

/** The name of the file in the folder of an upload, until it is complete. */
const unfinished = 'body';

/** Names the folder of uploads that are not complete. It is not under any key. */
export function uploadsIn(root: string): string {
  return join(root, '.uploads');
}

/**
 * Writes an object that appears when it is complete and on the disk. A body that breaks off or is not of the permitted
 * length leaves nothing. An object never changes: a second one under its key is refused unless it is the same.
 */
export async function receiveObject(
  root: string,
  key: string,
  bytes: number,
  body: AsyncIterable<Uint8Array>,
): Promise<SeenObject> {
  const folder = await reach(mkdtemp(join(uploadsIn(root), 'upload-')));
  try {
    const checksum = await writeBody(join(folder, unfinished), bytes, body);
    await reach(finish(root, key, folder, checksum));
    return { bytes, checksum };
  } finally {
    // After a success it is not there any more. What cannot be removed now is swept later.
    await rm(folder, { recursive: true, force: true }).catch(() => {});
  }
}

/** Removes uploads that nothing was written to for some time; gives their number. */
export async function sweepUploads(root: string, olderThanMs: number): Promise<number> {
  let removed = 0;
  for (const name of await readdir(uploadsIn(root))) {
    const folder = join(uploadsIn(root), name);
    const writtenAt = Math.max(...(await Promise.all([folder, join(folder, unfinished)].map(readTime))));
    // The times of files are the machine's, also when a rehearsal clock is ahead of it.
    if (Date.now() - writtenAt < olderThanMs) continue;
    await rm(folder, { recursive: true, force: true });
    removed += 1;
  }
  return removed;
}

/** Writes exactly so many bytes to a new file and gives their checksum. */
async function writeBody(path: string, bytes: number, body: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256');
  const file = await reach(open(path, 'wx', 0o600));
  try {
    let received = 0;
    for await (const chunk of body) {
      received += chunk.length;
      if (received > bytes) throw refuse('payload_too_large', `Payload Too Large: the permit is for ${bytes} bytes`);
      hash.update(chunk);
      await reach(file.writeFile(chunk));
    }
    if (received < bytes) throw refuse('bad_request', `Bad Request: the upload has ${received} of ${bytes} bytes`);
    await reach(file.sync());
  } finally {
    await reach(file.close());
  }
  return hash.digest('hex');
}

/** Lets the object appear: a folder that holds one file named by its checksum, so that one rename shows both at once. */
async function finish(root: string, key: string, folder: string, checksum: string): Promise<void> {
  const target = join(root, key);
  await rename(join(folder, unfinished), join(folder, checksum));
  await syncFolder(folder);
  await makeFolder(root, dirname(target));
  try {
    await rename(folder, target);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes(codeOf(error))) throw error;
    if ((await readdir(target)).includes(checksum)) return;
    throw refuse('already_exists', 'Another file was uploaded under this key before');
  }
  await syncFolder(dirname(target));
}

/** Makes a folder within another one, step by step, so that no link is followed. */
async function makeFolder(root: string, path: string): Promise<void> {
  if (path === root) return;
  await makeFolder(root, dirname(path));
  try {
    await mkdir(path, 0o700);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    if ((await lstat(path)).isDirectory()) return;
    throw new Error(`${path} is not a folder`, { cause: error });
  }
  await syncFolder(dirname(path));
}

/** When a file or folder was written last; 0 when it is gone, as an upload that ends meanwhile is. */
async function readTime(path: string): Promise<number> {
  return lstat(path).then(
    (found) => found.mtimeMs,
    () => 0,
  );
}
