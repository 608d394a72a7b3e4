import { type ChildProcess, type ChildProcessWithoutNullStreams, type StdioOptions, spawn } from 'node:child_process';
import { StringDecoder } from 'node:string_decoder';
import { killGroup } from '../base/child-process.ts';
import type { ChildEnd, RunningChildProcess, RunOptions } from './tools.ts';

const maxLineLength = 2 ** 20;
const maxOutputBytes = 2 ** 27;
const maxStderrLength = 16_384;
const latePipeMs = 1000;

/** A way to end a child with everything that it started. */
export interface ChildEnding {
  readonly stdio: StdioOptions;
  readonly kill: (child: ChildProcess) => void;
  /** Called when the child was spawned; resolves when nothing that it started runs any more, at the earliest with the child. */
  readonly untilEmpty: (child: ChildProcess) => Promise<void>;
}

/** Ends the process group, which what the child started can leave. */
const groupEnding: ChildEnding = {
  stdio: 'pipe',
  kill: (child) => killGroup(child, 'SIGKILL'),
  untilEmpty: async () => {},
};

/** Starts a child in a process group of its own; too much output ends it. */
export function spawnChild(
  command: string,
  args: readonly string[],
  options: RunOptions,
  ending = groupEnding,
): RunningChildProcess {
  const { folder: cwd, env } = options;
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ending.stdio });
  const { stdin, stdout, stderr: errors } = child as ChildProcessWithoutNullStreams;
  const empty = ending.untilEmpty(child);
  const kill = () => ending.kill(child);
  let excess = false;
  const tooMuch = () => {
    excess = true;
    kill();
  };
  options.signal.addEventListener('abort', kill, { once: true });
  if (options.signal.aborted) kill();
  // EPIPE: the child ended before it read its input; its exit code tells why.
  stdin.on('error', () => undefined);
  stdout.on('data', splitLines(options.onLine ?? (() => undefined), tooMuch));
  let stderr = '';
  errors.on('data', (piece: Buffer) => {
    stderr = (stderr + piece.toString()).slice(-maxStderrLength);
  });
  const ended = new Promise<ChildEnd>((resolve) => {
    const end = (code: number | null, signal: ChildEnd['signal'], text: string) => {
      options.signal.removeEventListener('abort', kill);
      resolve({ code, signal: excess ? 'output' : signal, stderr: text });
    };
    child.once('error', (error) => end(null, null, error.message));
    child.once('exit', () => closeLate(child));
    child.once('close', (code, signal) => void empty.then(() => end(code, signal, stderr)));
  });
  return { id: child.pid, write: (line) => stdin.write(`${line}\n`), ended };
}

/** Kills the rest of the group; closes the pipes a second later, because a process that left the group may hold them. */
function closeLate(child: ChildProcess): void {
  killGroup(child, 'SIGKILL');
  setTimeout(() => {
    child.stdout?.destroy();
    child.stderr?.destroy();
  }, latePipeMs).unref();
}

/** Cuts a stream into lines; calls `tooMuch` when one line or all together are too long. */
function splitLines(line: (text: string) => void, tooMuch: () => void): (piece: Buffer) => void {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  let total = 0;
  return (piece) => {
    total += piece.length;
    const parts = (rest + decoder.write(piece)).split('\n');
    rest = parts.pop() ?? '';
    if (rest.length > maxLineLength || total > maxOutputBytes) tooMuch();
    else for (const text of parts) line(text);
  };
}
