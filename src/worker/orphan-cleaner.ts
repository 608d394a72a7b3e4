import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { cgroupPrefix, removeCgroup } from '../base/cgroup.ts';
import { killProcess, untilGone } from '../base/child-process.ts';
import { removeCommand, removeFolder } from '../media/child-folder.ts';

/**
 * Each line of input replaces the list of groups. The input ends with the worker, however the worker ends. The first process of a
 * group is bubblewrap, with which its namespace ends, or a supervisor, which then ends all that its command started. Removal is
 * retried because dying processes may still create files.
 */
const script = `
trap '' INT TERM HUP
while read -r line; do groups=$line; done
{
  for group in $groups; do kill -TERM "$group"; done
  for try in $(seq 50); do
    left=
    for group in $groups; do kill -0 -- "-$group" && left=1; done
    [ -z "$left" ] && break
    sleep 0.2
  done
  for group in $groups; do kill -KILL -- "-$group"; done
} 2>/dev/null
for try in $(seq 50); do
  [ -d "$2" ] || break
  while read -r id; do kill -KILL "$id"; done <"$2/cgroup.procs" 2>/dev/null
  rmdir -- "$2" 2>/dev/null || sleep 0.1
done
set -- "$1"
for try in 1 2 3 4 5 6 7 8 9; do { ${removeCommand}; } && exit; sleep 0.2; done
`;

/**
 * Starts a process that removes a new folder after its worker has ended, however it ends, and then makes the folder. Its path starts with
 * `beginning`; the name of its cgroup below `cgroups` ends with that of the folder. The cleaner runs before the folder exists, so that no kill leaves it, and in a
 * session of its own, so that signals to the worker's group do not reach the cleaner.
 */
export async function startOrphanCleaner(beginning: string, cgroups: string | null) {
  // Short: the folder holds a UNIX socket, whose path may have 107 characters.
  const folder = beginning + randomBytes(6).toString('base64url');
  const cgroup = cgroups === null ? null : join(cgroups, cgroupPrefix(dirname(folder)) + basename(folder));
  const child = spawn('/bin/sh', ['-c', script, 'sh', folder, cgroup ?? ''], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const exited = once(child, 'exit');
  // EPIPE: somebody killed the cleaner; a worker that ends by itself then removes the folder.
  child.stdin.on('error', () => {});
  await once(child, 'spawn');
  /** Ends the groups and removes the folder; resolves when both are done. */
  const clean = async () => {
    child.stdin.end();
    await exited;
    if (cgroup !== null) await removeCgroup(cgroup);
    await removeFolder(folder);
  };
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    await clean();
    throw error;
  }
  return {
    folder,
    /** Folder of a cgroup that is removed too, with what is left in it; nobody has made it yet. */
    cgroup,
    id: child.pid as number,
    /** Replaces the list of process groups that must end with the worker. */
    watch: (groups: Iterable<number>) => child.stdin.write(`${[...groups].join(' ')}\n`),
    clean,
  };
}

/**
 * Ends every bubblewrap around a folder in this one. A bubblewrap that is killed right after it has made its child leaves the child
 * waiting for it for ever (`--die-with-parent` begins later), and nothing knows of that child when its worker was killed as well.
 */
export async function endStuckSandboxes(work: string): Promise<void> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const commands = await Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '')));
  const isStuck = ([program, ...words]: readonly string[]) =>
    program === 'bwrap' && words.some((word) => `${word}/`.startsWith(`${work}/`));
  const stuck = ids.filter((_, n) => isStuck(commands[n]!.split('\0'))).map(Number);
  for (const id of stuck) killProcess(id);
  await Promise.all(stuck.map(untilGone));
}
