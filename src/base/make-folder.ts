import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from './errors.ts';

/**
 * Makes a folder, and those above it that are missing, all with one mode; a folder that is there stays as it is. The recursive `mkdir` of
 * Node tries for ever where the system says ENOENT of a folder whose parent is there, as below /proc.
 */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  const parent = dirname(path);
  if (parent !== path && (await isMissing(parent))) await makeFolder(parent, mode);
  await mkdir(path, { mode }).catch(async (error: unknown) => {
    const isThere = codeOf(error) === 'EEXIST' && (await stat(path).catch(() => null))?.isDirectory();
    if (!isThere) throw error;
  });
}

export async function isMissing(path: string): Promise<boolean> {
  return stat(path).then(
    () => false,
    (error) => codeOf(error) === 'ENOENT',
  );
}
