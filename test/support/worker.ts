import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeLog } from '../../src/base/log.ts';
import type { ServerAddress } from '../../src/base/server-address.ts';
import { address } from '../../src/base/settings/kinds.ts';
import { inspectUrl } from '../../src/media/inspect-url.ts';
import { produce } from '../../src/media/produce-file.ts';
import { Failed } from '../../src/media/tools.ts';
import { readMetadata } from '../../src/model/metadata.ts';
import type { SandboxMode } from '../../src/worker/choose-sandbox.ts';
import { findPrograms } from '../../src/worker/find-programs.ts';
import type { MediaActions } from '../../src/worker/run-attempt.ts';
import { runWorker } from '../../src/worker/worker.ts';
import { compileCache } from './compile-cache.ts';
import { token } from './gateway.ts';

export const programs = findPrograms(process.env.PATH ?? '');

/** Makes `media.mp4` by the shell script in the argument `script`; the children are those of a real job. */
export const scripted: MediaActions = {
  produce: async ({ args }, { folder, run, python: shell }, told, signal) => {
    told({ progress: 50, stage: 'fetch', speed_bytes: null, eta_seconds: null });
    const program = args.network === true ? shell : '/bin/sh';
    const words =
      program === shell
        ? ['-c', `import os; os.execv("/bin/sh", ["sh", "-c", ${JSON.stringify(args.script)}])`]
        : ['-c', String(args.script)];
    const ended = await run(program, words, { folder, env: { HOME: folder }, signal }).ended;
    signal.throwIfAborted();
    if (ended.code !== 0) throw new Failed('unclassified', `${ended.code} ${ended.signal} ${ended.stderr}`);
    const file = join(folder, 'media.mp4');
    const content = await readFile(file);
    const sha256 = createHash('sha256').update(content).digest('hex');
    const metadata = readMetadata({ title: 'scripted' });
    if (metadata === null) throw new Error('an object is metadata');
    return { file, metadata, bytes: content.length, sha256, content_type: 'video/mp4', ext: 'mp4' };
  },
  inspectUrl: async () => {
    throw new Error('scripts make files');
  },
};

export interface TestWorkerOptions {
  readonly folder: string;
  readonly gateway: ServerAddress;
  readonly egress: string;
  readonly sandbox?: SandboxMode;
  readonly cgroup?: string;
  readonly media?: 'scripted' | 'real';
  readonly plugins?: readonly string[];
  readonly terminationFile?: string;
  readonly slowSeconds?: number;
  /** Stands in for the Python of the project. */
  readonly python?: string;
  readonly isPod?: boolean;
  readonly network?: 'policies-enforced';
}

/** A worker in a process of its own. */
export interface TestWorker {
  readonly process: ChildProcessWithoutNullStreams;
  readonly stderr: () => string;
  readonly exit: Promise<{ code: number | null; signal: string | null }>;
}

/** Starts a worker as a runner does: in a group of its own, the token on the first line of its input. */
export function startWorker(options: TestWorkerOptions): TestWorker {
  const child = spawn(process.execPath, [import.meta.filename, JSON.stringify(options)], {
    detached: true,
    stdio: 'pipe',
    // As the launcher does.
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
  });
  let stderr = '';
  child.stderr.on('data', (piece) => {
    stderr += piece;
  });
  child.stdin.on('error', () => undefined);
  child.stdin.write(`${token}\n`);
  const exit = once(child, 'close').then(([code, signal]) => ({ code, signal }));
  return { process: child, stderr: () => stderr, exit };
}

/** Lists the processes whose command line or environment names a folder. */
export function processesOf(folder: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((name) => `${name} ${readProc(name, 'cmdline')} ${readProc(name, 'environ')}`)
    .filter((text) => text.includes(folder))
    .map((text) => text.replaceAll('\0', ' ').slice(0, 200));
}

function readProc(id: string, file: string): string {
  try {
    return readFileSync(join('/proc', id, file), 'utf8');
  } catch {
    // The process has ended since it was listed.
    return '';
  }
}

if (import.meta.main) {
  const options = JSON.parse(process.argv[2] ?? '') as TestWorkerOptions;
  process.exitCode = await runWorker({
    config: {
      data: options.folder,
      sandbox: options.sandbox ?? 'auto',
      cgroup: options.cgroup ?? null,
      workerNetwork: options.network ?? null,
      ytdlpPlugins: options.plugins ?? [],
    },
    isPod: options.isPod ?? false,
    gateway: options.gateway,
    egress: address.read(options.egress) ?? { path: '/nowhere' },
    terminationFile: options.terminationFile ?? null,
    programs: { ...programs, python: options.python ?? programs.python },
    media: options.media === 'real' ? { produce, inspectUrl } : scripted,
    log: makeLog({ level: 'debug', write: (line) => process.stderr.write(line), now: Date.now }),
    tokenFile: null,
    input: process.stdin,
    slowSeconds: options.slowSeconds ?? 60,
  });
}
