import type { Ended } from '../../src/media/tools.ts';
import type { Breach, ChildLimits } from '../../src/worker/child-limits.ts';
import { homesOf, type Wall } from '../../src/worker/sandbox-command.ts';
import { openPlace, type Place } from '../../src/worker/workspace.ts';
import { aFolder } from './redis.ts';
import { programs } from './worker.ts';

export const walls: readonly Wall[] = ['user', 'namespace', 'none'];

export interface TestPlace extends Place {
  readonly root: string;
  /** Runs Python text; `signal` of the place ends it. */
  readonly python: (text: string, ...args: string[]) => Promise<Ended & { readonly lines: string[] }>;
  readonly breaches: Breach[];
  readonly stop: () => Promise<void>;
}

const roomy: ChildLimits = {
  fileBytes: 2 ** 28,
  folderBytes: 2 ** 29,
  memoryBytes: 2 ** 29,
  cpuSeconds: 60,
  processes: 64,
};

/** Opens a place whose children are ended when they break a limit, as those of an attempt. */
export async function openTestPlace(wall: Wall, egress: number, limits: Partial<ChildLimits> = {}): Promise<TestPlace> {
  const { folder: root, remove } = aFolder();
  const ended = new AbortController();
  const breaches: Breach[] = [];
  const place = await openPlace({
    ...{ root, wall, cookies: null, python: programs.python, readable: homesOf([programs.python, programs.node]) },
    egress: { host: '127.0.0.1', port: egress },
    limits: { ...roomy, ...limits },
    broken: (breach) => {
      breaches.push(breach);
      ended.abort();
    },
    signal: ended.signal,
  });
  const python: TestPlace['python'] = async (text, ...args) => {
    const lines: string[] = [];
    const child = place.run(programs.python, ['-I', '-c', text, ...args], {
      ...{ folder: place.folder, env: { HOME: place.folder }, signal: ended.signal },
      line: (line) => lines.push(line),
    });
    return { ...(await child.ended), lines };
  };
  const stop = async () => {
    await place.close();
    remove();
  };
  return { ...place, root, python, breaches, stop };
}
