import type { AddressException } from '../base/settings/kinds.ts';
import { uuidForm } from './job.ts';
import { type judgeUrl, notUrl } from './public-address.ts';
import { fieldsAllowed, fieldsPattern, maxFieldsLength, type Path, parseFields } from './select-fields.ts';
import { parseTime } from './timestamp.ts';

/** A JSON Schema, as it stands in the OpenAPI document too. */
type ParameterSchema = Readonly<Record<string, unknown>>;

export interface Refused {
  readonly ok: false;
  readonly sentence: string;
}

type Judged<T> = { readonly ok: true; readonly value: T } | Refused;
type Exceptions = readonly AddressException[];

/** One parameter: its value is a T, or an A when it is not given. */
export interface Parameter<T = unknown, A = unknown> {
  readonly schema: ParameterSchema;
  readonly required: boolean;
  readonly absent: A;
  /** Reads one given value; the sentence of a refusal goes on from the parameter's name. */
  readonly read: (given: unknown, exceptions: Exceptions) => Judged<T>;
}

export type ParameterTable = Readonly<Record<string, Parameter>>;

/** Values of a table's parameters once they are read. */
export type ParameterValues<P extends ParameterTable> = {
  readonly [N in keyof P]: P[N] extends Parameter<infer T, infer A> ? T | A : never;
};

const uuid = new RegExp(uuidForm, 'i');
const words = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
]);

/** Returns the values of a table's parameters, or the first refusal in the table's order; ignores other parameters. */
export function readParameters<P extends ParameterTable>(
  table: P,
  given: Readonly<Record<string, unknown>>,
  exceptions: Exceptions = [],
): Judged<ParameterValues<P>> {
  const values: Record<string, unknown> = {};
  for (const name of Object.keys(table)) {
    const parameter = table[name] as Parameter;
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined) {
      if (parameter.required) return refuse(`Bad Request: ${name} is required`);
      values[name] = parameter.absent;
      continue;
    }
    const judged = Array.isArray(value)
      ? refuse('must be a single value, given once')
      : parameter.read(value, exceptions);
    if (!judged.ok) return refuse(`Bad Request: ${name} ${judged.sentence}`);
    values[name] = judged.value;
  }
  return { ok: true, value: values as ParameterValues<P> };
}

export function choice<const T extends string, A extends T | undefined>(
  description: string,
  allowed: readonly T[],
  absent: A,
): Parameter<T, A> {
  const fits = (given: unknown): given is T => allowed.some((each) => each === given);
  const sentence = `must be ${allowed.length > 1 ? 'one of ' : ''}${allowed.join(', ')}`;
  return optional({ type: 'string', description, enum: allowed }, absent, check(fits, sentence));
}

/** A boolean, as JSON or as a word (D5); false when it is not given. */
export function flag(description: string): Parameter<boolean, boolean> {
  const schema = { type: 'boolean', description };
  const judge = check((given) => typeof given === 'boolean', 'must be true, false, 1 or 0');
  return optional(schema, false, (given) => {
    const spelled = typeof given === 'string' || typeof given === 'number' ? String(given).toLowerCase() : '';
    return judge(words.get(spelled) ?? given);
  });
}

interface NumberLimits {
  readonly type?: 'integer';
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
}

/** A number within limits, which a refusal names; `such` gives examples behind them. */
export function number<A extends number | undefined>(
  description: string,
  limits: NumberLimits,
  absent: A,
  such = '',
): Parameter<number, A> {
  const schema = { type: 'number', description, ...limits };
  const judge = check(numbersWithin(limits), `must be ${wordsOf(limits)}${such}`);
  return optional(schema, absent, (given) =>
    judge(typeof given === 'string' && /^\d+(\.\d+)?$/.test(given) ? Number(given) : given),
  );
}

function wordsOf({ type, minimum, exclusiveMinimum, maximum }: NumberLimits): string {
  const kind = type === 'integer' ? 'a whole number' : 'a number';
  if (exclusiveMinimum !== undefined) return `${kind} above ${exclusiveMinimum} and at most ${maximum}`;
  return maximum === undefined ? `${kind} of at least ${minimum}` : `${kind} from ${minimum} to ${maximum}`;
}

function numbersWithin({ type, minimum, exclusiveMinimum, maximum }: NumberLimits) {
  return (given: unknown): given is number =>
    (type === 'integer' ? Number.isInteger(given) : Number.isFinite(given)) &&
    Number(given) >= (minimum ?? -Infinity) &&
    Number(given) > (exclusiveMinimum ?? -Infinity) &&
    Number(given) <= (maximum ?? Infinity);
}

/** A day as `YYYY-MM-DD`; its value is the time of its beginning. */
export function day(description: string): Parameter<number, undefined> {
  const schema = {
    ...{ type: 'string', description, format: 'date' },
    pattern: '^(19[7-9][0-9]|[2-9][0-9]{3})-[0-9]{2}-[0-9]{2}$',
    examples: ['2026-03-04'],
  };
  return optional(schema, undefined, (given) => {
    const time = typeof given === 'string' && given.length === 10 ? parseTime(given, 'first') : null;
    return time === null ? refuse('must be a day since 1970, such as 2026-03-04') : { ok: true, value: time };
  });
}

interface TextLimits {
  readonly format?: 'uuid';
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
}

export function text(description: string, limits: TextLimits, allowed: string): Parameter<string, undefined> {
  return optional({ type: 'string', description, ...limits }, undefined, check(textsWithin(limits), allowed));
}

/** Judges as JSON Schema does, which counts code points and reads a pattern with the flag `u`. */
function textsWithin({ format, minLength, maxLength, pattern }: TextLimits) {
  const form = format === 'uuid' ? uuid : new RegExp(pattern ?? '', 'u');
  return (given: unknown): given is string => {
    if (typeof given !== 'string') return false;
    const length = [...given].length;
    return length >= (minLength ?? 0) && length <= (maxLength ?? Infinity) && form.test(given);
  };
}

export function url(
  description: string,
  judge: typeof judgeUrl,
  maxLength: number,
  examples?: string[],
): Parameter<string, undefined> {
  const schema = { type: 'string', description, format: 'uri', maxLength, ...(examples && { examples }) };
  return optional(schema, undefined, (given, exceptions) => {
    const judged = typeof given === 'string' ? judge(given, exceptions) : refuse(notUrl);
    return judged.ok ? { ok: true, value: judged.href } : judged;
  });
}

export function fieldPaths(description: string): Parameter<readonly Path[], readonly Path[]> {
  const schema = { type: 'string', description, maxLength: maxFieldsLength, pattern: fieldsPattern };
  const read = (given: unknown) => (typeof given === 'string' ? parseFields(given) : refuse(fieldsAllowed));
  return { schema, required: false, absent: [], read };
}

/** Returns a parameter whose description also tells rules that are judged later, with other parameters. */
export function described<T, A>(parameter: Parameter<T, A>, rules: ParameterSchema): Parameter<T, A> {
  return { ...parameter, schema: { ...parameter.schema, ...rules } };
}

export function required<T>(parameter: Parameter<T>): Parameter<T, never> {
  return { ...parameter, required: true, absent: undefined as never };
}

function optional<T, A>(schema: ParameterSchema, absent: A, read: Parameter<T>['read']): Parameter<T, A> {
  return { schema: absent === undefined ? schema : { ...schema, default: absent }, required: false, absent, read };
}

function check<T>(fits: (given: unknown) => given is T, allowed: string): (given: unknown) => Judged<T> {
  return (given) => (fits(given) ? { ok: true, value: given } : refuse(allowed));
}

function refuse(sentence: string): Refused {
  return { ok: false, sentence };
}
