import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { ConfigError } from '../base/config.ts';
import { sentenceOfArguments } from '../base/error-sentence.ts';
import { messageOf, Refusal } from '../base/errors.ts';
import type { Terminal } from '../base/terminal.ts';
import { isRefusedByRedis, sentenceForOperator } from '../store/redis/explain-failure.ts';
import { UsageError } from './command.ts';

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

/** Parses the options of a command that takes nothing else. An error never quotes a word without a name: it may be a key. */
export function parseOptions<const T extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: T,
  usage: string,
) {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    if (positionals.length > 0) throw new Error('There is a word too many');
    return values;
  } catch (error) {
    throw new UsageError(sentenceOfArguments(error), usage);
  }
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
