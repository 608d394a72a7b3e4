import { readExpiry } from '../model/api-key.ts';
import { uuidForm } from '../model/job.ts';
import { type ReadInput, readSlug, readSwitch, readWhole, readWholeOrNone } from '../model/operator-input.ts';
import { networkOf, readAddress } from '../model/public-address.ts';
import type { Operand, ParseValue } from './command.ts';

/** Accounts that a command reads at the same time. */
export const readsAtOnce = 50;

export const slug = { read: readSlug, text: 'Slug of the account.' } as const satisfies Operand;

export function wholeNumber(min: number, max?: number): ParseValue<number> {
  return (text, subject) => readWhole(text, { min, subject, ...(max === undefined ? {} : { max }) });
}

/** `none` is read as `null`. */
export function wholeNumberOrNone(min: number): ParseValue<number | null> {
  return (text, subject) => readWholeOrNone(text, { min, subject });
}

export const flag: ParseValue<true> = () => ({ value: true });

export const jobId: ParseValue<string> = (text, subject) => {
  const isId = uuidForm.test(text.toLowerCase());
  return isId ? { value: text.toLowerCase() } : { problem: `${subject} must be the id of a job` };
};

/** Also takes `on` and `off`. */
export const yesOrNo: ParseValue<boolean> = readSwitch;

export function oneOf<const T extends string>(...words: readonly T[]): ParseValue<T> {
  return (text, subject) => {
    const value = words.find((word) => word === text);
    return value === undefined ? { problem: `${subject} must be ${words.join(' or ')}` } : { value };
  };
}

export function orNull<T>(word: string, judge: ParseValue<T>): ParseValue<T | null> {
  return (text, subject): ReadInput<T | null> => {
    if (text === word) return { value: null };
    const read = judge(text, subject);
    return read.problem === undefined ? read : { problem: `${read.problem}, or ${word}` };
  };
}

/** The last moment at which something works. */
export const expiryTime: ParseValue<number> = (text, subject) => {
  const value = readExpiry(text);
  return value === null
    ? { problem: `${subject} must be a date (2026-03-04) or a time with its zone (2026-03-04T12:00:00Z)` }
    : { value };
};

/** An address, or the /64 of an IPv6 address, as it is blocked. */
export const blockedAddress: ParseValue<string> = (text, subject) => {
  const address = readAddress(text.replace(/(?<=:.*)\/64$/, ''));
  return address === null
    ? { problem: `${subject} must be an IP address as block list shows it` }
    : { value: networkOf(address) };
};

export const oneLine: ParseValue<string> = (text, subject) => {
  const allowed = text.length <= 200 && !/\p{C}/u.test(text);
  return allowed ? { value: text } : { problem: `${subject} must be one line of at most 200 characters` };
};

/** Refuses an empty line, such as a variable that a script never set: an empty id would be none. */
export const someLine: ParseValue<string> = (text, subject) =>
  text.trim() === '' ? { problem: `${subject} must be one line of 1 to 200 characters` } : oneLine(text, subject);
