import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { FileRow } from '../../src/client/get-file.ts';
import { root } from './tree.ts';
import { inTerminal } from './up.ts';

/** A command of a caller that runs. */
export interface CallerCommand {
  readonly process: ChildProcessWithoutNullStreams;
  readonly out: () => string;
  readonly err: () => string;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
}

/** Starts `./trawl` in a folder, as a caller does, with an environment of its own; on a terminal, `out` is all that it shows. */
export function startCommand(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
  input: string | 'terminal' = '',
): CallerCommand {
  const line = [join(root, 'trawl'), ...args] as const;
  const [command, ...words] = input === 'terminal' ? inTerminal(line) : line;
  const kept = ['PATH', 'TMPDIR', 'XDG_CACHE_HOME', 'NODE_COMPILE_CACHE'];
  const inherited = Object.fromEntries(kept.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
  const child = spawn(command, words, { cwd, env: { ...inherited, HOME: cwd, ...env } });
  if (input !== 'terminal') child.stdin.end(input);
  const said = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => (said.out += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (said.err += text));
  const ended = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal ?? ''));
  });
  return { process: child, out: () => said.out, err: () => said.err, ended };
}

/** Returns the rows that `trawl get --json` has printed. */
export function printedRows({ out }: CallerCommand): FileRow[] {
  return out()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
