import { randomInt } from 'node:crypto';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { retry } from '../base/backoff.ts';
import type { Log } from '../base/log.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { shareRun } from '../base/single-flight.ts';
import { Failed, type MediaTools } from '../media/tools.ts';
import { pythonFlags } from '../media/yt-dlp.ts';
import type { InspectionResult, Inspector } from '../model/inspection-result.ts';
import type { ChildLimits } from './child-limits.ts';
import { type ProgramPaths, readableFolders } from './find-programs.ts';
import { type InspectorParent, startInspectorParent } from './inspector-parent.ts';
import type { MediaActions } from './run-attempt.ts';
import { type EgressRoute, type Sandbox, sandboxCommand, systemPaths } from './sandbox-command.ts';
import { openHome, type WorkerHome } from './workspace.ts';

/** The inspector cannot answer now; the caller may ask again in a few seconds. */
export class InspectorBusy extends Error {}

export interface InspectorPoolOptions {
  readonly inspectUrl: MediaActions['inspectUrl'];
  readonly programs: ProgramPaths;
  readonly egress: ServerAddress;
  readonly root: string;
  readonly sandbox: Sandbox;
  readonly plugins: readonly string[];
  readonly inspectSeconds: number;
  /** Further requests fail with `InspectorBusy`. */
  readonly maxConcurrent: number;
  /** A fresh parent takes over after so many requests, because yt-dlp and its libraries leak memory. */
  readonly maxRequests: number;
  readonly log: Log;
}

export interface InspectorPool extends Inspector {
  readonly isReady: () => boolean;
  readonly close: () => Promise<void>;
}

const memoryBytes = 2 ** 30;
const maxFileBytes = 2 ** 26;
const maxProcesses = 128;
const backoff = { firstMs: 500, maxMs: 30_000 };
/** Each request runs as a random user out of so many, so that it meets no process or file of an earlier one. */
const users = 1_000_000_000;
const firstUser = 1_000_000_000;

export async function startInspectorPool(options: InspectorPoolOptions): Promise<InspectorPool> {
  const home = await openHome(join(options.root, 'inspector-'), 'requests', options.egress, options.sandbox);
  const ended = new AbortController();
  const parents = keepWarm(() => startParent(options, home.folder, home.route), options, ended.signal);
  await parents.first;
  let open = 0;
  const inspect = async (url: string, signal: AbortSignal): Promise<InspectionResult> => {
    const warm = parents.current();
    if (warm === null) throw new InspectorBusy('the inspector starts');
    if (open >= options.maxConcurrent) throw new InspectorBusy('too many requests at once');
    open++;
    try {
      return await inspectOne(url, warm, home, options, signal);
    } finally {
      open--;
    }
  };
  const close = async () => {
    ended.abort();
    await parents.end();
    await home.close();
  };
  return { inspect, isReady: () => parents.current() !== null, close };
}

async function inspectOne(
  url: string,
  warm: InspectorParent,
  { folder: requests, route }: WorkerHome,
  { programs, inspectSeconds, inspectUrl, sandbox, log }: InspectorPoolOptions,
  gone: AbortSignal,
): Promise<InspectionResult> {
  const folder = await mkdtemp(join(requests, 'r'));
  const user = sandbox === 'user' ? firstUser + randomInt(users) : 0;
  // A child that was killed from outside says nothing about its URL.
  let struck = false;
  const late = AbortSignal.timeout((inspectSeconds + 1) * 1000);
  const signal = AbortSignal.any([gone, late]);
  const run: MediaTools['run'] = (_command, _args, running) => {
    const child = warm.start(user, running);
    void child.ended.then((end) => {
      struck = end.signal === 'SIGKILL' && !running.signal.aborted;
    });
    return child;
  };
  const limits = { fileBytes: maxFileBytes, inspectSeconds, slowBytes: 1, slowSeconds: inspectSeconds };
  const proxy = `http://127.0.0.1:${route.port}`;
  try {
    if (user) await chown(folder, user, user);
    // The parent has loaded the plugins already.
    const tools: MediaTools = { ...programs, folder, proxy, plugins: [], cookies: null, limits, run };
    const metadata = await inspectUrl({ endpoint: 'metadata', args: { query: url } }, tools, signal);
    return { metadata };
  } catch (error) {
    if (late.aborted) return failure(new Failed('timeout'));
    if (struck || gone.aborted) throw new InspectorBusy('the request was struck down');
    if (error instanceof Failed) return failure(error);
    log.error('inspection broke off', { error: error instanceof Error ? error.stack : String(error) });
    return failure(new Failed('worker_failed'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function failure({ code, message: text }: Failed): InspectionResult {
  return { failure: { code, text } };
}

interface WarmParents {
  readonly first: Promise<void>;
  readonly current: () => InspectorParent | null;
  readonly end: () => Promise<void>;
}

/** Keeps one parent warm: replaces it when it has ended, or after `maxRequests` as soon as its successor is warm. */
function keepWarm(
  start: () => Promise<InspectorParent>,
  { maxRequests, log }: InspectorPoolOptions,
  signal: AbortSignal,
): WarmParents {
  let current: InspectorParent | null = null;
  let leaving: InspectorParent[] = [];
  const first = Promise.withResolvers<void>();
  const startNext = async () => {
    const next = await start();
    if (signal.aborted) return next.end();
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
    const warms = [current, ...leaving].filter((warm) => warm !== null);
    for (const warm of warms) warm.end();
    await Promise.all(warms.map((warm) => warm.ended));
  };
  return { first: first.promise, current: () => current, end };
}

function startParent(options: InspectorPoolOptions, folder: string, route: EgressRoute): Promise<InspectorParent> {
  const { programs, plugins, sandbox, inspectSeconds, maxConcurrent } = options;
  const { python, driver } = programs;
  const readable = readableFolders(programs, plugins);
  const limits: ChildLimits = {
    fileBytes: maxFileBytes,
    folderBytes: maxFileBytes,
    memoryBytes,
    cpuSeconds: 2 ** 31,
    processes: maxProcesses * maxConcurrent,
  };
  const command = [python, ...pythonFlags, join(import.meta.dirname, 'inspector-parent.py'), driver, plugins.join(':')];
  const capabilities = ['CAP_SETUID', 'CAP_SETGID', 'CAP_KILL'];
  const inside = { sandbox, folder, readable, route, limits, user: 0, python, capabilities };
  const env = { PATH: '/usr/bin:/bin', HOME: folder, LANG: 'C.UTF-8' };
  const paths = [...systemPaths(), ...readable, import.meta.dirname];
  const ofRequest = {
    file_bytes: maxFileBytes,
    memory_bytes: memoryBytes,
    cpu_seconds: inspectSeconds,
    processes: maxProcesses,
  };
  return startInspectorParent(
    sandboxCommand(command, inside),
    { folder, env },
    { port: route.port, paths, limits: ofRequest },
  );
}
