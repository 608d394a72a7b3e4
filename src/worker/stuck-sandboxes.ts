import { readdir, readFile } from 'node:fs/promises';
import { killProcess, untilGone } from '../base/child-process.ts';

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
