import { constants } from 'node:os';
import { spawnChild } from '../media/spawn-child.ts';
import type { ChildEnd, RunChild } from '../media/tools.ts';
import { type SandboxOptions, sandboxCommand } from './sandbox-command.ts';

export interface ChildrenOptions extends SandboxOptions {
  /** Kills every child. */
  readonly signal: AbortSignal;
}

/** Starts children and knows those that run. */
export interface SandboxedChildren {
  readonly run: RunChild;
  readonly groups: ReadonlySet<number>;
}

const systemPath = '/usr/bin:/bin:/usr/sbin:/sbin';

/**
 * Runs children, each in a sandbox and a process group of its own; calls `changed` at each start and end. Only Python, for
 * yt-dlp, gets the network.
 */
export function makeSandboxedChildren(
  sandboxes: ChildrenOptions,
  changed: (groups: ReadonlySet<number>) => void,
): SandboxedChildren {
  const groups = new Set<number>();
  const run: RunChild = (command, args, options) => {
    const route = command === sandboxes.python ? sandboxes.route : null;
    const [program = '', ...rest] = sandboxCommand([command, ...args], { ...sandboxes, route });
    const child = spawnChild(program, rest, {
      ...options,
      env: { PATH: systemPath, ...options.env },
      signal: AbortSignal.any([options.signal, sandboxes.signal]),
    });
    const { id } = child;
    if (id === undefined) return child;
    groups.add(id);
    changed(groups);
    const ended = child.ended.then((ended) => {
      groups.delete(id);
      changed(groups);
      return sandboxes.sandbox === 'none' ? ended : tellSignal(ended);
    });
    return { ...child, ended };
  };
  return { run, groups };
}

/** Restores the signal: bubblewrap and port-forwarder.py exit with 128 plus the signal that ended their command. */
function tellSignal(ended: ChildEnd): ChildEnd {
  const number = (ended.code ?? 0) - 128;
  const name = Object.entries(constants.signals).find(([, signal]) => signal === number)?.[0];
  return name ? { ...ended, code: null, signal: name as NodeJS.Signals } : ended;
}
