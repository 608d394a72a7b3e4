import { chmod, chown, mkdir, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import type { ServerAddress } from '../base/server-address.ts';
import { spawnChild } from '../media/spawn-child.ts';
import type { ChildEnd, MediaTools, RunChild } from '../media/tools.ts';
import type { Breach } from './child-limits.ts';
import { startEgressForwarder } from './egress-forwarder.ts';
import { type OrphanCleaner, startOrphanCleaner } from './orphan-cleaner.ts';
import {
  type EgressRoute,
  insidePort,
  ownUser,
  type Sandbox,
  type SandboxOptions,
  sandboxCommand,
} from './sandbox-command.ts';
import { watchLimits } from './watch-limits.ts';

export interface WorkspaceOptions extends Pick<SandboxOptions, 'sandbox' | 'limits' | 'python' | 'readable'> {
  readonly root: string;
  readonly egress: ServerAddress;
  /** Text of a cookie file that children may read. */
  readonly cookies: string | null;
  readonly onBreach: (breach: Breach) => void;
  readonly signal: AbortSignal;
}

/** Folder, egress proxy and children of one attempt; the children can reach nothing else. */
export interface Workspace extends Pick<MediaTools, 'folder' | 'proxy' | 'cookies' | 'run'> {
  /** Kills the children and removes the folder; the orphan cleaner does the same when this process is killed. */
  readonly close: () => Promise<void>;
}

const systemPath = '/usr/bin:/bin:/usr/sbin:/sbin';

export async function openWorkspace(options: WorkspaceOptions): Promise<Workspace> {
  const { root, egress, sandbox, limits, python, onBreach, signal, cookies: text } = options;
  const home = await openHome(join(root, 'job-'), 'job', egress, sandbox);
  const { folder, route, cleaner } = home;
  const cookies = text === null ? null : join(dirname(folder), 'cookies.txt');
  const user = ownUser();
  const ended = new AbortController();
  try {
    if (sandbox === 'user') await chown(folder, user, user);
    if (cookies !== null && text !== null) {
      await writeFile(cookies, text, { mode: 0o400 });
      if (sandbox === 'user') await chown(cookies, user, user);
    }
  } catch (error) {
    await home.close();
    throw error;
  }
  const readable = cookies ? [...options.readable, cookies] : options.readable;
  const sandboxes = { sandbox, folder, readable, route, limits, user, python };
  const groups = new Set<number>();
  const both = AbortSignal.any([signal, ended.signal]);
  const run = runInSandbox(sandboxes, both, groups, () => cleaner.watch(groups));
  const stopWatch = watchLimits(limits, folder, groups, onBreach);
  const close = async () => {
    stopWatch();
    ended.abort();
    await home.close();
  };
  return { folder, proxy: `http://127.0.0.1:${route.port}`, cookies, run, close };
}

export interface WorkerHome {
  /** The only folder that children may write to. */
  readonly folder: string;
  readonly route: EgressRoute;
  readonly cleaner: OrphanCleaner;
  readonly close: () => Promise<void>;
}

/** Makes a closed folder whose path begins so, with a folder for children in it and their route to egress. */
export async function openHome(
  beginning: string,
  name: string,
  egress: ServerAddress,
  sandbox: Sandbox,
): Promise<WorkerHome> {
  await mkdir(dirname(beginning), { recursive: true, mode: 0o700 });
  const cleaner = await startOrphanCleaner(beginning);
  const folder = join(cleaner.folder, name);
  const socket = join(cleaner.folder, 'egress');
  try {
    // Mode 0711: children must enter this folder but not list it; the folder above is closed to everyone else.
    await mkdir(folder, { mode: 0o711 });
    const forwarder = await startEgressForwarder(egress, sandbox === 'none' ? null : socket);
    if (sandbox !== 'none') await chmod(socket, 0o666);
    const close = async () => {
      await forwarder.close();
      await cleaner.clean();
    };
    return { folder, cleaner, route: { port: sandbox === 'none' ? forwarder.port : insidePort, socket }, close };
  } catch (error) {
    await cleaner.clean();
    throw error;
  }
}

/**
 * Runs children, each in a sandbox and a process group of its own, and keeps the groups that run; calls `changed` at each
 * start and end. Only Python, for yt-dlp, gets the network.
 */
function runInSandbox(
  sandboxes: SandboxOptions,
  signal: AbortSignal,
  groups: Set<number>,
  changed: () => void,
): RunChild {
  return (command, args, options) => {
    const route = command === sandboxes.python ? sandboxes.route : null;
    const [program = '', ...rest] = sandboxCommand([command, ...args], { ...sandboxes, route });
    const env = { PATH: systemPath, ...options.env };
    const child = spawnChild(program, rest, { ...options, env, signal: AbortSignal.any([options.signal, signal]) });
    const { id } = child;
    if (id === undefined) return child;
    groups.add(id);
    changed();
    const ended = child.ended.then((ended) => {
      groups.delete(id);
      changed();
      return sandboxes.sandbox === 'none' ? ended : restoreSignal(ended);
    });
    return { ...child, ended };
  };
}

/** Bubblewrap and port-forwarder.py exit with 128 plus the signal that ended their command. */
function restoreSignal(ended: ChildEnd): ChildEnd {
  const number = (ended.code ?? 0) - 128;
  const name = Object.entries(constants.signals).find(([, signal]) => signal === number)?.[0];
  return name ? { ...ended, code: null, signal: name as NodeJS.Signals } : ended;
}
