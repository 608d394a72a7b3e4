import { randomInt } from 'node:crypto';
import { chown, mkdtemp, readdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { retry } from '../base/backoff.ts';
import { failures } from '../base/errors.ts';
import { readLandlockVersion } from '../base/landlock-version.ts';
import type { Log } from '../base/log.ts';
import { onceAMinute } from '../base/once-a-minute.ts';
import { connectionsOfInspection, inspectionFileBytes, inspectionMemoryBytes } from '../base/resource-limits.ts';
import { shareRun } from '../base/single-flight.ts';
import { removeFolder } from '../media/child-folder.ts';
import { listEntries } from '../media/inspect-url.ts';
import { Failed, type MediaTools } from '../media/tools.ts';
import { pythonFlags } from '../media/yt-dlp.ts';
import type { InspectionFailure, Inspector } from '../model/inspection-result.ts';
import { readDetail } from '../model/outcome.ts';
import { type Breach, breaches, type ChildLimits } from './child-limits.ts';
import type { EgressFault, NoteFault } from './egress-forwarder.ts';
import type { LookLimits } from './file-usage.ts';
import { readableFolders } from './find-programs.ts';
import { InspectorBusy, shareSlots } from './inspection-slots.ts';
import { type InspectorParent, startInspectorParent } from './inspector-parent.ts';
import { findDescendants } from './process-usage.ts';
import type { MediaActions } from './run-attempt.ts';
import { hasNamespaces, hasOwnUser, sandboxCommand, systemPaths } from './sandbox-command.ts';
import { endingOf } from './sandbox-ending.ts';
import { seccompFilter } from './seccomp-filter.ts';
import { findChildUsers } from './user-id-ranges.ts';
import { type ChildWatch, startChildWatch } from './watch-limits.ts';
import { openHome, type WorkerHome, type WorkspaceOptions } from './workspace.ts';

export interface InspectorPoolOptions
  extends Pick<WorkspaceOptions, 'programs' | 'root' | 'cgroups' | 'egress' | 'sandbox'> {
  readonly inspectUrl: MediaActions['inspectUrl'];
  readonly plugins: readonly string[];
  readonly inspectSeconds: number;
  /** Further requests wait for a slot, or are refused. */
  readonly maxConcurrent: number;
  /** A fresh parent takes over after so many requests, because yt-dlp and its libraries leak memory. */
  readonly maxRequests: number;
  readonly log: Log;
}

export type InspectorPool = Awaited<ReturnType<typeof startInspectorPool>>;

const maxProcesses = 128;
/** One process checks all inspections, some dozen of which one account may have: together they must leave it time. */
const looks: LookLimits = { names: 500, openFiles: 512, mapsBytes: 2 ** 21 };
const backoff = { firstMs: 500, maxMs: 30_000 };
const homeName = 'inspector-';

export async function startInspectorPool(options: InspectorPoolOptions) {
  // Left by an inspector that was killed together with its orphan cleaner; there is one inspector in a data folder.
  const names = (await readdir(options.root).catch(() => [])).filter((name) => name.startsWith(homeName));
  await Promise.all(names.map((name) => removeFolder(join(options.root, name))));
  const memoryBytes = options.maxConcurrent * inspectionMemoryBytes;
  const maxConnections = connectionsOfInspection(options.maxConcurrent);
  const connections = { ports: options.maxConcurrent, maxConnections };
  const warn = onceAMinute((fault: EgressFault) => options.log.warn('the inspector has no use of egress', { fault }));
  /** By port: ends the request that has it when egress cannot be used, which is no fault of its URL. */
  const away = new Map<number, AbortController>();
  const noteFault: NoteFault = (port, fault) => {
    if (fault === null) return;
    warn(fault);
    away.get(port)?.abort();
  };
  const beginning = join(options.root, homeName);
  const home = await openHome({ ...options, memoryBytes, connections, noteFault, beginning, name: 'requests' });
  const freePorts = [...home.route.ports];
  // Without Landlock inspections hide from each other, and so from the watch.
  const watch = startChildWatch((await readLandlockVersion(options.programs.python)) === 0);
  const ended = new AbortController();
  const parents = keepWarm(() => startParent(options, home, ended.signal), options, ended.signal);
  await parents.first;
  const runInSlot = shareSlots(options.maxConcurrent);
  const ask = <T>(account: string, gone: AbortSignal, read: ReadPage<T>) =>
    runInSlot(account, gone, (signal) => {
      const warm = parents.current();
      if (warm === null) throw new InspectorBusy('the inspector starts');
      return withPort(freePorts, home, (port) => {
        const cut = new AbortController();
        away.set(port, cut);
        return readOne(read, warm, { ...home, watch, port }, options, AbortSignal.any([signal, cut.signal]));
      });
    });
  const inspect: Inspector['inspect'] = (url, account, gone) =>
    ask(account, gone, async (tools, signal) => {
      const order = { endpoint: 'metadata', args: { query: url } } as const;
      return { metadata: await options.inspectUrl(order, tools, signal) };
    });
  const list: Inspector['list'] = (url, maxEntries, account, gone) =>
    ask(account, gone, async (tools, signal) => ({
      entries: await listEntries(url, maxEntries, tools, signal),
    }));
  const close = async () => {
    ended.abort();
    watch.stop();
    await parents.end();
    await home.close();
  };
  return { inspect, list, isReady: () => parents.current() !== null, close };
}

/** Reads a page with the programs of one request; throws a `Failed`. */
type ReadPage<T> = (tools: MediaTools, signal: AbortSignal) => Promise<T>;

/** Lends a free port, which comes back whatever happens. */
async function withPort<T>(
  free: number[],
  { endConnections }: Pick<WorkerHome, 'endConnections'>,
  use: (port: number) => Promise<T>,
): Promise<T> {
  const port = free.shift();
  if (port === undefined) throw new InspectorBusy('no port is free');
  try {
    return await use(port);
  } finally {
    endConnections(port);
    free.push(port);
  }
}

async function readOne<T>(
  read: ReadPage<T>,
  warm: InspectorParent,
  home: Pick<WorkerHome, 'folder' | 'wrappers'> & { readonly watch: ChildWatch; readonly port: number },
  { programs, inspectSeconds, sandbox, log }: InspectorPoolOptions,
  gone: AbortSignal,
): Promise<T | InspectionFailure> {
  const { wrappers, watch, port } = home;
  const folder = await mkdtemp(join(home.folder, 'r'));
  const user = hasOwnUser(sandbox) ? nextUser() : 0;
  // A child that was killed from outside says nothing about its URL.
  let struck = false;
  const late = AbortSignal.timeout((inspectSeconds + 1) * 1000);
  const broken = new AbortController();
  const signal = AbortSignal.any([gone, late, broken.signal]);
  const groups = new Set<number>();
  const run: MediaTools['run'] = (_command, _args, running) => {
    const child = warm.start({ user, port }, running, (idInside) => {
      for (const id of findDescendants(warm.id, idInside)) groups.add(id);
    });
    void child.ended.then((end) => {
      struck = end.signal === 'SIGKILL' && !running.signal.aborted;
    });
    return child;
  };
  let breach: Breach | null = null;
  const onBreach = (limit: Breach) => {
    breach = limit;
    broken.abort();
  };
  const stopWatch = watch.add({ limits: limitsOf(inspectSeconds), looks, folder, groups, cgroup: null, onBreach });
  const limits = { fileBytes: inspectionFileBytes, inspectSeconds, slowBytes: 1, slowSeconds: inspectSeconds };
  const proxy = `http://127.0.0.1:${port}`;
  try {
    if (user) await chown(folder, user, user);
    // The parent has loaded the plugins already.
    const tools: MediaTools = { ...programs, folder, wrappers, proxy, plugins: [], cookies: null, limits, run };
    return await read(tools, signal);
  } catch (error) {
    if (breach !== null) return failure(new Failed(breaches[breach]));
    if (late.aborted) return failure(new Failed('timeout'));
    if (struck || gone.aborted) throw new InspectorBusy('the request was struck down');
    if (error instanceof Failed) {
      const { code } = error;
      const isOurs = failures[code].blame === 'us';
      if (isOurs) log.info('an inspection failed through our fault', { code, detail: readDetail(error) });
      return failure(error);
    }
    log.error('inspection broke off', { error: error instanceof Error ? error.stack : String(error) });
    return failure(new Failed('worker_failed'));
  } finally {
    stopWatch();
    await removeFolder(folder);
  }
}

let usersGiven = randomInt(2 ** 30);

/** Each request runs as another user, so that it meets no process or file of an earlier one. */
function nextUser(): number {
  const { first, count } = findChildUsers().inspections;
  return first + (usersGiven++ % count);
}

/** Limits of all processes of one inspection together. */
function limitsOf(inspectSeconds: number): ChildLimits {
  return {
    fileBytes: inspectionFileBytes,
    folderBytes: inspectionFileBytes,
    memoryBytes: inspectionMemoryBytes,
    cpuSeconds: inspectSeconds * availableParallelism(),
    processes: maxProcesses,
  };
}

function failure({ code, message: text }: Failed): InspectionFailure {
  return { failure: { code, text } };
}

/** Keeps one parent warm: replaces it when it has ended, or after `maxRequests` as soon as its successor is warm. The signal ends all. */
function keepWarm(
  start: () => Promise<InspectorParent>,
  { maxRequests, log }: InspectorPoolOptions,
  signal: AbortSignal,
) {
  let current: InspectorParent | null = null;
  let leaving: InspectorParent[] = [];
  const first = Promise.withResolvers<void>();
  const startNext = async () => {
    if (signal.aborted) return;
    const next = await start();
    if (signal.aborted) return next.ended;
    void next.ended.then(() => {
      leaving = leaving.filter((warm) => warm !== next);
      if (current !== next) return;
      current = null;
      void replacement.run();
    });
    if (current) leaving.push(current);
    current = next;
    first.resolve();
  };
  const delayOf = (error: unknown, delayMs: number) => {
    log.error('inspector did not start', { error: String(error) });
    return delayMs;
  };
  // Rejects only when the inspector has ended.
  const replacement = shareRun(() => retry(startNext, { ...backoff, signal, delayOf }).catch(() => undefined));
  void replacement.run();
  const timer = setInterval(() => {
    for (const warm of leaving) if (warm.counts().open === 0) warm.end();
    if (!current || current.counts().started >= maxRequests) void replacement.run();
  }, 200);
  const end = async () => {
    clearInterval(timer);
    await replacement.settled();
    await Promise.all([current, ...leaving].map((warm) => warm?.ended));
  };
  return { first: first.promise, current: () => current, end };
}

function startParent(
  options: InspectorPoolOptions,
  { folder, wrappers, route, filter, cleaner: { cgroup } }: WorkerHome,
  stop: AbortSignal,
): Promise<InspectorParent> {
  const { programs, plugins, sandbox, inspectSeconds, maxConcurrent } = options;
  const { python, driver } = programs;
  const readable = [...readableFolders(programs, plugins), wrappers];
  const limits = { ...limitsOf(inspectSeconds), cpuSeconds: 2 ** 31, processes: maxProcesses * maxConcurrent };
  const command = [python, ...pythonFlags, join(import.meta.dirname, 'inspector-parent.py'), driver, plugins.join(':')];
  const capabilities = ['CAP_SETUID', 'CAP_SETGID', 'CAP_KILL', 'CAP_SETPCAP'];
  // Behind bubblewrap the parent has a /proc of its own; there and here, it looks for what its children leave.
  const seen = hasNamespaces(sandbox) ? readable : [...readable, '/proc'];
  const inside = { sandbox, folder, readable: seen, route, limits, filter, cgroup, user: 0, python, capabilities };
  const env = { PATH: '/usr/bin:/bin', HOME: folder, LANG: 'C.UTF-8' };
  const paths = [...systemPaths(), ...readable, import.meta.dirname];
  const ofRequest = {
    file_bytes: inspectionFileBytes,
    memory_bytes: inspectionMemoryBytes,
    cpu_seconds: inspectSeconds,
    processes: maxProcesses,
  };
  // The parent's filter lets port-forwarder.py connect to UNIX sockets, at which a request would get around the limit of its port.
  const ownFilter = hasNamespaces(sandbox) ? (seccompFilter(false)?.toString('hex') ?? '') : '';
  return startInspectorParent(
    sandboxCommand(command, inside),
    { folder, env },
    { paths, limits: ofRequest, filter: ownFilter },
    endingOf(sandbox),
    stop,
  );
}
