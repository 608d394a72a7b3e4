import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';

/** A process that outlives a worker which is killed, and then removes what that has left. */
export interface OrphanCleaner {
  /** The folder that it removes. */
  readonly folder: string;
  /** Id of its process. */
  readonly id: number;
  /** Tells which process groups must end with the worker. */
  readonly watch: (groups: Iterable<number>) => void;
  /** Ends the groups, removes the folder and settles when that is done. */
  readonly clean: () => Promise<void>;
}

/**
 * Each line that it reads replaces the list of groups. Its input ends with this process, however that ends.
 * Processes that are dying may still create files: removing is tried again.
 */
const script = `
trap '' INT TERM HUP
while read -r line; do groups=$line; done
for group in $groups; do kill -KILL -- "-$group"; done 2>/dev/null
for try in 1 2 3 4 5 6 7 8; do rm -rf -- "$1" 2>/dev/null && exit; sleep 0.2; done
rm -rf -- "$1"
`;

/**
 * Makes a new folder whose path begins so, with a cleaner that is there before it: in a session of its own so that no signal to the
 * worker's group reaches it.
 */
export async function startOrphanCleaner(beginning: string): Promise<OrphanCleaner> {
  // Short, for there will be a socket in it, whose path has 107 characters at most.
  const folder = beginning + randomBytes(6).toString('base64url');
  const child = spawn('/bin/sh', ['-c', script, 'sh', folder], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const exited = once(child, 'exit');
  // Without a cleaner the worker still removes its folder by itself; only one that is killed too leaves it.
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
