import { createHash } from 'node:crypto';
import { refuse } from '../base/errors.ts';
import { channels, keys } from './keys.ts';
import type { Connection } from './redis/connection.ts';

/** A Lua script, which Redis runs as one atomic step; its keys and arguments have names. */
export interface Script<K extends string, A extends string> {
  readonly name: string;
  readonly keys: readonly K[];
  readonly args: readonly A[];
  readonly lua: string;
  readonly sha: string;
}

export interface RecordStore {
  readonly connection: Connection;
  /** `offset`: milliseconds that a rehearsal has moved the clock on. */
  readonly clock: { now(): number; offset(): number };
  /** Called with the duration of each script. */
  readonly observe?: (script: string, seconds: number) => void;
}

/** `always`: runs also when Redis has reached its memory limit, because it ends, releases or frees something. */
type Memory = 'needs memory' | 'always';

const locals = (names: readonly string[], from: string): string =>
  names.length === 0 ? '' : `local ${names.join(', ')} = ${names.map((_, n) => `${from}[${n + 1}]`).join(', ')}\n`;

/**
 * Declares a script. Its Lua sees every key and argument by name, `clock` (TIME of Redis), and `now`: that time in
 * milliseconds plus the rehearsal's offset, so that replicas cannot disagree. Rules: validate first, write last; answer
 * {word, values …}; a script that refuses has written nothing. A Lua function takes at most 60 outer locals, a script 200.
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

/** Keys and channels that a script names; `run` makes them from the ids among its values. */
const known = {
  ...keys,
  workChannel: channels.work,
  webhooksChannel: channels.webhooks,
  jobChannel: channels.job,
  blocksChannel: channels.blocks,
};

/** Name of the value that a key or an argument needs: the id that its key is made of, or its own name. */
type ValueName<N extends string> = N extends keyof typeof known
  ? (typeof known)[N] extends { readonly idName: infer Id extends string }
    ? Id
    : never
  : N;

function resolveName(name: string, values: Readonly<Record<string, string | number>>): string {
  const made = known[name as Exclude<keyof typeof known, 'repeat'>];
  if (made === undefined) return String(values[name]);
  return typeof made === 'string' ? made : made(String(values[made.idName]));
}

/** A word, then values. */
export type ScriptReply = readonly unknown[];

/**
 * Result of a change of state: `{ done: true }` with what it gives, or the script's word for why it changed nothing.
 * Operators' changes throw a `Refusal` instead.
 * A claim gives what it took, or `null`; a step that is refused for one reason alone returns a boolean; the end of a purchase or
 * a delivery returns the state that follows.
 */
export type Change<Word extends string, Given extends object = object> =
  | ({ readonly done: true; readonly refused?: undefined } & Given)
  | { readonly done?: undefined; readonly refused: Word };

/** Reads the reply of a change; `words` say that it is done. */
export function changeOf<Word extends string, Given extends object = object>(
  reply: ScriptReply,
  words: string | readonly string[],
  given?: Given,
): Change<Word, Given> {
  const word = text(reply[0]);
  if ([words].flat().includes(word)) return { done: true, ...(given as Given) };
  return { refused: word as Word };
}

/**
 * Runs a script. `values` has its arguments, the ids of its keys, and keys that `keys` does not name. `more` stands in ARGV behind the arguments with names, for scripts that take a list. Returns the reply, a
 * list whose first element is a word; throws `unavailable` when Redis does not answer or is out of memory.
 */
export async function run<K extends string, A extends string>(
  store: RecordStore,
  script: Script<K, A>,
  values: Readonly<Record<ValueName<NoInfer<K | A>>, string | number>>,
  more: readonly string[] = [],
): Promise<ScriptReply> {
  const began = performance.now();
  try {
    const reply = await store.connection.eval(
      script.lua,
      script.sha,
      script.keys.map((name) => resolveName(name, values)),
      [String(store.clock.offset()), ...script.args.map((name) => resolveName(name, values)), ...more],
    );
    if (!Array.isArray(reply)) throw new Error(`the script ${script.name} answered ${typeof reply}, not a list`);
    return reply;
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('OOM')) throw refuse('unavailable');
    throw error;
  } finally {
    store.observe?.(script.name, (performance.now() - began) / 1000);
  }
}

/** Returns up to 100 members of a sorted set whose score is at most `until`, lowest first; `(` before it excludes it. */
export async function readDue(store: RecordStore, key: string, until: number | string): Promise<string[]> {
  const range = ['-inf', String(until), 'LIMIT', '0', '100'];
  return (await store.connection.read(['ZRANGEBYSCORE', key, ...range])) as string[];
}

/** Returns an element of a reply as text; '' where the script answered nothing. */
export function text(value: unknown): string {
  return value === null || value === undefined ? '' : String(value);
}

/** Returns an element of a reply as a number; `null` where the script answered nothing. */
export function number(value: unknown): number | null {
  const written = text(value);
  return written === '' ? null : Number(written);
}

/** Returns the fields of a hash from Redis's flat list of names and values. */
export function pairs(value: unknown): Record<string, string> {
  const seen: Record<string, string> = {};
  if (!Array.isArray(value)) return seen;
  for (let n = 0; n + 1 < value.length; n += 2) seen[String(value[n])] = String(value[n + 1]);
  return seen;
}
