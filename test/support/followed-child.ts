import type { ChildProcessByStdio } from 'node:child_process';
import type { Readable } from 'node:stream';

/** A child process, what it says and how it ends. */
export interface FollowedChild {
  readonly process: ChildProcessByStdio<null, Readable, Readable>;
  /** Its output on both streams. */
  output(): string;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
}

export function followChild(process: FollowedChild['process']): FollowedChild {
  let said = '';
  for (const stream of [process.stdout, process.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
  }
  const ended = new Promise<number | string>((resolve) => {
    process.once('close', (code, signal) => resolve(code ?? signal ?? ''));
  });
  return { process, output: () => said, ended };
}
