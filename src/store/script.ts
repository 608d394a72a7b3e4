import { createHash } from 'node:crypto';
import { LostAnswer, refuse } from '../base/errors.ts';
import { type Actor, additions, type NotedChange, writeNote } from '../model/audit.ts';
import { recordLimits } from '../model/record-limits.ts';
import { channels, keys } from './keys.ts';
import { noteArgNames, noteChange, noteKeyNames, wholeService } from './lua/note-change.ts';
import { wholeScript } from './lua/whole-script.ts';
import type { Connection } from './redis/connection.ts';

/** A Lua script, which Redis runs as one atomic step; its keys and arguments have names. */
interface Script<K extends string, A extends string> {
  readonly name: string;
  /** Return its keys and its arguments, in their order. */
  readonly readKeys: readonly ReadValue<K>[];
  readonly readArgs: readonly ReadValue<A>[];
  readonly lua: string;
  readonly sha: string;
  /** True when its answer waits until a replica has its change, where the record has replicas. */
  readonly isKept: boolean;
}

/** The right of a process to change the record, which it has while it notes its release. */
export interface ReleaseLease {
  /** The layout that the record has, as far as is known here: new entries are written in it. */
  layout(): number;
  /** Sentence for which the record is refused to this release; `null` while it is not. */
  refusal(): string | null;
  /** End of the lease by `performance.now`, in the past while the record is refused. */
  readonly endsAt: number;
  /** Renews the lease; throws when it cannot be. */
  renew(): Promise<void>;
}

export interface RecordStore {
  readonly connection: Connection;
  /** `offset`: milliseconds that a rehearsal has moved the clock on. */
  readonly clock: { now(): number; offset(): number };
  /** Author of the changes that go into the audit log; absent for what the service does by itself. */
  readonly actor?: Actor;
  /** The right of this process to change the record (`release-lease.ts`); absent where a test has the record for itself. */
  readonly release?: ReleaseLease;
  readonly durations?: { observe(labels: { readonly script: string }, seconds: number): void };
  /** Called with the credits that lapsed when an account went into its next billing period. */
  readonly observeLapse?: (credits: number) => void;
  /** Time within which a repeated step must be answered, where the connection's own would be too long. */
  readonly withinMs?: number;
}

/**
 * `always`: runs also when Redis has reached its memory limit, because it ends, releases or frees something, or because operators
 * need it then; it admits no job. `light`: does so too, and its answer waits for no replica, because losing its change costs nothing.
 */
type ScriptKind = 'needs memory' | 'always' | 'light';

type LuaTag<T> = (pieces: TemplateStringsArray, ...values: readonly (string | number)[]) => T;

/** Every script, in the order in which they are declared. */
export const scripts: Script<string, string>[] = [];

/**
 * Declares a script, whose Lua is the template behind the call. The Lua sees every key and argument by name, `clock` (TIME of
 * Redis), and `now`: that time in milliseconds plus the rehearsal's offset, so that replicas cannot disagree. Rules: validate
 * first, write last; answer {word, values …}, or on paths that every job takes the same as one text with spaces between, for
 * which Redis allocates no list; a script that refuses has written nothing. A Lua function takes at most 60 outer locals, a
 * script 200.
 *
 * Redis does not roll back: a script with several writes is repeatable after each of them, or adds a function to `undos`
 * before them. When it fails, these run, the last one first. A script that would begin after its first argument, when its
 * caller has given up, answers {'late', TIME in milliseconds} and does nothing.
 */
export function script<const K extends string, const A extends string>(
  name: string,
  kind: ScriptKind,
  keys: readonly K[],
  args: readonly A[],
): LuaTag<Script<K, A>> {
  return (pieces, ...values) => {
    // Joins the pieces with their escapes read, as a template without a tag does.
    const body = String.raw({ raw: pieces }, ...values);
    const lua = wholeScript(kind === 'needs memory' ? '' : 'allow-oom', keys, args, body);
    const sha = createHash('sha1').update(lua).digest('hex');
    const [readKeys, readArgs] = [keys.map(readerOf), args.map(readerOf)];
    const declared = { name, readKeys, readArgs, lua, sha, isKept: kind !== 'light' };
    scripts.push(declared);
    return declared;
  };
}

/** Keys and channels that a script names; `run` makes them from the ids among its values. */
const known = {
  ...keys,
  workChannel: channels.work,
  webhooksChannel: channels.webhooks,
  jobChannel: channels.job,
  blocksChannel: channels.blocks,
  receiverTestsChannel: channels.receiverTests,
};

/** Name of the value that a key or an argument needs: the id that its key is made of, or its own name. */
type ValueName<N extends string> = N extends keyof typeof known
  ? (typeof known)[N] extends { readonly idName: infer Id extends string }
    ? Id
    : never
  : N;

/** The record has '1' for true, and '' for false and for what is absent. */
type Value = string | number | boolean | Buffer | null | undefined;
/** Values of a call, which hold all that its keys and arguments need. */
type Values<N extends string> = Readonly<Record<ValueName<N>, Value>>;
type ReadValue<N extends string> = (values: Values<N>) => string | Buffer;

/** Returns what reads one key or argument: found once for each script, because every call reads thirty. */
function readerOf<N extends string>(name: N): ReadValue<N> {
  const made = known[name as unknown as Exclude<keyof typeof known, 'repeat'>];
  if (typeof made === 'string') return () => made;
  const source = (made?.idName ?? name) as ValueName<N>;
  return (values) => {
    const value = values[source];
    if (made) return made(String(value));
    if (typeof value === 'boolean') return value ? '1' : '';
    return Buffer.isBuffer(value) ? value : text(value);
  };
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

/** Lists of a run, for scripts that take one, and the form of its reply. */
interface ScriptRunOptions {
  /** Stand in ARGV behind the named arguments. */
  readonly moreArgs?: readonly string[];
  /** Stand in KEYS behind the named keys. */
  readonly moreKeys?: readonly string[];
  /** Strings of the reply are Buffers. */
  readonly asBytes?: boolean;
}

/**
 * Runs a script. `values` has its arguments, the ids of its keys, and keys that `keys` does not name. Returns the reply, a list whose
 * first element is a word. Throws `unavailable` when Redis does not answer or is out of memory.
 */
export async function run<K extends string, A extends string>(
  store: RecordStore,
  script: Script<K, A>,
  values: Values<NoInfer<K | A>>,
  { moreArgs = [], moreKeys = [], asBytes = false }: ScriptRunOptions = {},
): Promise<ScriptReply> {
  const { release } = store;
  if (release !== undefined && performance.now() >= release.endsAt) await release.renew();
  const began = performance.now();
  try {
    const reply = await store.connection.eval(
      script.lua,
      script.sha,
      [...script.readKeys.map((read) => String(read(values))), ...moreKeys],
      [String(store.clock.offset()), ...script.readArgs.map((read) => read(values)), ...moreArgs],
      { isKept: script.isKept, withinMs: store.withinMs, asBytes },
    );
    if (typeof reply === 'string') return reply.split(' ');
    if (!Array.isArray(reply)) throw new Error(`the script ${script.name} answered ${typeof reply}, not a list`);
    return reply;
  } finally {
    store.durations?.observe({ script: script.name }, (performance.now() - began) / 1000);
  }
}

/** Declares a script whose change is noted: its Lua calls `note_change()`. */
export function notedScript<const K extends string, const A extends string>(
  name: string,
  kind: ScriptKind,
  keys: readonly K[],
  args: readonly A[],
): LuaTag<Script<K | NoteName, A | NoteName>> {
  const tag = script(name, kind, [...keys, ...noteKeyNames], [...args, ...noteArgNames]);
  return (pieces, ...values) => tag`${noteChange}${String.raw({ raw: pieces }, ...values)}`;
}

type NoteName = (typeof noteKeyNames)[number] | (typeof noteArgNames)[number];

/** A change, and the account whose audit log it is noted in; '' for that of the service alone. */
type AccountNote = NotedChange & { readonly accountId?: string };

/** Runs a script whose change is noted, as `run` does. Throws `too_many` when the audit log is full. */
export async function runNoted<K extends string, A extends string>(
  store: RecordStore,
  script: Script<K | NoteName, A | NoteName>,
  values: Values<Exclude<NoInfer<K | A>, NoteName>>,
  { accountId = '', ...change }: AccountNote,
  moreKeys: readonly string[] = [],
): Promise<ScriptReply> {
  const { actor } = store;
  // An operator is trusted.
  const isLimited = actor?.via === 'dashboard' && accountId !== '' && additions.includes(change.action);
  const note = {
    auditOfAll: keys.audit(wholeService),
    auditOfOne: keys.audit(accountId === '' ? wholeService : accountId),
    note: actor === undefined ? '' : writeNote(actor, accountId, change),
    maxNotes: isLimited ? recordLimits.auditEntriesOfAccount : '',
  };
  const all = { ...values, ...note } as Values<NoInfer<K | A | NoteName>>;
  const reply = await run(store, script, all, { moreKeys });
  if (reply[0] !== 'audit_full') return reply;
  const most = `An account whose people made ${recordLimits.auditEntriesOfAccount} changes in two days`;
  throw refuse('too_many', `${most} gets no new key, person or passkey: try again tomorrow`);
}

/** A call that is asked for again is given up no later than any other. */
const answeredWithinMs = 1_500;
/** With less time left Redis does not answer rather than that the connection broke: another try would only make the caller wait. */
const minAgainMs = 800;

/**
 * Runs a step that may be repeated. When its answer was lost with the connection, asks once more over the next connection,
 * if that can still be answered in time. `again` is true then.
 */
export async function askAgain<T>(
  store: RecordStore,
  step: (store: RecordStore, again: boolean) => Promise<T>,
): Promise<T> {
  const began = performance.now();
  try {
    return await step(store, false);
  } catch (error) {
    const withinMs = answeredWithinMs - (performance.now() - began);
    if (!(error instanceof LostAnswer) || withinMs < minAgainMs) throw error;
    return step({ ...store, withinMs }, true);
  }
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

/** Returns values as the texts of a hash: `null` is '', a boolean 1 or 0; values that are absent are left out. */
export function hashTexts(values: object): Record<string, string> {
  const present = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    present.map(([name, value]) => [name, text(typeof value === 'boolean' ? Number(value) : value)]),
  );
}

/** Returns the fields of a hash from Redis's flat list of names and values. One may be `__proto__`, as the alias of a key may. */
export function pairs(value: unknown): Record<string, string> {
  if (!Array.isArray(value)) return {};
  const fields: [string, string][] = [];
  for (let n = 0; n + 1 < value.length; n += 2) fields.push([String(value[n]), String(value[n + 1])]);
  return Object.fromEntries(fields);
}
