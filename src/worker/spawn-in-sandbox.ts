import { constants } from 'node:os';
import { runChild } from '../media/spawn-child.ts';
import type { Ended, Run } from '../media/tools.ts';
import { type Inside, wallOff } from './sandbox-command.ts';

export interface Walls extends Inside {
  /** Ends every child. */
  readonly signal: AbortSignal;
}

/** The children that run now. */
export interface Children {
  readonly run: Run;
  readonly groups: ReadonlySet<number>;
}

const systemPath = '/usr/bin:/bin:/usr/sbin:/sbin';

/**
 * Gives a way to run children, each walled off and in a group of its own; `changed` is told of each start and end.
 * Only what runs Python needs the network.
 */
export function makeChildren(walls: Walls, changed: (groups: ReadonlySet<number>) => void): Children {
  const groups = new Set<number>();
  const run: Run = (command, args, options) => {
    const out = command === walls.python ? walls.out : null;
    const [program = '', ...rest] = wallOff([command, ...args], { ...walls, out });
    const child = runChild(program, rest, {
      ...options,
      env: { PATH: systemPath, ...options.env },
      signal: AbortSignal.any([options.signal, walls.signal]),
    });
    const { id } = child;
    if (id === undefined) return child;
    groups.add(id);
    changed(groups);
    const ended = child.ended.then((ended) => {
      groups.delete(id);
      changed(groups);
      return walls.wall === 'none' ? ended : tellSignal(ended);
    });
    return { ...child, ended };
  };
  return { run, groups };
}

/** Bubblewrap and the forwarder end by themselves, with 128 more than the signal that ended what they ran. */
function tellSignal(ended: Ended): Ended {
  const number = (ended.code ?? 0) - 128;
  const name = Object.entries(constants.signals).find(([, signal]) => signal === number)?.[0];
  return name ? { ...ended, code: null, signal: name as NodeJS.Signals } : ended;
}
