import { ConfigError } from './config.ts';
import { Refusal } from './errors.ts';

/** An error of a server that cannot listen, of a name that cannot be resolved, or of a file, which has a path. */
type SystemError = NodeJS.ErrnoException & { port?: number; address?: string; hostname?: string };

/** Codes whose messages are sentences already. */
const saidInFull = /^(?:EACCES|EADDRNOTAVAIL|ENOSPC|EROFS|ERR_PARSE_ARGS_.*)$/;

/** Returns the sentence for the person who started a program that failed; an unexpected error keeps its stack. */
export function sentenceOf(error: unknown): string {
  if (error instanceof Refusal || error instanceof ConfigError) return error.message;
  if (!(error instanceof Error)) return String(error);
  const { code, port = -1, address, hostname, path } = error as SystemError;
  if (code === 'EADDRINUSE') return `The ${port < 0 ? `path ${address}` : `port ${port}`} is taken by another program`;
  if (hostname !== undefined) return `The host ${hostname} cannot be found`;
  const isSaid = code === undefined ? error.constructor === Error : path !== undefined || saidInFull.test(code);
  return isSaid ? error.message : (error.stack ?? error.message);
}
