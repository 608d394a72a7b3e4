import { UsageError } from '../base/command-line.ts';
import { ConfigError } from '../base/config.ts';
import type { Terminal } from '../base/terminal.ts';

/** Exit codes that scripts rely on. */
export const exitCodes = { done: 0, failed: 1, usage: 2, noService: 3, interrupted: 130 } as const;

/** Writes what is wrong with a command line or a setting, and returns the exit code; throws any other error. */
export function reportUsage(error: unknown, usage: string, { err }: Terminal): number {
  if (!(error instanceof UsageError || error instanceof ConfigError)) throw error;
  err(`${error.message}\nUsage: ${usage}\n`);
  return exitCodes.usage;
}
