import { randomUUID } from 'node:crypto';
import { link, open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, parse } from 'node:path';
import { codeOf } from '../base/errors.ts';
import { isMissing, makeFolder } from '../base/make-folder.ts';
import { cutBytes } from '../model/file-link.ts';

const maxNames = 10_000;
/** Errors of a file system without hard links. */
const noLinkCodes = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];
/** The usual limit of 255 bytes for a name, without `.part`. */
const maxNameBytes = 250;
const maxExtensionBytes = 100;
/** A full disk may still take an empty file. */
const probeBytes = 4096;

/** Returns the folder and the name for a file: `output` may name a folder, which exists or ends in a slash, or a file. */
export async function choosePath(output: string | null, name: string): Promise<string> {
  if (output === null) return name;
  if (output.endsWith('/')) await makeFolder(output);
  return (await isFolder(output)) ? join(output, name) : output;
}

/** Throws unless a small file can be written where `output` says; makes a folder that is missing. */
export async function requireWritable(output: string | null): Promise<void> {
  const folder = dirname(await choosePath(output, 'file'));
  await makeFolder(folder);
  const probe = join(folder, `${randomUUID()}.part`);
  try {
    await writeFile(probe, Buffer.alloc(probeBytes), { flag: 'wx' });
  } finally {
    await rm(probe, { force: true });
  }
}

/** Makes the partial file of a path; a name that is taken, by a file or another download, gets ` (1)` and so on. */
export async function makePartialFile(wanted: string) {
  await makeFolder(dirname(wanted));
  let [path, n] = await claim(wanted, 0);
  const partPath = partOf(path);
  return {
    partPath,
    /** Gives the whole file its name, or the next free one, and returns its path. */
    finish: async () => {
      for (; ; path = numbered(wanted, ++n)) {
        if (await takeName(partPath, path)) return path;
        if (n >= maxNames) throw new Error(`No name is free beside ${wanted}`);
      }
    },
    remove: () => rm(partPath, { force: true }),
  };
}

async function claim(wanted: string, first: number): Promise<[path: string, n: number]> {
  for (let n = first; n < maxNames; n++) {
    const path = numbered(wanted, n);
    if (!(await isMissing(path))) continue;
    try {
      // Exclusive: a download that runs beside this one keeps its own partial file.
      await (await open(partOf(path), 'wx')).close();
      return [path, n];
    } catch (error) {
      if (!isTaken(error)) throw error;
    }
  }
  throw new Error(`No name is free beside ${wanted}`);
}

/** Renames without replacing anything; returns false when the name is taken. */
async function takeName(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    await rm(from);
    return true;
  } catch (error) {
    if (isTaken(error)) return false;
    if (!noLinkCodes.includes(codeOf(error))) throw error;
  }
  // A file system without hard links: the name is taken first, then replaced.
  try {
    await (await open(to, 'wx')).close();
  } catch (error) {
    if (isTaken(error)) return false;
    throw error;
  }
  await rename(from, to);
  return true;
}

/** Returns the partial file of a path, whose name is cut to one that a file system takes. */
function partOf(path: string): string {
  const { dir, base } = parse(path);
  return join(dir, `${cutBytes(base, maxNameBytes)}.part`);
}

/** Returns the nth name beside a path, whose beginning is cut so that file and partial file have a name for each number. */
function numbered(path: string, n: number): string {
  if (n === 0) return path;
  const { dir, name, ext } = parse(path);
  const end = ` (${n})${cutBytes(ext, maxExtensionBytes)}`;
  return join(dir, cutBytes(name, maxNameBytes - Buffer.byteLength(end)) + end);
}

export async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

function isTaken(error: unknown): boolean {
  return codeOf(error) === 'EEXIST';
}
