import type { Config } from '../base/config.ts';
import type { Seal } from '../base/seal.ts';
import type { ReadInput } from '../model/operator-input.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import type { ReadArchivedPart } from '../store/log/archived-parts.ts';
import type { RecordStore } from '../store/script.ts';

/** Parses a text; the sentence of a problem begins with `subject`. */
export type ParseValue<T> = (text: string, subject: string) => ReadInput<T>;

export interface Operand {
  readonly read: ParseValue<unknown>;
  readonly text: string;
  readonly optional?: true;
}

/** A named option with a value, or a flag. */
interface Option {
  /** Name of the value in the usage line; a flag has none. */
  readonly value?: string;
  readonly read: ParseValue<unknown>;
  readonly text: string;
  readonly required?: true;
}

/** Result of a command: one JSON value, and the same as text for people. */
export interface CommandResult {
  readonly value: unknown;
  readonly text: string;
  /** The command ran and found problems: exit code 1. */
  readonly failed?: boolean;
}

export interface CommandTools {
  readonly store: RecordStore;
  readonly config: Pick<
    Config,
    'publicUrl' | 'dashboardUrl' | 'fileHours' | 'stripeKey' | 'redisUrl' | 'data' | 'cookies'
  >;
  /** Reads archived entries from the object store. */
  readonly readArchivedPart: ReadArchivedPart;
  /** Opens the object store of finished files. */
  readonly objects: () => Promise<ObjectStore>;
  /** Returns the seal of TRAWL_SECRET; throws `unavailable` when no secret is found. */
  readonly seal: () => Promise<Seal>;
  /** Shows the progress of a long command on a terminal. */
  readonly progress: (sentence: string) => void;
}

export interface AdminCommand extends CommandRow {
  /** The words that choose it. */
  readonly name: string;
  readonly group: string;
  /** '' for a group that is one command. */
  readonly verb: string;
}

export interface CommandRow {
  readonly text: string;
  /** Shape of its JSON value, for help and documents. */
  readonly json: string;
  /** The command wants the record while no process uses it; the redis-server of `trawl up` is started for it. */
  readonly whileStopped?: true;
  readonly operands: Readonly<Record<string, Operand>>;
  readonly options: Readonly<Record<string, Option>>;
  readonly run: (given: never, tools: CommandTools) => Promise<CommandResult>;
}

type ParsedValue<R> = R extends { readonly read: ParseValue<infer T> } ? T : never;
type Operands<P> = {
  readonly [N in keyof P]: ParsedValue<P[N]> | (P[N] extends { optional: true } ? undefined : never);
};
type Options<O> = {
  readonly [N in keyof O]: ParsedValue<O[N]> | (O[N] extends { required: true } ? never : undefined);
};

/** Declares a command; `run` gets its operands and options with the types that they are parsed to. */
export function command<
  const P extends Readonly<Record<string, Operand>> = Record<never, never>,
  const O extends Readonly<Record<string, Option>> = Record<never, never>,
>(
  row: Omit<CommandRow, 'operands' | 'options' | 'run'> & {
    readonly operands?: P;
    readonly options?: O;
    readonly run: (given: Operands<P> & Options<O>, tools: CommandTools) => Promise<CommandResult>;
  },
): CommandRow {
  return { operands: {}, options: {}, ...row };
}

type OptionName<Field> = Field extends `${infer First}_${infer Rest}` ? `${First}-${OptionName<Rest>}` : Field;
type OptionField<Option> = Option extends `${infer First}-${infer Rest}` ? `${First}_${OptionField<Rest>}` : Option;

/** One option for each field of a change in the record: `max-open` for `max_open`. */
export type OptionsFor<Change> = {
  readonly [F in keyof Change as OptionName<F & string>]-?: Option & { readonly read: ParseValue<Change[F]> };
};

/** Returns the options that were given by the names of their fields. */
export function fieldsGiven<G extends object>(given: G): { [N in keyof G as OptionField<N & string>]: G[N] } {
  const named = Object.entries(given).map(([name, value]) => [name.replaceAll('-', '_'), value]);
  return Object.fromEntries(named);
}
