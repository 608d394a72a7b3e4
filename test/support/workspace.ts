import type { ChildEnd } from '../../src/media/tools.ts';
import type { Breach, ChildLimits } from '../../src/worker/child-limits.ts';
import { programFolders, type Sandbox } from '../../src/worker/sandbox-command.ts';
import { openWorkspace, type Workspace } from '../../src/worker/workspace.ts';
import { openToOthers, systemPython } from './other-user.ts';
import { aFolder } from './redis.ts';
import { programs } from './worker.ts';

export const sandboxes: readonly Sandbox[] = ['user', 'namespace', 'none'];

export interface TestWorkspace extends Workspace {
  readonly root: string;
  /** Runs Python text; `signal` of the place ends it. */
  readonly python: (text: string, ...args: string[]) => Promise<ChildEnd & { readonly lines: string[] }>;
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
export async function openTestWorkspace(
  sandbox: Sandbox,
  egress: number,
  limits: Partial<ChildLimits> = {},
  interpreter = sandbox === 'landlock-user' ? systemPython : programs.python,
  root = '',
  cgroups: string | null = null,
): Promise<TestWorkspace> {
  const { folder, remove } = root === '' ? aFolder() : { folder: root, remove: () => undefined };
  const close = sandbox === 'landlock-user' ? openToOthers(folder) : () => undefined;
  const ended = new AbortController();
  const breaches: Breach[] = [];
  const place = await openWorkspace({
    ...{
      root: folder,
      sandbox,
      cgroups,
      cookies: null,
      programs: { ...programs, python: interpreter },
      readable: programFolders([interpreter, programs.node]),
    },
    egress: { host: '127.0.0.1', port: egress },
    limits: { ...roomy, ...limits },
    onBreach: (breach) => {
      breaches.push(breach);
      ended.abort();
    },
    signal: ended.signal,
  });
  const python: TestWorkspace['python'] = async (text, ...args) => {
    const lines: string[] = [];
    const child = place.run(interpreter, ['-I', '-c', text, ...args], {
      ...{ folder: place.folder, env: { HOME: place.folder }, signal: ended.signal },
      onLine: (line) => lines.push(line),
    });
    return { ...(await child.ended), lines };
  };
  const stop = async () => {
    await place.close();
    close();
    remove();
  };
  return { ...place, root: folder, python, breaches, stop };
}
