import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { refuse } from '../base/errors.ts';
import { syncFolder } from '../objects/file-system.ts';

/** The exit code of flock when somebody else has the lock. */
const heldByAnother = 1;

/** The folder of `trawl up` (TRAWL_DATA), held by this process alone. */
export interface StateFolder {
  readonly path: string;
  readonly secret: Buffer;
  release(): Promise<void>;
}

/** Opens the data folder (0700), takes its lock and makes its secret once; refuses while another process has it. */
export async function openStateFolder(wanted: string, secret: Buffer | null): Promise<StateFolder> {
  const path = resolve(wanted);
  await mkdir(path, { recursive: true, mode: 0o700 });
  await chmod(path, 0o700);
  const lock = await open(join(path, 'lock'), 'a', 0o600);
  // The lock belongs to the open file, which this process shares with the child: it lasts as long as this process, whatever ends it.
  const locked = spawnSync('flock', ['--nonblock', '3'], { stdio: ['ignore', 'ignore', 'pipe', lock.fd] });
  if (locked.status !== 0) {
    await lock.close();
    if (locked.status === heldByAnother) throw refuse('in_use', `Another trawl up runs in ${path} (TRAWL_DATA)`);
    const why = locked.error?.message ?? String(locked.stderr).trim();
    throw refuse('unavailable', `${path} (TRAWL_DATA) cannot be locked with flock: ${why}`);
  }
  return { path, secret: secret ?? (await readOrMakeSecret(join(path, 'secret'))), release: () => lock.close() };
}

/** Writes a file for its owner alone; after a crash it is there whole, or not at all. */
export async function writePrivateFile(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text, { mode: 0o600, flush: true });
  await rename(`${file}.new`, file);
  await syncFolder(dirname(file));
}

async function readOrMakeSecret(file: string): Promise<Buffer> {
  try {
    const kept = Buffer.from((await readFile(file, 'utf8')).trim(), 'base64');
    if (kept.length === 32) return kept;
    throw refuse(
      'unavailable',
      `${file} does not hold 32 bytes in base64: without the secret, stored values stay sealed`,
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const fresh = randomBytes(32);
  await writePrivateFile(file, `${fresh.toString('base64')}\n`);
  return fresh;
}
