import {
  closeSync,
  type Dirent,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '../base/errors.ts';
import { lookOr } from './process-usage.ts';

const blockBytes = 512;
/** Size that every name counts at least. */
const entryBytes = 4096;

/** Bounds of one look at children: a longer one would keep the process that looks, and with it all others that it serves. */
export interface LookLimits {
  /** Names below their folder, of which yt-dlp makes some dozens: empty files cost inodes, of which a file system has some millions. */
  readonly names: number;
  /** Of all processes together. Programs of ours have some hundred. */
  readonly openFiles: number;
  /** Of all lists of mappings together. A program of ours has some 100 KB, and the kernel writes 16 MB in some 100 ms. */
  readonly mapsBytes: number;
}

/** For the children of an attempt, which have the process that checks them to themselves. */
export const attemptLooks: LookLimits = { names: 10_000, openFiles: 8192, mapsBytes: 2 ** 24 };

/** Longer than any line of our programs. Folders in folders make longer paths than any call takes. */
const lines = Buffer.alloc(2 ** 16);
const deleted = ' (deleted)';
/** Mappings of shared memory without a file, which the memory of the process counts. */
const sharedMemory = /^\/(?:dev\/zero|SYSV\w+) \(deleted\)$/;

/**
 * Returns the bytes on disk of all files below a folder, each counted once, and 4 KiB for each name. Too many names, and what cannot be measured, such as a
 * folder that is closed or whose path is too long, count without limit: no program of ours makes them, and anything could hide in it.
 */
export function folderBytes(
  folder: string,
  seen = new Set<number>(),
  namesLeft = { count: attemptLooks.names },
): number {
  let total = 0;
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    return bytesBehind(error);
  }
  namesLeft.count -= entries.length;
  if (namesLeft.count < 0) return Number.POSITIVE_INFINITY;
  for (const entry of entries) {
    const path = join(folder, entry.name);
    total += entry.isDirectory()
      ? entryBytes + folderBytes(path, seen, namesLeft)
      : Math.max(entryBytes, fileBytes(path, seen));
  }
  return total;
}

function fileBytes(path: string, seen: Set<number>): number {
  try {
    return bytesOnce(lstatSync(path), seen);
  } catch (error) {
    return bytesBehind(error);
  }
}

/** Returns 0 for what was removed or replaced after its parent was read. */
function bytesBehind(error: unknown): number {
  return ['ENOENT', 'ENOTDIR'].includes(codeOf(error)) ? 0 : Number.POSITIVE_INFINITY;
}

/**
 * Returns the usage of memory files, and of deleted files on disk, that processes have open or mapped, without the files in `seen`; stops
 * after `limits.openFiles`. `openFiles` is infinite for processes with more mappings than can be looked through while others wait. `folder` is
 * the real path of the only one that they may write to.
 */
export function namelessFiles(ids: Iterable<number>, seen: Set<number>, limits: LookLimits, folder: string) {
  const seenInMemory = new Set<number>();
  let [memoryBytes, diskBytes, openFiles, mapsLeft] = [0, 0, 0, limits.mapsBytes];
  const count = (name: string, stats: FileSize | undefined) => {
    if (name.startsWith('/memfd:')) memoryBytes += bytesOnce(stats, seenInMemory);
    else diskBytes += bytesOnce(stats, seen);
  };
  for (const id of ids) {
    const opened = join('/proc', String(id), 'fd');
    for (const file of lookOr(() => readdirSync(opened), [])) {
      if (++openFiles > limits.openFiles) return { memoryBytes, diskBytes, openFiles };
      const name = nameOf(join(opened, file));
      if (name.endsWith(deleted)) count(name, statOf(join(opened, file)));
    }
    const maps = readMaps(id, mapsLeft);
    if (maps === null) return { memoryBytes, diskBytes, openFiles: Number.POSITIVE_INFINITY };
    mapsLeft -= maps.bytes;
    for (const { range, name, inode, bytes } of maps.deleted) {
      // Only root may look behind a mapping. For others, a file that children wrote may have any size; programs of ours map none.
      const least = name.startsWith(`${folder}/`) ? Number.POSITIVE_INFINITY : bytes;
      count(name, statOf(join('/proc', String(id), 'map_files', range)) ?? { ino: inode, blocks: least / blockBytes });
    }
  }
  return { memoryBytes, diskBytes, openFiles };
}

type FileSize = Pick<Stats, 'ino' | 'blocks'>;

function bytesOnce(stats: FileSize | undefined, seen: Set<number>): number {
  if (stats === undefined || seen.has(stats.ino)) return 0;
  seen.add(stats.ino);
  return stats.blocks * blockBytes;
}

interface Mapping {
  readonly range: string;
  readonly bytes: number;
  readonly inode: number;
  readonly name: string;
}

function deletedMappings(text: string): Mapping[] {
  if (!text.includes(deleted)) return [];
  return text.split('\n').flatMap((line) => {
    const [, range = '', inode, name = ''] = /^(\S+) \S+ \S+ \S+ (\d+) +(\/.* \(deleted\))$/.exec(line) ?? [];
    if (name === '' || sharedMemory.test(name)) return [];
    const [start = 0, end = 0] = range.split('-').map((address) => Number.parseInt(address, 16));
    return [{ range, bytes: end - start, inode: Number(inode), name }];
  });
}

/** Returns the mappings of deleted files and the length of the whole list, or `null` for a list, or a line, that is too long to be read. */
function readMaps(id: number, maxBytes: number): { readonly bytes: number; readonly deleted: Mapping[] } | null {
  const found: Mapping[] = [];
  let [bytes, filled] = [0, 0];
  try {
    const file = openSync(join('/proc', String(id), 'maps'), 'r');
    try {
      for (let read = -1; read !== 0; bytes += read) {
        if (bytes > maxBytes || filled === lines.length) return null;
        read = readSync(file, lines, filled, lines.length - filled, null);
        filled += read;
        const whole = lines.subarray(0, filled).lastIndexOf('\n') + 1;
        found.push(...deletedMappings(lines.toString('utf8', 0, whole)));
        lines.copyWithin(0, whole, filled);
        filled -= whole;
      }
    } finally {
      closeSync(file);
    }
  } catch {
    // The process ended, or is another user's.
  }
  return { bytes, deleted: found };
}

function nameOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch (error) {
    // Otherwise the file was closed after it was listed. Folders below which a name is too long may be deleted, too.
    return codeOf(error) === 'ENAMETOOLONG' ? deleted : '';
  }
}

function statOf(path: string): Stats | undefined {
  return lookOr(() => statSync(path), undefined);
}
