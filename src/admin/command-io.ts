import type { ParseArgsOptionsConfig } from 'node:util';
import { parseOptions, UsageError } from '../base/command-line.ts';
import { ConfigError } from '../base/config.ts';
import { messageOf, Refusal } from '../base/errors.ts';
import type { Terminal } from '../base/terminal.ts';
import type { ReadInput } from '../model/operator-input.ts';
import { isRefusedByRedis, sentenceForOperator } from '../store/redis/explain-failure.ts';

/** A progress line that overwrites itself; shown on terminals only. */
export function showProgress({ err, isWatched }: Terminal): { show: (sentence: string) => void; clear: () => void } {
  let shown = false;
  return {
    show: (sentence) => {
      if (!isWatched) return;
      shown = true;
      err(`\r\x1b[K${sentence}`);
    },
    clear: () => {
      if (shown) err('\r\x1b[K');
    },
  };
}

interface ProgramTexts<T> {
  readonly usage: string;
  readonly help: string;
  readonly options: T;
}

const helpOption = { help: { type: 'boolean', short: 'h' } } as const;

/** Makes a program with options and nothing else; `work` returns the exit code, and what it throws is told. */
export function makeProgram<const T extends ParseArgsOptionsConfig>(
  { usage, help, options }: ProgramTexts<T>,
  work: (given: ReturnType<typeof parseOptions<T & typeof helpOption>>, terminal: Terminal) => Promise<number>,
): (args: readonly string[], terminal: Terminal) => Promise<number> {
  return async (args, terminal) => {
    try {
      const given = parseOptions(args, { ...options, ...helpOption });
      if (!('help' in given)) return await work(given, terminal);
      terminal.out(help);
      return 0;
    } catch (error) {
      return reportError(withUsage(error, usage), 'json' in options && args.includes('--json'), terminal);
    }
  };
}

/** Returns the error of a wrong command line with the usage line of its command; any other as it is. */
export function withUsage(error: unknown, usage: string): unknown {
  return error instanceof UsageError ? new UsageError(error.message, usage) : error;
}

/** Returns the value that was read; throws what is wrong with it. */
export function allowed<T>(read: ReadInput<T>): T {
  if (read.problem !== undefined) throw new UsageError(read.problem);
  return read.value;
}

/** Writes the reason for which a command failed, and returns the exit code. */
export function reportError(error: unknown, json: boolean, { out, err }: Terminal): number {
  const { sentence, code } = describe(error);
  if (json) out(`${JSON.stringify({ error: sentence, code })}\n`);
  if (error instanceof UsageError) err(`${sentence}\n${error.usage ? `Usage: ${error.usage}\n` : ''}`);
  else if (!json) err(`${sentence}\n`);
  // An unexpected error shows its stack, which a bug report needs.
  if (code === 'internal_error') err(`${error instanceof Error ? error.stack : error}\n`);
  return code === 'usage' ? 2 : 1;
}

function describe(error: unknown): { sentence: string; code: string } {
  if (error instanceof UsageError) return { sentence: error.message, code: 'usage' };
  if (error instanceof Refusal) return { sentence: sentenceForOperator(error), code: error.code };
  if (error instanceof ConfigError) return { sentence: error.message, code: 'config' };
  if (error instanceof Error && isRefusedByRedis(error))
    return { sentence: sentenceForOperator(error), code: 'unavailable' };
  return { sentence: messageOf(error), code: 'internal_error' };
}
