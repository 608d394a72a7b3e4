import { createHash } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, refuse } from '../base/errors.ts';
import { makeFolder } from '../base/make-folder.ts';
import { syncFolder } from '../base/private-file.ts';
import { version } from '../base/version.ts';
import { writeTime } from '../model/timestamp.ts';
import { noteBackupBegun, noteBackupTaken } from '../store/backup/backup-notes.ts';
import { makeRdbReader, type SnapshotEntry } from '../store/backup/rdb-reader.ts';
import { databaseOf, streamSnapshot } from '../store/backup/snapshot-stream.ts';
import { keys } from '../store/keys.ts';
import { readTopology } from '../store/redis/discovery.ts';
import { explainFailure, sentenceForOperator } from '../store/redis/explain-failure.ts';
import { askOnce, isReply } from '../store/redis/redis-client.ts';
import type { RecordStore } from '../store/script.ts';
import {
  type BackupManifest,
  isWanted,
  listBackups,
  manifestFile,
  nameBackup,
  snapshotFile,
} from './backup-manifest.ts';

interface BackupOptions {
  readonly store: RecordStore;
  readonly url: string;
  /** Gets one folder for each backup. */
  readonly folder: string;
  /** Complete backups that stay, this one included; all of them unless given. */
  readonly keep?: number | undefined;
  readonly progress: (bytes: number) => void;
}

const partialName = '.partial-';
/** A backup that wrote nothing for so long was broken off. */
const abandonedMs = 3_600_000;

/** Copies the record as it is at one moment, and returns the new folder and its manifest. */
export async function takeBackup(options: BackupOptions): Promise<{ folder: string; manifest: BackupManifest }> {
  try {
    return await writeBackup(options);
  } catch (error) {
    const { syscall, code } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    throw refuse('unavailable', `The folder ${options.folder} cannot be written: ${code}`);
  }
}

async function writeBackup(options: BackupOptions): Promise<{ folder: string; manifest: BackupManifest }> {
  const { store, folder, keep } = options;
  await makeFolder(folder, 0o700);
  await removeAbandoned(folder);
  await noteBackupBegun(store);
  const name = await makePartial(store, folder);
  const partial = join(folder, `${partialName}${name}`);
  try {
    const manifest = await writeSnapshot(options, partial);
    await writeFile(join(partial, manifestFile), `${JSON.stringify(manifest, null, 2)}\n`, {
      mode: 0o600,
      flush: true,
    });
    await syncFolder(partial);
    await rename(partial, join(folder, name));
    await syncFolder(folder);
    await noteBackupTaken(store, Date.parse(manifest.taken_at));
    if (keep !== undefined) await removeOld(folder, keep);
    return { folder: join(folder, name), manifest };
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw error;
  }
}

/** Makes the folder of a backup under its partial name, which no other one has, and returns the name that it will have. */
async function makePartial({ clock }: RecordStore, folder: string): Promise<string> {
  for (;;) {
    const names = (await readdir(folder)).map((name) => name.replace(partialName, ''));
    const name = nameBackup(clock.now(), names);
    const partial = join(folder, `${partialName}${name}`);
    const isTaken = await mkdir(partial, { mode: 0o700 }).then(
      () => false,
      (error: unknown) => {
        if (codeOf(error) !== 'EEXIST') throw error;
        return true;
      },
    );
    if (isTaken) continue;
    // Completed by another process since the names were read.
    if (!(await listBackups(folder)).includes(name)) return name;
    await rm(partial, { recursive: true, force: true });
  }
}

async function writeSnapshot({ store, url, progress }: BackupOptions, folder: string): Promise<BackupManifest> {
  const layout = Number(await store.connection.read(['GET', keys.schema]));
  const begunAt = Math.floor(store.clock.now());
  const node = await findRecordNode(url).catch((error: Error) => {
    throw uncopied(explainFailure(error));
  });
  const database = databaseOf(node);
  const hash = createHash('sha256');
  let [bytes, found, takenAt] = [0, 0, 0];
  let hasSchema = false;
  const count = (entries: readonly SnapshotEntry[]) => {
    const wanted = entries.filter((entry) => isWanted({ database }, entry));
    found += wanted.length;
    hasSchema ||= wanted.some(({ key }) => key === keys.schema);
  };
  await using file = await open(join(folder, snapshotFile), 'wx', 0o600);
  for await (const { chunk, entries } of readSnapshot(node)) {
    // Redis has forked before it sends the first byte.
    if (bytes === 0) takenAt = Math.ceil(store.clock.now());
    hash.update(chunk);
    count(entries);
    await file.writeFile(chunk);
    bytes += chunk.length;
    progress(bytes);
  }
  await file.sync();
  // The slot of the record may have moved to another node meanwhile.
  if (!hasSchema) throw uncopied('the node that was copied does not have it');
  const times = { begun_at: writeTime(begunAt), taken_at: writeTime(takenAt) };
  const content = { keys: found, database, bytes, sha256: hash.digest('hex') };
  return { version: 1, release: version, layout, ...times, ...content };
}

/** Yields a snapshot of a node with the entries that end in each chunk; only what Redis or the snapshot causes is told as its failure. */
async function* readSnapshot(node: string) {
  const reader = makeRdbReader();
  try {
    for await (const chunk of streamSnapshot(node)) yield { chunk, entries: reader.push(chunk) };
    yield { chunk: Buffer.alloc(0), entries: reader.end().entries };
  } catch (error) {
    throw uncopied(sentenceForOperator(error as Error));
  }
}

function uncopied(why: string) {
  return refuse('unavailable', `The record cannot be copied: ${why}`);
}

async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith(partialName)) continue;
    const path = join(folder, name);
    const written = await stat(join(path, snapshotFile)).catch(() => stat(path));
    if (Date.now() - written.mtimeMs > abandonedMs) await rm(path, { recursive: true, force: true });
  }
}

async function removeOld(folder: string, keep: number): Promise<void> {
  const old = (await listBackups(folder)).slice(0, -keep);
  for (const name of old) {
    // Under another name first: one that is half gone must not look like a backup.
    const going = join(folder, `${partialName}${name}`);
    await rename(join(folder, name), going).catch(unlessGone);
    await rm(going, { recursive: true, force: true });
  }
}

/** Another backup that ends at this moment removes the same ones. */
function unlessGone(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error;
}

/** Returns the URL of the node that has the record now; the URL may name any one node of its Cluster. */
async function findRecordNode(url: string): Promise<string> {
  const topology = readTopology(url);
  const node = await topology.find(0);
  try {
    await askOnce(node, ['EXISTS', keys.schema]);
    return node;
  } catch (error) {
    if (!isReply(error, /^MOVED\b/)) throw error;
    topology.moved();
    return topology.find(0);
  }
}
