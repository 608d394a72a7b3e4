import { open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf } from './errors.ts';

/** Writes a file (0600) whole or, after a failure or a crash, not at all, also while another process writes it. */
export async function writePrivateFile(file: string, text: string): Promise<void> {
  const begin = `${file}.new-`;
  const fresh = `${begin}${process.pid}`;
  await removeLeft(begin);
  // The mode of one that is there would stay.
  await rm(fresh, { force: true });
  try {
    await writeFile(fresh, text, { mode: 0o600, flag: 'wx', flush: true });
    await rename(fresh, file);
  } finally {
    await rm(fresh, { force: true });
  }
  await syncFolder(dirname(file));
}

/** Removes the new files of processes that ended before they put them in place: each may hold a secret. */
async function removeLeft(begin: string): Promise<void> {
  const folder = dirname(begin);
  for (const name of await readdir(folder)) {
    const pid = name.startsWith(basename(begin)) ? Number(name.slice(basename(begin).length)) : 0;
    if (pid > 0 && hasEnded(pid)) await rm(join(folder, name), { force: true });
  }
}

function hasEnded(pid: number): boolean {
  try {
    return !process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === 'ESRCH';
  }
}

/** Makes changes of the entries of a folder durable: they outlive a power cut. */
export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  await folder.sync();
}
