import { chmod, chown, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ServerAddress } from '../base/server-address.ts';
import type { RunChild } from '../media/tools.ts';
import type { Breach, ChildLimits } from './child-limits.ts';
import { startEgressForwarder } from './egress-forwarder.ts';
import { startOrphanCleaner } from './orphan-cleaner.ts';
import { insidePort, ownUser, type Sandbox } from './sandbox-command.ts';
import { makeSandboxedChildren } from './spawn-in-sandbox.ts';
import { watchLimits } from './watch-limits.ts';

export interface WorkspaceOptions {
  /** Parent of the private folders. */
  readonly root: string;
  readonly egress: ServerAddress;
  readonly sandbox: Sandbox;
  readonly limits: ChildLimits;
  readonly python: string;
  readonly readable: readonly string[];
  /** Text of a cookie file that children may read. */
  readonly cookies: string | null;
  /** Called once, when the children broke a limit. */
  readonly onBreach: (breach: Breach) => void;
  /** Kills every child. */
  readonly signal: AbortSignal;
}

/** Folder, egress proxy and children of one attempt; the children can reach nothing else. */
export interface Workspace {
  readonly folder: string;
  /** URL of the egress proxy, as children see it. */
  readonly proxy: string;
  readonly cookies: string | null;
  readonly run: RunChild;
  /** Kills the children and removes the folder; the orphan cleaner does the same when this process is killed. */
  readonly close: () => Promise<void>;
}

/** Makes the workspace of one attempt. */
export async function openWorkspace(options: WorkspaceOptions): Promise<Workspace> {
  const { root, egress, sandbox, limits, python, onBreach, signal, cookies: text } = options;
  await mkdir(root, { recursive: true, mode: 0o700 });
  const cleaner = await startOrphanCleaner(join(root, 'job-'));
  const home = cleaner.folder;
  const folder = join(home, 'job');
  const cookies = text === null ? null : join(home, 'cookies.txt');
  const socket = join(home, 'egress');
  const user = ownUser();
  const ended = new AbortController();
  try {
    // Mode 0711: bubblewrap must enter this folder without root's rights; the folder above is closed to everyone else.
    await mkdir(folder, { mode: 0o711 });
    if (sandbox === 'user') await chown(folder, user, user);
    if (cookies !== null && text !== null) {
      await writeFile(cookies, text, { mode: 0o400 });
      if (sandbox === 'user') await chown(cookies, user, user);
    }
    const forwarder = await startEgressForwarder(egress, sandbox === 'none' ? null : socket);
    if (sandbox !== 'none') await chmod(socket, 0o666);
    const port = sandbox === 'none' ? forwarder.port : insidePort;
    const readable = cookies ? [...options.readable, cookies] : options.readable;
    const sandboxes = { sandbox, folder, readable, route: { port, socket }, limits, user, python };
    const both = AbortSignal.any([signal, ended.signal]);
    const children = makeSandboxedChildren({ ...sandboxes, signal: both }, cleaner.watch);
    const stopWatch = watchLimits({ limits, folder, groups: () => children.groups, onBreach });
    const close = async () => {
      stopWatch();
      ended.abort();
      await forwarder.close();
      await cleaner.clean();
    };
    return { folder, proxy: `http://127.0.0.1:${port}`, cookies, run: children.run, close };
  } catch (error) {
    await cleaner.clean();
    throw error;
  }
}
