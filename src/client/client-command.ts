import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { ConfigError } from '../base/config.ts';
import { sentenceOfArguments } from '../base/error-sentence.ts';
import type { Terminal } from '../base/terminal.ts';

/** Exit codes that scripts rely on. */
export const exitCodes = { done: 0, failed: 1, usage: 2, noService: 3, interrupted: 130 } as const;

/** A command line that is wrong. */
export class ClientUsageError extends Error {}

/** Reads the options and words of a command line; throws a usage error for one that is wrong. */
export function readWords<const T extends ParseArgsOptionsConfig>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new ClientUsageError(sentenceOfArguments(error));
  }
}

/** Writes what is wrong with a command line or a setting, and returns the exit code; throws any other error. */
export function reportUsage(error: unknown, usage: string, { err }: Terminal): number {
  if (!(error instanceof ClientUsageError || error instanceof ConfigError)) throw error;
  err(`${error.message}\nUsage: ${usage}\n`);
  return exitCodes.usage;
}
