import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { until } from './until.ts';

/**
 * Makes `folder` and kills a bubblewrap around it between the start of its child and the word that the child may go on. Returns the id
 * of the child. The pipe on which bubblewrap tells that id is full, so it is held right there.
 */
export async function leaveStuckSandbox(folder: string): Promise<number> {
  mkdirSync(folder, { recursive: true });
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const reader = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
  const writer = openSync(pipe, constants.O_WRONLY);
  fill(reader);
  const words = ['--die-with-parent', '--info-fd', '4', '--unshare-pid', '--ro-bind', '/', '/'];
  const stdio = ['ignore', 'ignore', 'ignore', 'ignore', writer] as const;
  const outer = spawn('bwrap', [...words, '--bind', folder, folder, 'true'], { stdio: [...stdio] });
  const children = () =>
    readFileSync(`/proc/${outer.pid}/task/${outer.pid}/children`, 'utf8').split(' ').filter(Boolean);
  const [child] = (await until(() => (children().length > 0 ? children() : null), 10, 'bubblewrap has a child')) ?? [];
  outer.kill('SIGKILL');
  await once(outer, 'exit');
  for (const file of [reader, writer]) closeSync(file);
  rmSync(pipe);
  return Number(child);
}

/** Writes until nothing more fits. */
function fill(pipe: number): void {
  for (const bytes of [4096, 1]) {
    try {
      for (;;) writeSync(pipe, Buffer.alloc(bytes));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }
}
