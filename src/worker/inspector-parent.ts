import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { killGroup } from '../base/child-process.ts';
import type { ChildEnd, RunningChildProcess, RunOptions } from '../media/tools.ts';

/** Confinement of each request's child, as `inspector-parent.py` reads it. */
export interface Confinement {
  /** The only port that the child can reach, and the paths that it may read. */
  readonly port: number;
  readonly paths: readonly string[];
  readonly limits: Record<'file_bytes' | 'memory_bytes' | 'cpu_seconds' | 'processes', number>;
}

/** A process with yt-dlp loaded, which forks one child for each request. */
export interface InspectorParent {
  /** Runs the driver in a child with this user id; 0 keeps the parent's. */
  readonly start: (user: number, options: RunOptions) => RunningChildProcess;
  readonly counts: () => { readonly started: number; readonly open: number };
  /** Resolves when the parent and all its children have ended. */
  readonly ended: Promise<void>;
  readonly end: () => void;
}

interface OpenRequest {
  readonly onLine: (line: string) => void;
  readonly resolve: (ended: ChildEnd) => void;
  rest: string;
}

const signalNames = { 9: 'SIGKILL', 24: 'SIGXCPU', 25: 'SIGXFSZ' } as const;
const maxStderrLength = 2000;

/** Starts a parent and waits until yt-dlp is loaded; rejects when the parent ends before that. */
export async function startInspectorParent(
  [program = '', ...args]: readonly string[],
  home: Pick<RunOptions, 'folder' | 'env'>,
  confinement: Confinement,
): Promise<InspectorParent> {
  const parent = spawn(program, args, { cwd: home.folder, env: home.env, detached: true, stdio: 'pipe' });
  const open = new Map<number, OpenRequest>();
  let stderr = '';
  let started = 0;
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
  parent.stdout.on(
    'data',
    makeFrameReader(ready.resolve, (frame) => handleFrame(frame, open, close)),
  );
  const ended = waitForEnd(parent).then(() => {
    for (const id of [...open.keys()]) close(id, { code: null, signal: 'SIGKILL', stderr });
    ready.reject(new Error(`the inspector ended before it was warm: ${stderr}`));
  });
  await ready.promise;
  const order = (json: object) => parent.stdin.write(`${JSON.stringify(json)}\n`);
  const start: InspectorParent['start'] = (user, options) => {
    const id = ++started;
    const { promise, resolve } = Promise.withResolvers<ChildEnd>();
    const kill = () => order({ end: id });
    open.set(id, { onLine: options.onLine ?? (() => undefined), resolve, rest: '' });
    options.signal.addEventListener('abort', kill, { once: true });
    const { folder, env } = options;
    const write = (line: string) => {
      order({ id, input: `${line}\n`, folder, user, env, ...confinement });
      if (options.signal.aborted) kill();
    };
    const done = promise.finally(() => options.signal.removeEventListener('abort', kill));
    return { write, close: () => undefined, ended: done };
  };
  return { start, counts: () => ({ started, open: open.size }), ended, end: () => killGroup(parent, 'SIGKILL') };
}

function handleFrame(
  frame: Frame,
  open: ReadonlyMap<number, OpenRequest>,
  close: (id: number, ended: ChildEnd) => void,
): void {
  const child = open.get(frame.id);
  if (!child) return;
  if (frame.is === 'end') {
    const { code } = frame;
    const signal = signalNames[-code as keyof typeof signalNames] ?? 'SIGTERM';
    close(frame.id, code < 0 ? { code: null, signal, stderr: '' } : { code, signal: null, stderr: '' });
    return;
  }
  const lines = (child.rest + frame.bytes.toString()).split('\n');
  child.rest = lines.pop() ?? '';
  for (const line of lines) child.onLine(line);
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

/** Message of the inspector parent about one of its children: a piece of output, or the exit code. */
export type Frame =
  | { readonly is: 'out'; readonly id: number; readonly bytes: Buffer }
  | { readonly is: 'end'; readonly id: number; readonly code: number };

/** Returns a parser of the parent's output: the line `ready`, then frames, cut anywhere. It throws on anything else. */
export function makeFrameReader(ready: () => void, told: (frame: Frame) => void): (piece: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  const readOne = (): boolean => {
    const end = rest.indexOf('\n');
    if (end < 0) return false;
    const head = rest.toString('latin1', 0, end);
    if (head === 'ready') {
      rest = rest.subarray(end + 1);
      ready();
      return true;
    }
    const [, id, is, number] = /^(\d+) (out|end) (-?\d+)$/.exec(head) ?? [];
    if (is === undefined) throw new Error('the inspector says what is no frame');
    const size = is === 'out' ? Number(number) : 0;
    if (rest.length < end + 1 + size) return false;
    const bytes = rest.subarray(end + 1, end + 1 + size);
    rest = rest.subarray(end + 1 + size);
    told(is === 'out' ? { is, id: Number(id), bytes } : { is: 'end', id: Number(id), code: Number(number) });
    return true;
  };
  return (piece) => {
    rest = Buffer.concat([rest, piece]);
    while (readOne()) {
      // Each turn takes one frame off the rest.
    }
  };
}
