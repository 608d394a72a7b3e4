import { refuse } from '../base/errors.ts';
import type { ReadInput } from '../model/operator-input.ts';

/** Members of a JSON body, or of an object in it. */
export type GivenMembers = Readonly<Record<string, unknown>>;

/** Returns a text of the JSON body; refuses anything else. */
export function requireText(given: GivenMembers, name: string, maxLength: number): string {
  const value = Object.hasOwn(given, name) ? given[name] : undefined;
  if (typeof value === 'string' && value !== '' && value.length <= maxLength) return value;
  throw refuse('bad_request', `Bad Request: ${name} must be a text of 1 to ${maxLength} characters`);
}

/** Returns what a reader makes of a member of the JSON body; refuses it with the reader's sentence. */
export function requireRead<T>(read: ReadInput<T>): T {
  if (read.problem !== undefined) throw refuse('bad_request', `Bad Request: ${read.problem}`);
  return read.value;
}

/** Reads `true` or `false`; the sentence of a problem begins with `subject`. */
export function readBoolean(value: unknown, subject: string): ReadInput<boolean> {
  return typeof value === 'boolean' ? { value } : { problem: `${subject} must be true or false` };
}

/** Refuses a member that the body does not have: a change that was misspelled would be answered like one that was made. */
export function requireKnown(given: GivenMembers, names: readonly string[], subject = 'the body'): void {
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  throw refuse('bad_request', `Bad Request: ${subject} knows ${names.join(', ')}, not ${unknown.slice(0, 50)}`);
}

/** Returns what a reader makes of a member that may be absent. */
export function readGiven<T>(given: GivenMembers, name: string, read: (value: unknown) => ReadInput<T>): T | undefined {
  return Object.hasOwn(given, name) ? requireRead(read(given[name])) : undefined;
}
