import { createHash } from 'node:crypto';
import { refuse } from '../base/errors.ts';
import type { Connection } from './redis/connection.ts';

/** One atomic step: a Lua text whose keys and arguments have names. */
export interface Script<K extends string, A extends string> {
  readonly name: string;
  readonly keys: readonly K[];
  readonly args: readonly A[];
  readonly lua: string;
  readonly sha: string;
}

/** What a step needs to run: a Redis, the clock's offset, and somebody who counts. */
export interface RecordStore {
  readonly connection: Connection;
  readonly clock: { now(): number; offset(): number };
  readonly observe?: (script: string, seconds: number) => void;
}

/** Whether a step may still run when Redis has reached its memory limit: those that end, release or free something do. */
export type Memory = 'needs room' | 'always';

const locals = (names: readonly string[], from: string): string =>
  names.length === 0 ? '' : `local ${names.join(', ')} = ${names.map((_, n) => `${from}[${n + 1}]`).join(', ')}\n`;

/**
 * Declares one atomic step. Its Lua body sees every key and argument by name, and `now`: Redis's own time in
 * milliseconds plus the rehearsal clock's offset, so that replicas cannot disagree.
 */
export function script<const K extends string, const A extends string>(
  name: string,
  memory: Memory,
  keys: readonly K[],
  args: readonly A[],
  body: string,
): Script<K, A> {
  const lua = [
    memory === 'always' ? '#!lua flags=allow-oom\n' : '#!lua\n',
    locals(keys, 'KEYS'),
    locals(['offset', ...args], 'ARGV'),
    `local clock = redis.call('TIME')\n`,
    'local now = clock[1] * 1000 + math.floor(clock[2] / 1000) + tonumber(offset)\n',
    body,
  ].join('');
  return { name, keys, args, lua, sha: createHash('sha1').update(lua).digest('hex') };
}

export type Reply = readonly unknown[];

/**
 * Result of a change of state: done, with what it gives, or the script's word for why it changed nothing. Scripts answer
 * {word, values …}; one that refuses has written nothing. Changes that operators ask for throw a `Refusal` instead.
 */
export type Change<Word extends string, Given extends object = object> =
  | ({ readonly done: true; readonly refused?: undefined } & Given)
  | { readonly done?: undefined; readonly refused: Word };

/** Reads the reply of a change; `words` say that it is done. */
export function changeOf<Word extends string, Given extends object = object>(
  reply: Reply,
  words: string | readonly string[],
  given?: Given,
): Change<Word, Given> {
  const word = text(reply[0]);
  if ([words].flat().includes(word)) return { done: true, ...(given as Given) };
  return { refused: word as Word };
}

/** What a step takes from KEYS and ARGV itself, behind those with names. */
interface Rest {
  readonly keys?: readonly string[];
  readonly args?: readonly string[];
}

/** Runs a step. It answers a list whose first element is a word. Fails with `unavailable` when Redis does not answer. */
export async function run<K extends string, A extends string>(
  store: RecordStore,
  step: Script<K, A>,
  keys: Record<NoInfer<K>, string>,
  args: Record<NoInfer<A>, string | number>,
  rest: Rest = {},
): Promise<Reply> {
  const began = performance.now();
  try {
    const reply = await store.connection.eval(
      step.lua,
      step.sha,
      [...step.keys.map((name) => keys[name]), ...(rest.keys ?? [])],
      [String(store.clock.offset()), ...step.args.map((name) => String(args[name])), ...(rest.args ?? [])],
    );
    if (!Array.isArray(reply)) throw new Error(`the script ${step.name} answered ${typeof reply}, not a list`);
    return reply;
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('OOM')) throw refuse('unavailable');
    throw error;
  } finally {
    store.observe?.(step.name, (performance.now() - began) / 1000);
  }
}

/** Element of a reply as text; '' where the script answered nothing. */
export function text(value: unknown): string {
  return value === null || value === undefined ? '' : String(value);
}

/** Element of a reply as a number; `null` where the script answered nothing. */
export function number(value: unknown): number | null {
  const written = text(value);
  return written === '' ? null : Number(written);
}

/** A flat list of names and values, as Redis answers for a hash. */
export function pairs(value: unknown): Record<string, string> {
  const seen: Record<string, string> = {};
  if (!Array.isArray(value)) return seen;
  for (let n = 0; n + 1 < value.length; n += 2) seen[String(value[n])] = String(value[n + 1]);
  return seen;
}
