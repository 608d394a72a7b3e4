import { runChild } from '../media/run.ts';
import type { Run } from '../media/tools.ts';
import { type Inside, wallOff } from './sandbox.ts';

export interface Walls extends Inside {
  /** Ends every child. */
  readonly signal: AbortSignal;
}

/** The children that run now. */
export interface Children {
  readonly run: Run;
  readonly groups: ReadonlySet<number>;
  /** Whether one of them may reach the network. */
  readonly areFetching: () => boolean;
}

const systemPath = '/usr/bin:/bin:/usr/sbin:/sbin';

/** Gives a way to run children, each walled off and in a group of its own; `changed` is told of each start and end. */
export function makeChildren(walls: Walls, changed: (groups: ReadonlySet<number>) => void): Children {
  const groups = new Set<number>();
  let fetching = 0;
  const run: Run = (command, args, options) => {
    const reaches = command === walls.python || options.env.http_proxy !== undefined;
    const [program = '', ...rest] = wallOff([command, ...args], { ...walls, out: reaches ? walls.out : null });
    const child = runChild(program, rest, {
      ...options,
      env: { PATH: systemPath, ...options.env },
      signal: AbortSignal.any([options.signal, walls.signal]),
    });
    const { id } = child;
    if (id === undefined) return child;
    groups.add(id);
    fetching += Number(reaches);
    changed(groups);
    void child.ended.then(() => {
      groups.delete(id);
      fetching -= Number(reaches);
      changed(groups);
    });
    return child;
  };
  return { run, groups, areFetching: () => fetching > 0 };
}
