import { chmod, chown, mkdir, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { makeFolder } from '../base/make-folder.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { layWrappers } from '../media/ffmpeg-arguments.ts';
import { spawnChild } from '../media/spawn-child.ts';
import type { ChildEnd, RunChild } from '../media/tools.ts';
import { makeChildCgroup } from './child-cgroup.ts';
import type { Breach } from './child-limits.ts';
import { type NoteFault, startEgressForwarder } from './egress-forwarder.ts';
import type { ProgramPaths } from './find-programs.ts';
import { startOrphanCleaner } from './orphan-cleaner.ts';
import { hasNamespaces, hasOwnUser, ownUser, type SandboxOptions, sandboxCommand } from './sandbox-command.ts';
import { endingOf } from './sandbox-ending.ts';
import { laySeccompFilter } from './seccomp-filter.ts';
import { startChildWatch } from './watch-limits.ts';

export interface WorkspaceOptions extends Pick<SandboxOptions, 'sandbox' | 'limits' | 'readable'> {
  readonly programs: ProgramPaths;
  readonly root: string;
  /** Folder of the cgroup below which the children get one of their own; `null` where none can be made. */
  readonly cgroups: string | null;
  readonly egress: ServerAddress;
  readonly noteFault?: NoteFault;
  /** Text of a cookie file that children may read. */
  readonly cookies: string | null;
  readonly onBreach: (breach: Breach) => void;
  readonly signal: AbortSignal;
}

/** Folder, egress proxy and children of one attempt; the children can reach nothing else. */
export type Workspace = Awaited<ReturnType<typeof openWorkspace>>;

/** One worker needs a few dozen. */
const maxConnections = 128;
const systemPath = '/usr/bin:/bin:/usr/sbin:/sbin';

export async function openWorkspace(options: WorkspaceOptions) {
  const { root, sandbox, limits, programs, onBreach, signal, cookies: text } = options;
  const { memoryBytes } = limits;
  const connections = { ports: 1, maxConnections };
  const home = await openHome({ ...options, memoryBytes, connections, beginning: join(root, 'job-'), name: 'job' });
  const { folder, wrappers, route, filter, cgroup, cleaner } = home;
  const cookies = text === null ? null : join(dirname(folder), 'cookies.txt');
  const user = ownUser();
  const ended = new AbortController();
  try {
    // Without mounts of their own, and without Landlock, children of other users find its name in the process table.
    if (sandbox === 'landlock-user') await chmod(folder, 0o700);
    if (hasOwnUser(sandbox)) await chown(folder, user, user);
    if (cookies !== null && text !== null) {
      await writeFile(cookies, text, { mode: 0o400 });
      if (hasOwnUser(sandbox)) await chown(cookies, user, user);
    }
  } catch (error) {
    await home.close();
    throw error;
  }
  const readable = [...options.readable, wrappers, ...(cookies ? [cookies] : [])];
  const inside = { sandbox, folder, readable, route, limits, filter, cgroup: cleaner.cgroup, user };
  const running = new Map<number, Promise<unknown>>();
  const both = AbortSignal.any([signal, ended.signal]);
  const run = runInSandbox({ ...inside, python: programs.python }, both, running, () => cleaner.watch(running.keys()));
  const watch = startChildWatch();
  const groups = { [Symbol.iterator]: () => running.keys() };
  const stopWatch = watch.add({ limits, folder, groups, cgroup, onBreach });
  /**
   * Kills the children and removes the folder; the orphan cleaner does the same when this process is killed. Calls `onBreach`
   * when the kernel ended a child at the limit of memory and no check has told so yet.
   */
  const close = async () => {
    stopWatch();
    watch.stop();
    ended.abort();
    await Promise.all(running.values());
    await home.close();
  };
  return { folder, wrappers, proxy: `http://127.0.0.1:${route.ports[0]}`, cookies, run, close };
}

interface HomeOptions extends Pick<WorkspaceOptions, 'cgroups' | 'egress' | 'noteFault' | 'programs' | 'sandbox'> {
  /** Of the path of the home. */
  readonly beginning: string;
  /** Of the folder of children in it. */
  readonly name: string;
  /** Ways to egress: ports, and the connections by each. */
  readonly connections: { readonly ports: number; readonly maxConnections: number };
  /** Limit of its cgroup. */
  readonly memoryBytes: number;
}

export type WorkerHome = Awaited<ReturnType<typeof openHome>>;

/** Makes a closed folder with a folder for children in it, and beside that what they need but must not change. */
export async function openHome(options: HomeOptions) {
  const { beginning, name, egress, sandbox, cgroups, memoryBytes, programs, connections, noteFault } = options;
  await makeFolder(dirname(beginning), 0o700);
  const cleaner = await startOrphanCleaner(beginning, cgroups);
  /** The only folder that children may write to. */
  const folder = join(cleaner.folder, name);
  const sockets = join(cleaner.folder, 'egress');
  try {
    // Mode 0711: children must enter this folder but not list it; the folder above is closed to everyone else.
    await mkdir(folder, { mode: 0o711 });
    await mkdir(sockets, { mode: 0o711 });
    const cgroup = cleaner.cgroup === null ? null : makeChildCgroup(cleaner.cgroup, memoryBytes);
    /** File that children cannot reach. */
    const filter = await laySeccompFilter(join(cleaner.folder, 'seccomp'), hasNamespaces(sandbox));
    /** Folder with the wrappers of ffmpeg and ffprobe, beside that of children. */
    const wrappers = layWrappers(join(cleaner.folder, 'tools'), programs);
    // Without mounts of their own, children of another user come through this folder, but cannot list it.
    if (sandbox === 'landlock-user') await chmod(cleaner.folder, 0o711);
    // Last, because it must be closed again.
    const forwarder = await startEgressForwarder({
      ...connections,
      ...(noteFault && { noteFault }),
      to: egress,
      folder: hasNamespaces(sandbox) ? sockets : null,
    });
    /** `endConnections` ends what processes that have ended left open at a port. */
    const { ports, endConnections } = forwarder;
    const close = async () => {
      await forwarder.close();
      await cleaner.clean();
    };
    const route = { ports, sockets, maxConnections: connections.maxConnections };
    return { folder, wrappers, filter, cgroup, cleaner, route, endConnections, close };
  } catch (error) {
    await cleaner.clean();
    throw error;
  }
}

/**
 * Runs children, each in a sandbox and a process group of its own, and keeps those that run by their groups; calls
 * `onChange` at each start and end. Only Python, for yt-dlp, gets the network.
 */
function runInSandbox(
  sandboxes: SandboxOptions,
  signal: AbortSignal,
  running: Map<number, Promise<unknown>>,
  onChange: () => void,
): RunChild {
  return (command, args, options) => {
    const route = command === sandboxes.python ? sandboxes.route : null;
    const [program = '', ...rest] = sandboxCommand([command, ...args], { ...sandboxes, route });
    const env = { PATH: systemPath, ...options.env };
    const ends = AbortSignal.any([options.signal, signal]);
    const child = spawnChild(program, rest, { ...options, env, signal: ends }, endingOf(sandboxes.sandbox));
    const { id } = child;
    if (id === undefined) return child;
    const ended = child.ended.then((ended) => {
      running.delete(id);
      onChange();
      return restoreSignal(ended);
    });
    running.set(id, ended);
    onChange();
    return { ...child, ended };
  };
}

/** Bubblewrap, port-forwarder.py and supervisor.py exit with 128 plus the signal that ended their command. */
function restoreSignal(ended: ChildEnd): ChildEnd {
  const number = (ended.code ?? 0) - 128;
  const name = Object.entries(constants.signals).find(([, signal]) => signal === number)?.[0];
  return name ? { ...ended, code: null, signal: name as NodeJS.Signals } : ended;
}
