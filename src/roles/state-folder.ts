import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { type ServedUrls, servedUrlsFile } from '../admin/served-urls.ts';
import { quoteForShell } from '../base/child-process.ts';
import type { Config } from '../base/config.ts';
import { codeOf, messageOf, refuse } from '../base/errors.ts';
import { makeFolder } from '../base/make-folder.ts';
import { writePrivateFile } from '../base/private-file.ts';
import { uploadsFolder } from '../objects/folder-upload.ts';
import { objectsFolder } from '../objects/open-objects.ts';
import { recordFolder } from '../store/open-store.ts';

/** Exit code of flock. */
const heldByAnother = 1;

/**
 * Opens the data folder (TRAWL_DATA, 0700), takes its lock and makes its secret once; refuses while another process has the lock, and
 * when the secret or the files are gone from beside the record.
 */
export async function openStateFolder(config: Pick<Config, 'data' | 'secret' | 'redisUrl' | 'objects'>) {
  const { data, secret, redisUrl, objects } = config;
  const path = resolve(data);
  await makeFolder(path, 0o700).catch((error) => {
    throw refuse('unavailable', `${path} (TRAWL_DATA) cannot be made: ${messageOf(error)}`);
  });
  await chmod(path, 0o700);
  const lockFile = join(path, 'lock');
  const wasUsed = [lockFile, join(path, 'secret'), uploadsFolder(objectsFolder(path))].some((made) => existsSync(made));
  const lock = await open(lockFile, 'a', 0o600);
  // The lock belongs to the open file, which the child shares: the lock lasts until this process ends, even by SIGKILL.
  const locked = spawnSync('flock', ['--nonblock', '3'], { stdio: ['ignore', 'ignore', 'pipe', lock.fd] });
  if (locked.status !== 0) {
    await lock.close();
    if (locked.status === heldByAnother) throw refuse('in_use', `Another trawl up runs in ${path} (TRAWL_DATA)`);
    const reason = locked.error?.message ?? String(locked.stderr).trim();
    throw refuse('unavailable', `${path} (TRAWL_DATA) cannot be locked with flock: ${reason}`);
  }
  const urls = join(path, servedUrlsFile);
  // Those of the last start may be wrong, and admin commands find the record before this start serves.
  await rm(urls, { force: true });
  const keepUrls = ({ publicUrl, dashboardUrl }: ServedUrls) =>
    writePrivateFile(urls, JSON.stringify({ publicUrl, dashboardUrl }));
  const release = async () => {
    await rm(urls, { force: true });
    await lock.close();
  };
  try {
    const record = redisUrl === null ? await findRecordFolder(path, wasUsed) : null;
    if (record !== null && objects === 'folder') requireObjects(objectsFolder(path));
    return { path, secret: secret ?? (await readOrMakeSecret(join(path, 'secret'), record)), keepUrls, release };
  } catch (error) {
    await release();
    throw error;
  }
}

/**
 * Returns the folder of the record; `null` before the first start, which takes a new disk that is mounted as that folder. Refuses the empty
 * folder where the disk is not mounted: an empty record knows no key, and what it admits is hidden as soon as the disk is back.
 */
async function findRecordFolder(path: string, wasUsed: boolean): Promise<string | null> {
  const folder = recordFolder(path);
  const files = join(folder, 'appendonlydir');
  if (!existsSync(folder)) {
    // The next start knows the folder by what is in it, also when this one ends before Redis has written.
    await makeFolder(join(`${folder}.new`, basename(files)), 0o700);
    await rename(`${folder}.new`, folder);
    return null;
  }
  const names = (await readdir(folder)).filter((name) => name !== 'lost+found');
  const isNew = names.length === 1 && existsSync(files) && (await readdir(files)).length === 0;
  if (isNew) return null;
  if (names.length > 0) return folder;
  if (!wasUsed) {
    // The next start knows the disk by it when this one ends before Redis has written.
    await makeFolder(files, 0o700);
    return null;
  }
  throw refuse(
    'unavailable',
    `${folder} is not the folder in which the record was kept: mount its disk.
If this is its new disk, or no copy of the record exists, this line makes it the folder for a new record:
mkdir ${quoteForShell(files)}`,
  );
}

async function readOrMakeSecret(file: string, record: string | null): Promise<Buffer> {
  let text: string | null = null;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw refuse('unavailable', `${file} cannot be read: ${messageOf(error)}`);
  }
  if (text !== null) {
    const kept = Buffer.from(text.trim(), 'base64');
    if (kept.length === 32) return kept;
    throw refuse(
      'unavailable',
      `${file} does not hold 32 bytes in base64: without the secret, stored values stay sealed`,
    );
  }
  // A first start makes the secret before the record.
  if (record !== null) throw refuse('unavailable', explainLoss(file, record));
  const fresh = randomBytes(32);
  await writePrivateFile(file, `${fresh.toString('base64')}\n`);
  return fresh;
}

function explainLoss(file: string, record: string): string {
  return `${file} is missing and TRAWL_SECRET is not set, but ${record} has a record: put the secret back with which it was made.
If no copy of it exists, this line makes a new one, with which no link and no sealed value of the record opens any more:
head -c 32 /dev/urandom | base64 > ${quoteForShell(file)}`;
}

/** Refuses the empty folder where a disk is not mounted: what is written there is hidden as soon as the disk is back. */
function requireObjects(folder: string): void {
  const uploads = uploadsFolder(folder);
  if (!existsSync(folder) || existsSync(uploads)) return;
  throw refuse(
    'unavailable',
    `${folder} is not the folder in which files were kept: mount its disk.
If this is its new disk, or no copy of the files exists, this line makes it the folder for files:
mkdir ${quoteForShell(uploads)}`,
  );
}
