import { ConfigError } from './config.ts';
import { Refusal } from './errors.ts';

/** Codes whose messages are sentences already. */
const saidInFull = /^(?:EACCES|EADDRNOTAVAIL|ENOSPC|EROFS|ERR_PARSE_ARGS_.*)$/;

/** Returns the sentence for the person who started a program that failed; an unexpected error keeps its stack. */
export function sentenceOf(error: unknown): string {
  if (error instanceof Refusal || error instanceof ConfigError) return error.message;
  if (!(error instanceof Error)) return String(error);
  const { code, port = -1, address } = error as NodeJS.ErrnoException & { port?: number; address?: string };
  if (code === 'EADDRINUSE') return `The ${port < 0 ? `path ${address}` : `port ${port}`} is taken by another program`;
  const isSaid = code === undefined ? error.constructor === Error : saidInFull.test(code);
  return isSaid ? error.message : (error.stack ?? error.message);
}
