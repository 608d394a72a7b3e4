import type { Config } from '../base/config.ts';
import type { Seal } from '../base/seal.ts';
import type { ReadInput } from '../model/operator-input.ts';
import type { ReadArchivedPart } from '../store/log/archived-parts.ts';
import type { RecordStore } from '../store/script.ts';

/** Judges a text; `what` is what a sentence calls it. */
export type ParseValue<T> = (text: string, what: string) => ReadInput<T>;

/** A value that stands on the line by its place. */
export interface Operand {
  readonly read: ParseValue<unknown>;
  readonly text: string;
  readonly optional?: true;
}

/** A value that stands behind its name, or a name that stands alone. */
export interface Option {
  /** What a line of use calls the value; a name that stands alone has none. */
  readonly value?: string;
  readonly read: ParseValue<unknown>;
  readonly text: string;
  readonly required?: true;
}

/** What a command gives: one JSON value, and the same for people. */
export interface CommandResult {
  readonly value: unknown;
  readonly text: string;
  /** It was carried out, and what it found is bad. */
  readonly failed?: boolean;
}

/** What commands work with. */
export interface CommandTools {
  readonly store: RecordStore;
  readonly config: Pick<Config, 'publicUrl' | 'fileHours'>;
  /** Opens what was moved from the record to the object store. */
  readonly readArchivedPart: ReadArchivedPart;
  /** Gives the seal of the operator's secret, or refuses when none is found. */
  readonly seal: () => Promise<Seal>;
  /** Shows how far a long command is, to a person who waits. */
  readonly progress: (sentence: string) => void;
}

/** One command of the operator: its words, what it takes, what it does. */
export interface AdminCommand {
  readonly group: string;
  readonly verb: string;
  readonly text: string;
  /** Shape of the JSON value that it gives. */
  readonly json: string;
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

/** Declares a command; what it is given has the types that its operands and options are judged to. */
export function command<
  const P extends Readonly<Record<string, Operand>>,
  const O extends Readonly<Record<string, Option>>,
>(
  row: Omit<AdminCommand, 'operands' | 'options' | 'run'> & {
    readonly operands: P;
    readonly options: O;
    readonly run: (given: Operands<P> & Options<O>, tools: CommandTools) => Promise<CommandResult>;
  },
): AdminCommand {
  return row;
}

/** Gives only what was named on the line. */
export function withoutUndefined<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T;
}

/** A line that no command understands. */
export class UsageError extends Error {
  /** How the command is used. */
  readonly usage: string | undefined;

  constructor(sentence: string, usage?: string) {
    super(sentence);
    this.usage = usage;
  }
}
