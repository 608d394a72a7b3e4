import { type Dirent, lstatSync, readdirSync, readFileSync, readlinkSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';

/** Usage of files that processes hold without a name in any folder. */
interface NamelessFiles {
  /** Of memory files. */
  readonly memoryBytes: number;
  /** Of deleted files. */
  readonly diskBytes: number;
  readonly openFiles: number;
}

const blockBytes = 512;
/** Size that every name counts at least: millions of empty files would cost nothing else but the file system's inodes. */
const entryBytes = 4096;
const deleted = ' (deleted)';
/** Mappings of shared memory without a file, which the memory of the process counts. */
const sharedMemory = /^\/(?:dev\/zero|SYSV\w+) \(deleted\)$/;

/**
 * Returns the bytes on disk of all files below a folder, each counted once, and 4 KiB for each name. What cannot be measured, such as a folder that is
 * closed or whose path is too long, counts without limit: no program of ours makes one, and anything could hide in it.
 */
export function folderBytes(folder: string, seen = new Set<number>()): number {
  let total = 0;
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    return bytesBehind(error);
  }
  for (const entry of entries) {
    const path = join(folder, entry.name);
    total += entry.isDirectory() ? entryBytes + folderBytes(path, seen) : Math.max(entryBytes, fileBytes(path, seen));
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
  const isGone = ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
  return isGone ? 0 : Number.POSITIVE_INFINITY;
}

/**
 * Returns the usage of deleted files and memory files that processes have open or mapped, without the files in `seen`; stops
 * after `maxOpenFiles`.
 */
export function namelessFiles(ids: Iterable<number>, seen: Set<number>, maxOpenFiles: number): NamelessFiles {
  const seenInMemory = new Set<number>();
  let [memoryBytes, diskBytes, openFiles] = [0, 0, 0];
  const count = (name: string, stats: FileSize | undefined) => {
    if (name.startsWith('/memfd:')) memoryBytes += bytesOnce(stats, seenInMemory);
    else diskBytes += bytesOnce(stats, seen);
  };
  for (const id of ids) {
    const folder = join('/proc', String(id), 'fd');
    for (const file of names(folder)) {
      if (++openFiles > maxOpenFiles) return { memoryBytes, diskBytes, openFiles };
      const name = nameOf(join(folder, file));
      if (name.endsWith(deleted)) count(name, statOf(join(folder, file)));
    }
    for (const { range, name, inode, bytes } of deletedMappings(id)) {
      // Only root may look behind a mapping; for others, the file has at least what is mapped.
      count(name, statOf(join('/proc', String(id), 'map_files', range)) ?? { ino: inode, blocks: bytes / blockBytes });
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

function deletedMappings(id: number): Mapping[] {
  const text = readMaps(id);
  if (!text.includes(deleted)) return [];
  return text.split('\n').flatMap((line) => {
    const [, range = '', inode, name = ''] = /^(\S+) \S+ \S+ \S+ (\d+) +(\/.* \(deleted\))$/.exec(line) ?? [];
    if (name === '' || sharedMemory.test(name)) return [];
    const [start = 0, end = 0] = range.split('-').map((address) => Number.parseInt(address, 16));
    return [{ range, bytes: end - start, inode: Number(inode), name }];
  });
}

function readMaps(id: number): string {
  try {
    return readFileSync(join('/proc', String(id), 'maps'), 'utf8');
  } catch {
    // The process ended, or is another user's.
    return '';
  }
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // The process ended, or is another user's.
    return [];
  }
}

function nameOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch (error) {
    // Otherwise the file was closed after it was listed. Folders below which a name is too long may be deleted, too.
    return (error as NodeJS.ErrnoException).code === 'ENAMETOOLONG' ? deleted : '';
  }
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
