import { isIP } from 'node:net';
import { readExpiry } from '../model/api-key.ts';
import { type ReadInput, readSlug, readSwitch, readWhole, readWholeOrNone } from '../model/operator-input.ts';
import type { Operand, ParseValue } from './command.ts';

/** The account that a command is about. */
export const slug = { read: readSlug, text: 'Slug of the account.' } as const satisfies Operand;

/** A whole number within limits. */
export function wholeNumber(min: number, max?: number): ParseValue<number> {
  return (text, subject) => readWhole(text, { min, subject, ...(max === undefined ? {} : { max }) });
}

/** A whole number within limits, or `none` for no limit. */
export function wholeNumberOrNone(min: number): ParseValue<number | null> {
  return (text, subject) => readWholeOrNone(text, { min, subject });
}

/** A name that stands alone: it is there. */
export const flag: ParseValue<true> = () => ({ value: true });

/** The id of a job. */
export const jobId: ParseValue<string> = (text, what) => {
  const isId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
  return isId ? { value: text.toLowerCase() } : { problem: `${what} must be the id of a job` };
};

/** `yes` or `no`, or the same as `on` or `off`. */
export const yesOrNo: ParseValue<boolean> = readSwitch;

/** One of a few words. */
export function oneOf<const T extends string>(...words: readonly T[]): ParseValue<T> {
  return (text, what) => {
    const value = words.find((word) => word === text);
    return value === undefined ? { problem: `${what} must be ${words.join(' or ')}` } : { value };
  };
}

/** One word instead of a value: it is read as `null`. */
export function orNull<T>(word: string, judge: ParseValue<T>): ParseValue<T | null> {
  return (text, what): ReadInput<T | null> => {
    if (text === word) return { value: null };
    const read = judge(text, what);
    return read.problem === undefined ? read : { problem: `${read.problem}, or ${word}` };
  };
}

/** The last moment at which something works. */
export const expiryTime: ParseValue<number> = (text, what) => {
  const value = readExpiry(text);
  return value === null
    ? { problem: `${what} must be a date (2026-03-04) or a time with its zone (2026-03-04T12:00:00Z)` }
    : { value };
};

/** An address as `block list` shows it. */
export const blockedAddress: ParseValue<string> = (text, what) => {
  const [ip = '', prefix] = text.split(/\/(?=\d{1,3}$)/);
  const allowed = isIP(ip) > 0 && (prefix === undefined || Number(prefix) <= 128);
  return allowed ? { value: text } : { problem: `${what} must be an IP address as block list shows it` };
};

/** One line for people. */
export const oneLine: ParseValue<string> = (text, what) => {
  const allowed = text.length <= 200 && !/\p{C}/u.test(text);
  return allowed ? { value: text } : { problem: `${what} must be one line of at most 200 characters` };
};
