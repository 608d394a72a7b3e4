import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ChildLimits, limitCommand } from './child-limits.ts';

/**
 * What stands between a child and everything else. `user`: bubblewrap and a user id of its own, which needs root;
 * `namespace`: bubblewrap with a user namespace; `none`: only Landlock, where the kernel has it.
 */
export type Sandbox = 'user' | 'namespace' | 'none';

/** The way out of a sandbox: the port inside that leads to the socket outside. */
export interface EgressRoute {
  readonly port: number;
  readonly socket: string;
}

export interface SandboxOptions {
  readonly sandbox: Sandbox;
  /** The only folder that may be written. */
  readonly folder: string;
  /** What may be read besides the system. */
  readonly readable: readonly string[];
  /** Null when nothing is to be reached. */
  readonly out: EgressRoute | null;
  readonly limits: ChildLimits;
  /** User and group id of a child behind the sandbox `user`. */
  readonly user: number;
  readonly python: string;
  /** Rights that the child keeps behind the sandbox `user`; none unless it needs to part its own children. */
  readonly capabilities?: readonly string[];
}

/** The port inside a network of its own, where nothing else listens. */
export const insidePort = 3128;

/** Far above the ids of people and services. */
const firstUser = 2_000_000_000;
const here = import.meta.dirname;
const systemFolders = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64'];
/** Certificates of authorities, time zone and what the linker needs; never names of users, hosts or secrets. */
const systemSettings = ['ssl', 'ca-certificates', 'pki', 'alternatives', 'ld.so.cache', 'localtime'];
const keptForUser = ['CAP_SETUID', 'CAP_SETGID'];

/** Gives the command that runs another one behind a sandbox and under limits. */
export function sandboxCommand(command: readonly string[], inside: SandboxOptions): string[] {
  const { sandbox, folder, readable, out, limits, user, python, capabilities } = inside;
  if (sandbox === 'none') {
    const port = String(out?.port ?? 0);
    const paths = [...systemPaths(), ...readable, here].join(':');
    return [
      ...isolatedPython(python),
      join(here, 'landlock.py'),
      folder,
      port,
      paths,
      ...limitCommand(command, limits, false),
    ];
  }
  const forwarded = out
    ? [...isolatedPython(python), join(here, 'port-forwarder.py'), out.socket, String(out.port), ...command]
    : command;
  const limited = limitCommand(forwarded, limits, true);
  if (sandbox === 'namespace') return [...bubblewrap(inside), '--unshare-user', ...keep([]), '--', ...limited];
  if (capabilities) return [...bubblewrap(inside), ...keep(capabilities), '--', ...limited];
  const setUser = ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--no-new-privs'];
  return [...bubblewrap(inside), ...keep(keptForUser), '--', ...setUser, '--inh-caps=-all', ...limited];
}

/** Names what must be readable for some programs to run: the folder above that of each, links followed too. */
export function programFolders(programs: readonly string[]): string[] {
  const homes = programs.flatMap((program) => [program, realpathSync(program)]).map(homeOf);
  return [...new Set(homes)].filter((home) => !systemFolders.some((folder) => `${home}/`.startsWith(`${folder}/`)));
}

/** Names what every program needs of the system, and nothing of people. */
export function systemPaths(): string[] {
  return [...systemFolders, ...systemSettings.map((name) => `/etc/${name}`)].filter((path) => existsSync(path));
}

/** A user id that no other process has. */
export function ownUser(): number {
  return firstUser + process.pid;
}

function bubblewrap({ folder, readable, out }: SandboxOptions): string[] {
  const seen = [...systemPaths(), ...readable, here];
  const sockets = out ? [out.socket] : [];
  // Folders that bubblewrap makes by itself on the way to a path are closed to the user inside.
  const onTheWay = new Set([...seen, ...sockets, folder].flatMap(foldersAbove));
  return [
    'bwrap',
    '--die-with-parent',
    ...['--unshare-net', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    ...[...onTheWay].flatMap((path) => ['--dir', path]),
    ...[...seen, ...sockets].flatMap((path) => ['--ro-bind', path, path]),
    ...['--proc', '/proc', '--dev', '/dev', '--bind', folder, folder, '--chdir', folder],
    // What lies on these is in memory that nobody counts.
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
  ];
}

function foldersAbove(path: string): string[] {
  const above = dirname(path);
  return above === '/' ? [] : [...foldersAbove(above), above];
}

function keep(capabilities: readonly string[]): string[] {
  return ['--cap-drop', 'ALL', ...capabilities.flatMap((name) => ['--cap-add', name])];
}

/** Python without the packages and settings of the machine and of people: it starts faster and finds no foreign code. */
function isolatedPython(python: string): string[] {
  return [python, '-I', '-S'];
}

/** The folder above `bin`. One so near the root would open too much: then it is only the folder of the program. */
function homeOf(program: string): string {
  const home = dirname(dirname(program));
  return home.split('/').length > 2 ? home : dirname(program);
}
