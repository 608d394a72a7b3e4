import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { refuse } from '../base/errors.ts';
import { parseJson } from '../base/parse-json.ts';
import { writeTime } from '../model/timestamp.ts';
import { makeRdbReader, type SnapshotEntry } from '../store/backup/rdb-reader.ts';
import { isOfRecord } from '../store/backup/restore-entries.ts';

/** Facts about a backup, as its folder holds them. */
export interface BackupManifest {
  /** Of this file. */
  readonly version: 1;
  readonly release: string;
  readonly layout: number;
  /** Everything in it had happened by `taken_at`; everything until `begun_at` is in it. Times as ISO 8601. */
  readonly begun_at: string;
  readonly taken_at: string;
  /** Keys of the record; the snapshot may hold others. */
  readonly keys: number;
  readonly database: number;
  readonly bytes: number;
  readonly sha256: string;
}

export type Backup = Awaited<ReturnType<typeof openBackup>>;

export const manifestFile = 'manifest.json';
export const snapshotFile = 'record.rdb';
const backupName = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)-(\d{3})Z$/;

/**
 * Returns the name of the folder of a backup that is taken now: its time, or a millisecond behind the last of some names where another one
 * is taken at the same time, or the clock was ahead before. So the last name is always that of the newest backup.
 */
export function nameBackup(now: number, names: readonly string[]): string {
  const last = names
    .filter((name) => backupName.test(name))
    .sort()
    .at(-1);
  const next = last === undefined ? now : Date.parse(last.replace(backupName, '$1T$2:$3:$4.$5Z')) + 1;
  return writeTime(Math.floor(Math.max(now, next))).replaceAll(/[:.]/g, '-');
}

/** Returns the names of the complete backups in a folder, oldest first. */
export async function listBackups(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => backupName.test(name)).sort();
}

/** Finds a backup, or the newest one below a folder, and reads all of it; throws a sentence unless it is whole. */
export async function openBackup(given: string) {
  const folder = await findBackup(given);
  const manifest = await readManifest(folder);
  if (manifest.keys === 0) throw broken(folder, 'it has no key of a record');
  const hash = createHash('sha256');
  let [bytes, found] = [0, 0];
  const count = (entries: readonly SnapshotEntry[]) => {
    found += entries.filter((entry) => isWanted(manifest, entry)).length;
  };
  const { format } = await readEntries(
    folder,
    async (entries) => count(entries),
    (chunk) => {
      hash.update(chunk);
      bytes += chunk.length;
    },
  ).catch((error: NodeJS.ErrnoException) => {
    throw broken(folder, error.code ? `${snapshotFile} cannot be read: ${error.code}` : error.message);
  });
  if (bytes !== manifest.bytes) throw broken(folder, `${snapshotFile} has ${bytes} bytes, not ${manifest.bytes}`);
  if (hash.digest('hex') !== manifest.sha256) throw broken(folder, `the SHA-256 of ${snapshotFile} is another one`);
  if (found !== manifest.keys) throw broken(folder, `${snapshotFile} has ${found} keys, not ${manifest.keys}`);
  return { folder, manifest, format };
}

/** Returns true for a key of the snapshot that belongs to the record. */
export function isWanted({ database }: Pick<BackupManifest, 'database'>, entry: SnapshotEntry): boolean {
  return entry.database === database && isOfRecord(entry);
}

/** Reads the snapshot of a backup in pieces; each piece may be long as its longest value. */
export async function readEntries(
  folder: string,
  take: (entries: readonly SnapshotEntry[]) => Promise<void>,
  seeBytes: (chunk: Buffer) => void = () => {},
): Promise<{ format: number }> {
  const reader = makeRdbReader();
  for await (const chunk of createReadStream(join(folder, snapshotFile), { highWaterMark: 1024 ** 2 })) {
    seeBytes(chunk as Buffer);
    await take(reader.push(chunk as Buffer));
  }
  const { entries, format } = reader.end();
  await take(entries);
  return { format };
}

async function findBackup(given: string): Promise<string> {
  const names = await readdir(given).catch(() => {
    throw refuse('not_found', `There is no folder ${given}`);
  });
  if (names.includes(manifestFile)) return given;
  const newest = (await listBackups(given)).at(-1);
  if (newest === undefined) throw refuse('not_found', `There is no complete backup in ${given}`);
  return join(given, newest);
}

async function readManifest(folder: string): Promise<BackupManifest> {
  const text = await readFile(join(folder, manifestFile), 'utf8').catch(() => {
    throw broken(folder, `${manifestFile} is missing`);
  });
  const manifest = parseJson(text) as Partial<BackupManifest> | null | undefined;
  const times = [manifest?.begun_at, manifest?.taken_at].map((time) => Date.parse(String(time)));
  const numbers = [manifest?.layout, manifest?.keys, manifest?.database, manifest?.bytes, ...times];
  if (manifest?.version !== 1 || !numbers.every(Number.isSafeInteger)) {
    throw broken(folder, `${manifestFile} is not that of a backup which this release reads`);
  }
  return manifest as BackupManifest;
}

function broken(folder: string, why: string) {
  return refuse('bad_request', `The backup in ${folder} is not whole: ${why}`);
}
