import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ChildLimits, limitCommand } from './child-limits.ts';

/**
 * Kind of isolation of a child. `user`: bubblewrap and a user id of its own, which needs root;
 * `namespace`: bubblewrap with a user namespace; `none`: only Landlock, where the kernel has it.
 */
export type Sandbox = 'user' | 'namespace' | 'none';

/** The only network route out of a sandbox: the port inside leads to the socket outside. */
export interface EgressRoute {
  readonly port: number;
  readonly socket: string;
}

export interface SandboxOptions {
  readonly sandbox: Sandbox;
  readonly folder: string;
  /** Readable paths besides those of the system. */
  readonly readable: readonly string[];
  /** `null` for a child without network. */
  readonly route: EgressRoute | null;
  readonly limits: ChildLimits;
  /** User and group id in the sandbox `user`. */
  readonly user: number;
  readonly python: string;
  /** Capabilities that the child keeps in the sandbox `user`; only the inspector parent needs some, to isolate its children. */
  readonly capabilities?: readonly string[];
}

/** Port inside the sandbox's own network, where nothing else listens. */
export const insidePort = 3128;

/** First user id of children, far above those of people and services. */
const firstUser = 2_000_000_000;
const here = import.meta.dirname;
const systemFolders = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64'];
/** Certificate authorities, time zone and linker cache; never names of users, hosts or secrets. */
const systemSettings = ['ssl', 'ca-certificates', 'pki', 'alternatives', 'ld.so.cache', 'localtime'];
const keptForUser = ['CAP_SETUID', 'CAP_SETGID'];

/** Returns the command that runs another one in a sandbox and under limits. */
export function sandboxCommand(command: readonly string[], inside: SandboxOptions): string[] {
  const { sandbox, folder, readable, route, limits, user, python, capabilities } = inside;
  if (sandbox === 'none') {
    const port = String(route?.port ?? 0);
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
  const forwarded = route
    ? [...isolatedPython(python), join(here, 'port-forwarder.py'), route.socket, String(route.port), ...command]
    : command;
  const limited = limitCommand(forwarded, limits, true);
  if (sandbox === 'namespace') return [...bubblewrap(inside), '--unshare-user', ...keep([]), '--', ...limited];
  if (capabilities) return [...bubblewrap(inside), ...keep(capabilities), '--', ...limited];
  const setUser = ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--no-new-privs'];
  return [...bubblewrap(inside), ...keep(keptForUser), '--', ...setUser, '--inh-caps=-all', ...limited];
}

/** Returns the folders that programs need to run: the parent of each one's `bin`, also where links lead. */
export function programFolders(programs: readonly string[]): string[] {
  const homes = programs.flatMap((program) => [program, realpathSync(program)]).map(homeOf);
  return [...new Set(homes)].filter((home) => !systemFolders.some((folder) => `${home}/`.startsWith(`${folder}/`)));
}

/** Returns the paths of the system that every program needs; none holds data of people. */
export function systemPaths(): string[] {
  return [...systemFolders, ...systemSettings.map((name) => `/etc/${name}`)].filter((path) => existsSync(path));
}

export function ownUser(): number {
  return firstUser + process.pid;
}

function bubblewrap({ folder, readable, route }: SandboxOptions): string[] {
  const seen = [...systemPaths(), ...readable, here];
  const sockets = route ? [route.socket] : [];
  // Parent folders that bubblewrap makes implicitly are closed to the user inside, so each is made explicitly.
  const onTheWay = new Set([...seen, ...sockets, folder].flatMap(foldersAbove));
  return [
    'bwrap',
    '--die-with-parent',
    ...['--unshare-net', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    ...[...onTheWay].flatMap((path) => ['--dir', path]),
    ...[...seen, ...sockets].flatMap((path) => ['--ro-bind', path, path]),
    ...['--proc', '/proc', '--dev', '/dev', '--bind', folder, folder, '--chdir', folder],
    // Files there would take memory that no limit counts.
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

/** Python without site packages and user settings: it starts faster and loads no foreign code. */
function isolatedPython(python: string): string[] {
  return [python, '-I', '-S'];
}

/** Returns the folder above `bin`; directly below the root, where that would expose too much, the program's own folder. */
function homeOf(program: string): string {
  const home = dirname(dirname(program));
  return home.split('/').length > 2 ? home : dirname(program);
}
