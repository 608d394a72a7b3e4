import { constants } from 'node:os';
import { spawnChild } from '../media/spawn-child.ts';
import type { ChildEnd, RunChild } from '../media/tools.ts';
import { type SandboxOptions, sandboxCommand } from './sandbox-command.ts';

export interface ChildrenOptions extends SandboxOptions {
  /** Ends every child. */
  readonly signal: AbortSignal;
}

/** The children that run now. */
export interface SandboxedChildren {
  readonly run: RunChild;
  readonly groups: ReadonlySet<number>;
}

const systemPath = '/usr/bin:/bin:/usr/sbin:/sbin';

/**
 * Gives a way to run children, each walled off and in a group of its own; `changed` is told of each start and end.
 * Only what runs Python needs the network.
 */
export function makeSandboxedChildren(
  sandboxes: ChildrenOptions,
  changed: (groups: ReadonlySet<number>) => void,
): SandboxedChildren {
  const groups = new Set<number>();
  const run: RunChild = (command, args, options) => {
    const out = command === sandboxes.python ? sandboxes.out : null;
    const [program = '', ...rest] = sandboxCommand([command, ...args], { ...sandboxes, out });
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

/** Bubblewrap and the forwarder end by themselves, with 128 more than the signal that ended what they ran. */
function tellSignal(ended: ChildEnd): ChildEnd {
  const number = (ended.code ?? 0) - 128;
  const name = Object.entries(constants.signals).find(([, signal]) => signal === number)?.[0];
  return name ? { ...ended, code: null, signal: name as NodeJS.Signals } : ended;
}
