import { open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Writes a file (0600) whole or, after a failure or a crash, not at all, also while another process writes it. */
export async function writePrivateFile(file: string, text: string): Promise<void> {
  const fresh = `${file}.${process.pid}`;
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

/** Makes changes of the entries of a folder durable: they outlive a power cut. */
export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  await folder.sync();
}
