import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';

/** A process that outlives a killed worker, ends its children and removes its folder. */
export interface OrphanCleaner {
  readonly folder: string;
  readonly id: number;
  /** Replaces the list of process groups that must end with the worker. */
  readonly watch: (groups: Iterable<number>) => void;
  /** Ends the groups and removes the folder; resolves when both are done. */
  readonly clean: () => Promise<void>;
}

/**
 * Each line of input replaces the list of groups. The input ends with the worker, however the worker ends. Removal is retried
 * because dying processes may still create files.
 */
const script = `
trap '' INT TERM HUP
while read -r line; do groups=$line; done
for group in $groups; do kill -KILL -- "-$group"; done 2>/dev/null
for try in 1 2 3 4 5 6 7 8; do rm -rf -- "$1" 2>/dev/null && exit; sleep 0.2; done
rm -rf -- "$1"
`;

/**
 * Makes a new folder whose path begins so. The cleaner runs before the folder exists, so that no kill leaves it, and in a
 * session of its own, so that signals to the worker's group do not reach the cleaner.
 */
export async function startOrphanCleaner(beginning: string): Promise<OrphanCleaner> {
  // Short: the folder holds a UNIX socket, whose path may have 107 characters.
  const folder = beginning + randomBytes(6).toString('base64url');
  const child = spawn('/bin/sh', ['-c', script, 'sh', folder], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const exited = once(child, 'exit');
  // EPIPE: somebody killed the cleaner; the folder then stays.
  child.stdin.on('error', () => {});
  await once(child, 'spawn');
  const clean = async () => {
    child.stdin.end();
    await exited;
  };
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    await clean();
    throw error;
  }
  return {
    folder,
    id: child.pid as number,
    watch: (groups) => child.stdin.write(`${[...groups].join(' ')}\n`),
    clean,
  };
}
