import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { addAbortListener, once } from 'node:events';
import { killGroup } from '../base/child-process.ts';
import type { ChildEnding } from '../media/spawn-child.ts';
import type { ChildEnd, RunningChildProcess, RunOptions } from '../media/tools.ts';
import { type Frame, makeFrameReader, makeLineReader } from './inspector-output.ts';

/** Confinement of each request's child, as `inspector-parent.py` reads it. */
interface Confinement {
  /** Paths that the child may read. */
  readonly paths: readonly string[];
  /** Seccomp filter besides that of the parent, in hexadecimal; empty for none. */
  readonly filter: string;
  readonly limits: Record<'file_bytes' | 'memory_bytes' | 'cpu_seconds' | 'processes', number>;
}

/** A process with yt-dlp loaded, which forks one child for each request. */
export interface InspectorParent {
  /** Runs the driver in a child. Calls `onStart` with the process id that the parent sees. */
  readonly start: (own: OwnOfChild, options: RunOptions, onStart: (idInside: number) => void) => RunningChildProcess;
  readonly id: number;
  readonly counts: () => { readonly started: number; readonly open: number };
  /** Resolves when the parent and all its children have ended. */
  readonly ended: Promise<void>;
  readonly end: () => void;
}

interface OwnOfChild {
  /** User id; 0 keeps the parent's. */
  readonly user: number;
  /** The only port that the child can reach. */
  readonly port: number;
}

interface OpenRequest {
  readonly onStart: (idInside: number) => void;
  readonly hear: (bytes: Buffer) => void;
  readonly resolve: (ended: ChildEnd) => void;
}

const signalNames = { 9: 'SIGKILL', 24: 'SIGXCPU', 25: 'SIGXFSZ' } as const;
const maxStderrLength = 2000;
/** A child ends within milliseconds; its supervisor takes up to 3 s for what it left, see MAX_END_SECONDS in supervisor.py. */
const endMs = 5000;

/** Starts a parent and waits until yt-dlp is loaded; rejects when the parent ends before that. `stop` ends it at any time. */
export async function startInspectorParent(
  [program = '', ...args]: readonly string[],
  home: Pick<RunOptions, 'folder' | 'env'>,
  confinement: Confinement,
  ending: ChildEnding,
  stop: AbortSignal,
): Promise<InspectorParent> {
  const options = { cwd: home.folder, env: home.env, detached: true, stdio: ending.stdio };
  const parent = spawn(program, args, options) as ChildProcessWithoutNullStreams;
  const kill = () => ending.kill(parent);
  const stopping = addAbortListener(stop, kill);
  const open = new Map<number, OpenRequest>();
  let stderr = '';
  let startedCount = 0;
  parent.stderr.on('data', (piece: Buffer) => {
    stderr = (stderr + piece.toString()).slice(-maxStderrLength);
  });
  // A parent that has ended reads no orders; its end resolves every open request.
  parent.stdin.on('error', () => undefined);
  const close = (id: number, ended: ChildEnd) => {
    open.get(id)?.resolve(ended);
    open.delete(id);
  };
  const ready = Promise.withResolvers<void>();
  const onFrame = (frame: Frame) => handleFrame(frame, open, close);
  parent.stdout.on('data', makeFrameReader(ready.resolve, onFrame));
  const empty = ending.untilEmpty(parent);
  const ended = waitForEnd(parent).then(async () => {
    stopping[Symbol.dispose]();
    await empty;
    for (const id of [...open.keys()]) close(id, { code: null, signal: 'SIGKILL', stderr });
    ready.reject(new Error(`the inspector ended before it was warm: ${stderr}`));
  });
  await ready.promise;
  const order = (json: object, input = '') => parent.stdin.write(`${JSON.stringify(json)}\n${input}`);
  const start: InspectorParent['start'] = (own, options, onStart) => {
    const id = ++startedCount;
    const { promise, resolve } = Promise.withResolvers<ChildEnd>();
    let late: NodeJS.Timeout | undefined;
    const end = () => {
      if (!open.has(id)) return;
      order({ end: id });
      // A parent that does not obey may be held by a child; it is replaced.
      late ??= setTimeout(kill, endMs);
    };
    open.set(id, { hear: makeLineReader(options.onLine ?? (() => undefined)), onStart, resolve });
    options.signal.addEventListener('abort', end, { once: true });
    const write = (line: string) => {
      const { folder, env } = options;
      order({ id, bytes: Buffer.byteLength(line) + 1, folder, env, ...own, ...confinement }, `${line}\n`);
      if (options.signal.aborted) end();
    };
    const done = promise.finally(() => {
      clearTimeout(late);
      options.signal.removeEventListener('abort', end);
    });
    return { write, ended: done };
  };
  return { id: parent.pid ?? 0, start, counts: () => ({ started: startedCount, open: open.size }), ended, end: kill };
}

function handleFrame(
  frame: Frame,
  open: ReadonlyMap<number, OpenRequest>,
  close: (id: number, ended: ChildEnd) => void,
): void {
  const child = open.get(frame.id);
  if (!child) return;
  if (frame.is === 'pid') {
    child.onStart(frame.pid);
    return;
  }
  if (frame.is === 'end') {
    const { code } = frame;
    const signal = signalNames[-code as keyof typeof signalNames] ?? 'SIGTERM';
    close(frame.id, code < 0 ? { code: null, signal, stderr: '' } : { code, signal: null, stderr: '' });
    return;
  }
  child.hear(frame.bytes);
}

async function waitForEnd(parent: ChildProcessWithoutNullStreams): Promise<void> {
  try {
    await once(parent, 'exit');
  } catch {
    // The parent could not be started, which counts as its end.
  }
  killGroup(parent, 'SIGKILL');
  parent.stdout.destroy();
  parent.stderr.destroy();
}
