import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { refuse } from '../base/errors.ts';

/** The folder of `trawl up` (TRAWL_DATA), held by this process alone. */
export interface Home {
  readonly path: string;
  readonly secret: Buffer;
  release(): Promise<void>;
}

/** Opens the data folder (0700), takes its lock and makes its secret once; refuses while another process has it. */
export async function openHome(wanted: string, secret: Buffer | null): Promise<Home> {
  const path = resolve(wanted);
  await mkdir(path, { recursive: true, mode: 0o700 });
  await chmod(path, 0o700);
  const lock = await open(join(path, 'lock'), 'a', 0o600);
  // The lock belongs to the open file, which this process shares with the child: it lasts as long as this process, whatever ends it.
  const locked = spawnSync('flock', ['--nonblock', '3'], { stdio: ['ignore', 'ignore', 'ignore', lock.fd] });
  if (locked.status !== 0) {
    await lock.close();
    if (locked.error) throw refuse('unavailable', `flock (of util-linux) cannot be started: ${locked.error.message}`);
    throw refuse('in_use', `Another trawl up runs in ${path} (TRAWL_DATA)`);
  }
  return { path, secret: secret ?? (await keepSecret(join(path, 'secret'))), release: () => lock.close() };
}

async function keepSecret(file: string): Promise<Buffer> {
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
  await writeFile(file, `${fresh.toString('base64')}\n`, { mode: 0o600, flag: 'wx', flush: true });
  return fresh;
}
