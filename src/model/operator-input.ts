import { parseTime } from './timestamp.ts';

export type ReadInput<T> =
  | { readonly value: T; readonly problem?: undefined }
  | { readonly problem: string; readonly value?: undefined };

interface WholeLimits {
  readonly min?: number;
  readonly max?: number;
  readonly subject?: string;
}

const maxNumber = 1e12;
const maxLength = 100;
const switches: Readonly<Record<string, boolean>> = { yes: true, on: true, no: false, off: false };

export function readSlug(text: unknown): ReadInput<string> {
  if (typeof text === 'string' && /^[a-z0-9][a-z0-9-]{0,62}$/.test(text)) return { value: text };
  return { problem: 'A slug has 1 to 63 characters of a-z, 0-9 and -, and does not begin with -' };
}

export function readPlanName(text: unknown): ReadInput<string> {
  if (typeof text !== 'string' || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(text)) {
    return { problem: 'The name of a plan has 1 to 63 letters, digits, . _ and -, and begins with a letter or digit' };
  }
  return text.toLowerCase() === 'none' ? { problem: 'A plan cannot be called none' } : { value: text };
}

export function readAlias(text: unknown): ReadInput<string> {
  // An address cannot end in these: URL parsers take them, encoded or not, for a step in the path.
  if (text === '.' || text === '..') return { problem: 'An alias cannot be one dot or two dots' };
  return readPrintable(text, 'An alias', 1);
}

export const readCategory = (text: unknown) => readPrintable(text, 'A category', 0);
export const readPackTitle = (text: unknown) => readPrintable(text, 'The title of a pack', 1);
export const readAccountName = (text: unknown) => readPrintable(text, 'The name of an account', 1);

/** A whole number within limits, of digits alone when it is text. */
export function readWhole(
  value: unknown,
  { min = 0, max = maxNumber, subject = 'The number' }: WholeLimits = {},
): ReadInput<number> {
  const top = Math.min(max, maxNumber);
  const text = typeof value === 'number' ? String(value) : value;
  const whole = typeof text === 'string' && /^\d{1,13}$/.test(text) ? Number(text) : Number.NaN;
  if (isBetween(whole, min, top)) return { value: whole };
  return { problem: `${subject} must be a whole number from ${min} to ${top}` };
}

/** A whole number within limits, or `null` for no limit, which a text says as `none`. */
export function readWholeOrNone(value: unknown, limits: WholeLimits = {}): ReadInput<number | null> {
  if (value === null || value === 'none') return { value: null };
  const read = readWhole(value, limits);
  return read.problem === undefined
    ? read
    : { problem: `${read.problem}, or ${typeof value === 'number' ? 'null' : 'none'}` };
}

export function readSwitch(value: unknown, what = 'The switch'): ReadInput<boolean> {
  if (typeof value === 'boolean') return { value };
  const found = typeof value === 'string' && Object.hasOwn(switches, value) ? switches[value] : undefined;
  return found === undefined ? { problem: `${what} must be yes or no (or on, off)` } : { value: found };
}

/** When a pack was purchased, in milliseconds: a date means the beginning of that UTC day. */
export function readPurchasedAt(text: unknown): ReadInput<number> {
  const time = parseTime(text, 'first');
  if (time !== null) return { value: time };
  return { problem: 'The time of a purchase is a date (2026-03-04) or a time with its zone (2026-03-04T12:00:00Z)' };
}

function readPrintable(text: unknown, subject: string, minLength: number): ReadInput<string> {
  const isPrintable = typeof text === 'string' && !/[\p{C}\p{Zl}\p{Zp}]/u.test(text) && text.trim() === text;
  if (isPrintable && isBetween([...text].length, minLength, maxLength)) return { value: text };
  return { problem: `${subject} has ${minLength} to ${maxLength} printable characters and no space at its ends` };
}

function isBetween(number: number, min: number, max: number): boolean {
  return number >= min && number <= max;
}
