import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type FollowedChild, followChild } from './followed-child.ts';
import { root } from './tree.ts';
import { until } from './until.ts';

/** A `./trawl up` that answers. */
export interface RunningUp extends FollowedChild {
  readonly url: string;
}

const inherited = ['PATH', 'HOME', 'TMPDIR', 'XDG_CACHE_HOME', 'NODE_COMPILE_CACHE'];

/** The output of `up`: a pipe, or a terminal. */
type OutputTarget = 'pipe' | 'terminal';

/** Starts the one of a tree on ports of its own, with these settings, and does not wait. */
export function spawnUp(
  env: Readonly<Record<string, string>>,
  tree = root,
  sight: OutputTarget = 'pipe',
): FollowedChild {
  const own = Object.fromEntries(inherited.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
  const ports = { TRAWL_PORT: '0', TRAWL_PROBE_PORT: '0', TRAWL_DASHBOARD_PORT: '0' };
  const line = [join(tree, 'trawl'), 'up'] as const;
  const [command, ...args] = sight === 'pipe' ? line : inTerminal(line);
  const child = spawn(command, args, {
    env: { ...own, ...ports, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return followChild(child);
}

/** Starts `./trawl up` and waits until it answers. */
export async function startUp(
  env: Readonly<Record<string, string>>,
  tree = root,
  sight: OutputTarget = 'pipe',
): Promise<RunningUp> {
  const up = spawnUp(env, tree, sight);
  let end: number | string | undefined;
  void up.ended.then((how) => {
    end = how;
  });
  const urlOf = () => /^trawl answers at (http:\S+)\r?$/m.exec(up.output())?.[1];
  await until(() => urlOf() !== undefined || end !== undefined, 20, `trawl up answers: ${up.output()}`);
  const url = urlOf();
  if (url === undefined) throw new Error(`trawl up ended with ${end}: ${up.output()}`);
  return { ...up, url };
}

/** The same line behind a terminal; a signal to it reaches the line too, with the end of the terminal. */
export function inTerminal(line: readonly string[]): [string, ...string[]] {
  return [
    'script',
    '--quiet',
    '--return',
    '--flush',
    '--command',
    line.map((word) => `'${word}'`).join(' '),
    '/dev/null',
  ];
}

/** Processes with this word in their command line. */
export function processesWith(word: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(word);
      } catch {
        // The process has ended meanwhile.
        return false;
      }
    })
    .map(Number);
}

/** Processes that work in a folder or below it. */
export function processesIn(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return `${readlinkSync(`/proc/${pid}/cwd`)}/`.startsWith(`${folder}/`);
      } catch {
        // The process has ended meanwhile, or belongs to another user.
        return false;
      }
    })
    .map(Number);
}
