import { ConfigError } from '../base/config.ts';
import { Refusal } from '../base/errors.ts';
import { UsageError } from './command.ts';

/** Where a command was typed and is answered. */
export interface Terminal {
  /** Writes what was asked for. */
  readonly out: (text: string) => void;
  /** Writes what a person must know besides. */
  readonly err: (text: string) => void;
  /** Whether a person reads what `err` writes while it is written. */
  readonly isWatched: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** One line that is written over again, only where a person watches. */
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

/** Says why a command was not carried out, and gives the exit code. */
export function reportError(error: unknown, json: boolean, { out, err }: Terminal): number {
  const { sentence, code } = describe(error);
  if (json) out(`${JSON.stringify({ error: sentence, code })}\n`);
  if (error instanceof UsageError) err(`${sentence}\n${error.usage ? `Usage: ${error.usage}\n` : ''}`);
  else if (!json) err(`${sentence}\n`);
  // What nobody expected needs its place in the code, for whoever mends it.
  if (code === 'internal_error') err(`${error instanceof Error ? error.stack : error}\n`);
  return code === 'usage' ? 2 : 1;
}

function describe(error: unknown): { sentence: string; code: string } {
  if (error instanceof UsageError) return { sentence: error.message, code: 'usage' };
  if (error instanceof Refusal) return { sentence: error.message, code: error.code };
  if (error instanceof ConfigError) return { sentence: error.message, code: 'config' };
  return { sentence: error instanceof Error ? error.message : String(error), code: 'internal_error' };
}
