import { jobStatuses } from '../model/job.ts';
import { liveStatuses, metadataFields } from '../model/metadata.ts';
import { want } from './conform-check.ts';

/** A rule for one value: its words for a verdict, and its test. */
export interface FieldRule {
  readonly words: string;
  readonly fits: (value: unknown) => boolean;
}

/** The fields that an object must have; it may have more. */
export type ObjectRules = Readonly<Record<string, FieldRule>>;

export const text: FieldRule = { words: 'a text', fits: (value) => typeof value === 'string' };
const yesNo: FieldRule = { words: 'true or false', fits: (value) => typeof value === 'boolean' };
const numeric: FieldRule = { words: 'a number', fits: (value) => typeof value === 'number' };
export const whole: FieldRule = {
  words: 'a whole number from 0 on',
  fits: (value) => Number.isInteger(value) && Number(value) >= 0,
};
export const time: FieldRule = {
  words: 'a time in ISO 8601',
  fits: (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value),
};
const uuid: FieldRule = {
  words: 'a UUID',
  fits: (value) => typeof value === 'string' && /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(value),
};
const url: FieldRule = { words: 'a URL', fits: (value) => typeof value === 'string' && URL.canParse(value) };

export function oneOf(...allowed: readonly unknown[]): FieldRule {
  return { words: `one of ${allowed.join(', ')}`, fits: (value) => allowed.includes(value) };
}

export function orNull(kind: FieldRule): FieldRule {
  return { words: `${kind.words}, or null`, fits: (value) => value === null || kind.fits(value) };
}

const anObject: FieldRule = {
  words: 'an object',
  fits: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
};
const aList: FieldRule = { words: 'a list', fits: Array.isArray };

/** Fails the row unless the value is an object whose fields all follow their rules. */
export function hasShape(value: unknown, shape: ObjectRules, what: string): void {
  want(anObject.fits(value), `${what} as an object`, value);
  for (const [name, kind] of Object.entries(shape)) {
    const field: unknown = Reflect.get(value as object, name);
    want(kind.fits(field), `${what}.${name} as ${kind.words}`, field);
  }
}

const metadataKinds: Readonly<Record<(typeof metadataFields)[keyof typeof metadataFields], FieldRule>> = {
  string: text,
  url,
  integer: whole,
  number: numeric,
  boolean: yesNo,
  live_status: oneOf(...liveStatuses),
};

/** The 19 fields of metadata; what a source does not give is null (D26). */
export const metadataShape: ObjectRules = Object.fromEntries(
  Object.entries(metadataFields).map(([name, kind]) => [name, orNull(metadataKinds[kind])]),
);

export const jobShape: ObjectRules = {
  id: uuid,
  status: oneOf(...jobStatuses),
  success: orNull(yesNo),
  endpoint: text,
  created_at: time,
  started_at: orNull(time),
  completed_at: orNull(time),
  duration_ms: orNull(whole),
  progress: { words: 'a whole number from 0 to 100', fits: (value) => whole.fits(value) && Number(value) <= 100 },
  args: anObject,
  result: orNull(anObject),
  error: orNull(text),
  error_code: orNull(text),
  retryable: orNull(yesNo),
};

const quota = orNull(whole);
const shareShape: ObjectRules = { total: whole, used: whole, remaining: whole, percent_used: numeric };
export const packShape: ObjectRules = { id: text, title: text, purchased_at: text, ...shareShape, exhausted: yesNo };
export const packsShape: ObjectRules = {
  ...shareShape,
  count: whole,
  exhausted_count: whole,
  all_exhausted: yesNo,
  current_index: whole,
  current: orNull(anObject),
  items: aList,
};
export const usageShape: ObjectRules = {
  remaining: whole,
  total_used: whole,
  held: whole,
  renewal_date: orNull(time),
  period: anObject,
  subscription: anObject,
  packs: orNull(anObject),
  credits: anObject,
  rate_limit: anObject,
  account: anObject,
  api_key: anObject,
};
/** The objects inside the usage. */
export const usageParts: Readonly<Record<string, ObjectRules>> = {
  period: { start: time, end: time },
  subscription: shareShape,
  credits: { given: whole, consumed: whole, remaining: whole, percent_used: numeric },
  rate_limit: { per_minute: quota, per_second: quota },
  account: { name: text, slug: text },
  api_key: { alias: text, active: yesNo, category: text, expires: orNull(time), quotas: anObject },
};
export const quotasShape: ObjectRules = { total: quota, daily: quota, weekly: quota, monthly: quota };
export const statsShape: ObjectRules = {
  engine: text,
  path: orNull(text),
  health: oneOf('operational', 'degraded', 'down'),
  success_rate: numeric,
  avg_response_time_ms: whole,
  window: oneOf('1h'),
};
