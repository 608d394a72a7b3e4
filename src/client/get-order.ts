import { hash } from 'node:crypto';
import { parseWords, UsageError } from '../base/command-line.ts';
import { mediaChoices } from '../model/media-choices.ts';
import { maxDurationSeconds } from '../model/request-limits.ts';
import { defaultParallel, getOptions, maxKeyLength, maxParallel, maxPlaylist } from './get-options.ts';

export interface GetOrder {
  /** URLs in their order; `-` stands for the list on standard input. */
  readonly urls: readonly string[];
  readonly endpoint: 'video' | 'audio';
  /** Parameters of each request beside its query. */
  readonly parameters: Readonly<Record<string, string | number>>;
  readonly output: string | null;
  readonly parallel: number;
  /** Most entries of a playlist, `null` when each URL is one film. */
  readonly playlist: number | null;
  /** Key out of which each request of the command has its own; `null` for a random one. */
  readonly idempotencyKey: string | null;
  readonly json: boolean;
}

/** Reads the command line; throws a usage error for one that is wrong. */
export function readGetOrder(args: readonly string[]): GetOrder | 'help' {
  const { values, positionals } = parseWords(args, getOptions);
  if (values.help) return 'help';
  if (positionals.length === 0) throw new UsageError('A URL is missing');
  const {
    audio = false,
    quality,
    format,
    output = null,
    json = false,
    'idempotency-key': idempotencyKey = null,
  } = values;
  if (output === '') throw new UsageError('--output must name a folder or a file');
  if (idempotencyKey !== null && (idempotencyKey.length > maxKeyLength || !/^[!-~]+$/.test(idempotencyKey)))
    throw new UsageError(`--idempotency-key must be 1 to ${maxKeyLength} visible ASCII characters`);
  const endpoint = audio ? 'audio' : 'video';
  return {
    urls: positionals,
    endpoint,
    parameters: {
      ...readChoice(endpoint, 'quality', quality),
      ...readChoice(endpoint, 'format', format),
      ...readTimes(values),
    },
    output,
    parallel: readCount('--parallel', values.parallel, maxParallel) ?? defaultParallel,
    playlist: readCount('--playlist', values.playlist, maxPlaylist),
    idempotencyKey,
    json,
  };
}

/** Returns the URLs of a list: a line each, without blank lines and comments. */
export function readUrlList(list: string): string[] {
  const lines = list.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '' && !line.startsWith('#'));
}

function readChoice(
  endpoint: GetOrder['endpoint'],
  option: 'quality' | 'format',
  given: string | undefined,
): Record<string, string> {
  if (given === undefined) return {};
  const allowed: readonly string[] = mediaChoices[endpoint][option];
  if (!allowed.includes(given)) throw new UsageError(`--${option} must be one of ${allowed.join(', ')}`);
  return { [`${endpoint}_${option}`]: given };
}

function readTimes(values: Readonly<Record<string, unknown>>): Record<string, number> {
  const maxDuration = readSeconds('--max-duration', values['max-duration']);
  if (maxDuration === 0) throw new UsageError('--max-duration must be above 0');
  const start = readSeconds('--start', values.start);
  const end = readSeconds('--end', values.end);
  if (maxDuration !== null && (start !== null || end !== null))
    throw new UsageError('--max-duration cannot stand beside --start and --end');
  if (end !== null && end <= (start ?? 0)) throw new UsageError('--end must be later than --start');
  return {
    ...(maxDuration !== null && { max_duration: maxDuration }),
    ...(start !== null && { start }),
    ...(end !== null && { end }),
  };
}

function readSeconds(name: string, given: unknown): number | null {
  if (given === undefined) return null;
  if (typeof given !== 'string' || !/^\d{1,9}(\.\d{1,3})?$/.test(given))
    throw new UsageError(`${name} must be a number of seconds`);
  if (Number(given) > maxDurationSeconds) throw new UsageError(`${name} must be at most ${maxDurationSeconds}`);
  return Number(given);
}

function readCount(name: string, given: string | undefined, max: number): number | null {
  if (given === undefined) return null;
  const count = /^\d{1,6}$/.test(given) ? Number(given) : 0;
  if (count < 1 || count > max) throw new UsageError(`${name} must be a whole number from 1 to ${max}`);
  return count;
}

/**
 * Returns a function that gives each request of a command its Idempotency-Key. The same command with the same key asks for the same
 * jobs, in whichever order its URLs stand; a URL that stands twice has two.
 */
export function requestKeys(
  commandKey: string,
  { endpoint, parameters, playlist }: Pick<GetOrder, 'endpoint' | 'parameters' | 'playlist'>,
): (query: string) => string {
  const timesAsked = new Map<string, number>();
  return (query) => {
    const times = (timesAsked.get(query) ?? 0) + 1;
    timesAsked.set(query, times);
    const request = JSON.stringify([endpoint, parameters, playlist, query, times]);
    return `${commandKey}-${hash('sha256', request).slice(0, 16)}`;
  };
}
