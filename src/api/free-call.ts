import { refuse } from '../base/errors.ts';
import { type ParameterTable, type ParameterValues, readParameters } from '../model/parameter-kinds.ts';
import { type Flags, globalParameters } from '../model/request-parameters.ts';
import { authorize, keyLasts } from '../store/access/authorize.ts';
import type { RecordStore } from '../store/script.ts';
import type { KeyedCall } from './api-call.ts';
import { requireAllowed } from './reply.ts';

/** Has the record check key and rate of a call, and its permission unless it may be a repeat, which its admission answers first (D10). */
export async function enterFree(store: RecordStore, call: KeyedCall, mayRepeat = false) {
  return requireAllowed(call, await authorize(store, call.key, mayRepeat));
}

/** Refuses a call that has waited and whose key was deactivated or has expired meanwhile. */
export async function enterAgain(store: RecordStore, call: KeyedCall): Promise<void> {
  if (!(await keyLasts(store, call.key))) await enterFree(store, call);
}

/** Returns the global parameters; refuses the call for its syntax or for one of them. */
export function requireFlags({ fault, given }: KeyedCall): Flags {
  if (fault !== null) throw refuse('bad_request', fault);
  return requireParameters(globalParameters, given);
}

/** Returns the values of a table's parameters; throws the sentence about the first wrong one. */
export function requireParameters<P extends ParameterTable>(table: P, given: KeyedCall['given']): ParameterValues<P> {
  return requireParsed(readParameters(table, given)).value;
}

/** Writes where the next page begins. */
export function writeCursor(first: string | number, second: string): string {
  return Buffer.from(`${first} ${second}`).toString('base64url');
}

/** Returns the two words of a cursor of this form; refuses any other. */
export function requireCursor(text: string, form: RegExp): readonly [string, string] {
  const [, first, second] = form.exec(Buffer.from(text, 'base64url').toString()) ?? [];
  if (first !== undefined && second !== undefined) return [first, second];
  throw refuse('bad_request', 'Bad Request: cursor must be the next_cursor of an earlier answer');
}

/** Returns parameters that could be read; throws the sentence about the first one that could not. */
export function requireParsed<T extends { readonly ok: true }>(
  parsed: T | { readonly ok: false; readonly sentence: string },
): T {
  if (!parsed.ok) throw refuse('bad_request', parsed.sentence);
  return parsed;
}
