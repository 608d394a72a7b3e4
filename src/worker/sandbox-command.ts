import { existsSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { type ChildLimits, limitCommand } from './child-limits.ts';
import { findChildUsers } from './user-id-ranges.ts';

/**
 * Kind of isolation of a child. `user`: bubblewrap and a user id of its own, which needs root; `namespace`: bubblewrap with a user
 * namespace; `landlock-user`: a user id of its own, which needs root, and Landlock; `none`: only Landlock. Either of the last two
 * has Landlock only where the kernel does.
 */
export type Sandbox = 'user' | 'namespace' | 'landlock-user' | 'none';

/** Returns true where children have their own mounts, processes and network. */
export function hasNamespaces(sandbox: Sandbox): boolean {
  return sandbox === 'user' || sandbox === 'namespace';
}

/** Returns true where each child has a user id of its own. */
export function hasOwnUser(sandbox: Sandbox): boolean {
  return sandbox === 'user' || sandbox === 'landlock-user';
}

/** The only network route out of a sandbox: each port inside leads to a socket outside. */
interface EgressRoute {
  readonly ports: readonly number[];
  /** Folder of the UNIX sockets, each named by its port. */
  readonly sockets: string;
  /** Connections by one port. */
  readonly maxConnections: number;
}

export interface SandboxOptions {
  readonly sandbox: Sandbox;
  readonly folder: string;
  /** Readable paths besides those of the system. */
  readonly readable: readonly string[];
  /** `null` for a child without network. */
  readonly route: EgressRoute | null;
  readonly limits: ChildLimits;
  /** File with the seccomp filter, `null` where trawl has none for the processor. */
  readonly filter: string | null;
  /** Folder of the cgroup that limits the memory of all children, `null` without one. */
  readonly cgroup: string | null;
  /** User and group id in the sandbox `user`. */
  readonly user: number;
  readonly python: string;
  /** Capabilities that the child keeps in the sandbox `user`; only the inspector parent needs some, to isolate its children. */
  readonly capabilities?: readonly string[];
}

const here = import.meta.dirname;
const systemFolders = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64'];
/** Certificate authorities, time zone and linker cache; never names of users, hosts or secrets. */
const systemSettings = ['ssl', 'ca-certificates', 'pki', 'alternatives', 'ld.so.cache', 'localtime'];
/** For `setpriv`, which needs the third to empty the bounding set. */
const keptForUser = ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'];
/** Descriptor on which bubblewrap tells the first process of its namespace. */
export const statusDescriptor = 4;
/** File descriptor of the seccomp filter, as landlock.py has it too. */
const filterFile = 3;
/**
 * The value 1000 makes children the first that the kernel ends when memory runs out; raising it needs no right. In the file of a
 * cgroup, 0 stands for the process that writes it.
 */
const enter = `
echo 1000 2>/dev/null >/proc/self/oom_score_adj
[ -z "$1" ] || echo 0 >"$1" || exit
exec ${filterFile}<"$2"
shift 2
exec "$@"
`;

/** Returns the command that runs another one in a sandbox and under limits. */
export function sandboxCommand(command: readonly string[], inside: SandboxOptions): string[] {
  const { cgroup, filter } = inside;
  const entry = cgroup === null ? '' : entryOf(cgroup);
  return ['/bin/sh', '-c', enter, 'sh', entry, filter ?? '/dev/null', ...isolatedCommand(command, inside)];
}

/**
 * Returns the file by which a process with one thread enters a cgroup. `tasks`, which only version 1 has, takes no lock of the whole
 * system, for which `cgroup.procs` waits 15 ms a child.
 */
function entryOf(cgroup: string): string {
  const tasks = join(cgroup, 'tasks');
  return existsSync(tasks) ? tasks : join(cgroup, 'cgroup.procs');
}

function isolatedCommand(command: readonly string[], inside: SandboxOptions): string[] {
  const { sandbox, folder, readable, route, limits, user, python, capabilities } = inside;
  if (!hasNamespaces(sandbox)) {
    const own = sandbox === 'none' ? '0' : capabilities ? 'parent' : String(user);
    const ports = (route?.ports ?? [0]).join(':');
    const paths = [...systemPaths(), ...readable, here].join(':');
    return [
      ...isolatedPython(python),
      join(here, 'landlock.py'),
      ...[own, folder, ports, paths],
      ...limitCommand(command, limits, sandbox === 'landlock-user' && !capabilities),
    ];
  }
  const limited = limitCommand(route ? forwardedCommand(command, route, python) : command, limits, true);
  if (sandbox === 'namespace') {
    // The filter refuses further user namespaces too, with every version of bubblewrap.
    const once = inside.filter === null ? ['--disable-userns'] : [];
    return [...bubblewrap(inside), '--unshare-user', ...once, ...keep([]), '--', ...limited];
  }
  if (capabilities) return [...bubblewrap(inside), ...keep(capabilities), '--', ...limited];
  const setUser = ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--no-new-privs'];
  const noRights = ['--inh-caps=-all', '--bounding-set=-all'];
  return [...bubblewrap(inside), ...keep(keptForUser), '--', ...setUser, ...noRights, ...limited];
}

function forwardedCommand(command: readonly string[], route: EgressRoute, python: string): string[] {
  const { sockets, ports, maxConnections } = route;
  const forwarder = [...isolatedPython(python), join(here, 'port-forwarder.py')];
  return [...forwarder, sockets, ports.join(':'), String(maxConnections), ...command];
}

/** Returns the folders that programs need to run: the parent of each one's `bin`, also where links lead. */
export function programFolders(programs: readonly string[]): string[] {
  const homes = programs.flatMap((program) => [program, realpathSync(program)]).flatMap(homesOf);
  return [...new Set(homes)].filter((home) => !systemFolders.some((folder) => `${home}/`.startsWith(`${folder}/`)));
}

/** Returns the paths of the system that every program needs; none holds data of people. */
export function systemPaths(): string[] {
  return [...systemFolders, ...systemSettings.map((name) => `/etc/${name}`)].filter((path) => existsSync(path));
}

/** Returns the user id of the children of this process. */
export function ownUser(): number {
  const { first, count } = findChildUsers().attempts;
  return first + (process.pid % count);
}

function bubblewrap({ folder, readable, route, filter }: SandboxOptions): string[] {
  const seen = [...systemPaths(), ...readable, here];
  const sockets = route ? [route.sockets] : [];
  // Parent folders that bubblewrap makes implicitly are closed to the user inside, so each is made explicitly.
  const onTheWay = new Set([...seen, ...sockets, folder].flatMap(foldersAbove));
  return [
    'bwrap',
    ...['--die-with-parent', '--info-fd', String(statusDescriptor)],
    ...(filter === null ? [] : ['--seccomp', String(filterFile)]),
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

/**
 * Returns the folder above `bin`. Directly below the root that would expose too much: the program's own folder then. A folder with the
 * home of trawl's user has keys of that user, and perhaps the record: in the home, `bin` and `lib` then, and else the program alone.
 */
function homesOf(program: string): string[] {
  const own = dirname(program);
  const above = dirname(own);
  const homes = userHomes();
  const isPrivate = (folder: string) => homes.some((home) => `${home}/`.startsWith(`${folder}/`));
  if (isPrivate(own)) return [program];
  if (homes.includes(above)) return [own, join(above, 'lib')].filter((path) => existsSync(path));
  return isPrivate(above) || above.split('/').length <= 2 ? [own] : [above];
}

/** Returns the home of trawl's user and its `.local`, also where links lead. */
function userHomes(): string[] {
  try {
    const homes = [homedir(), join(homedir(), '.local')];
    return [...homes, ...homes.filter((home) => existsSync(home)).map((home) => realpathSync(home))];
  } catch {
    // Neither HOME nor the list of users names one.
    return [];
  }
}
