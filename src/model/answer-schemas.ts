import { Ajv } from 'ajv';
import { failures } from '../base/errors.ts';
import { jobStatuses } from './job.ts';
import { liveStatuses, metadataFields } from './metadata.ts';

export type Schema = Readonly<Record<string, unknown>>;

export const text = { type: 'string' };
const whole = { type: 'integer', minimum: 0 };
const numeric = { type: 'number' };
const yesNo = { type: 'boolean' };
const time = { type: 'string', format: 'date-time' };
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] });
export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
export const object = (properties: Readonly<Record<string, Schema>>, optional: readonly string[] = []): Schema => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
});

const metadataTypes: Readonly<Record<string, Schema>> = {
  string: text,
  url: { type: 'string', format: 'uri' },
  integer: whole,
  number: numeric,
  boolean: yesNo,
  live_status: { enum: liveStatuses },
};

const share = { total: whole, used: whole, remaining: whole, percent_used: numeric };
const packItem = object({ id: text, title: text, purchased_at: time, ...share, exhausted: yesNo });
const quota = orNull(whole);

/** Answers without `fields`. */
const answers: Readonly<Record<string, Schema>> = {
  Error: object({ error: text }),
  Accepted: object({ job_id: { type: 'string', format: 'uuid' } }),
  Metadata: object(
    Object.fromEntries(
      Object.entries(metadataFields).map(([name, kind]) => [name, orNull(metadataTypes[kind] ?? text)]),
    ),
  ),
  Job: object(
    {
      id: { type: 'string', format: 'uuid' },
      status: { enum: jobStatuses },
      success: orNull(yesNo),
      endpoint: text,
      created_at: time,
      started_at: orNull(time),
      completed_at: orNull(time),
      duration_ms: orNull(numeric),
      progress: { type: 'integer', minimum: 0, maximum: 100 },
      args: { type: 'object' },
      result: orNull(ref('Result')),
      error: orNull(text),
      error_code: orNull({ enum: Object.keys(failures) }),
      retryable: orNull(yesNo),
      queue: object({ position: whole, eta_seconds: orNull(numeric), reason: text }),
      stage: orNull(text),
      speed_bytes: orNull(numeric),
      eta_seconds: orNull(numeric),
    },
    ['error', 'error_code', 'retryable', 'queue', 'stage', 'speed_bytes', 'eta_seconds'],
  ),
  Event: object({ id: text, event: { enum: ['progress', 'end'] }, data: { ...text, description: 'The Job, as JSON' } }),
  Result: object(
    {
      metadata: orNull(ref('Metadata')),
      response: orNull({ type: 'string', format: 'uri' }),
      expires_at: orNull(time),
      bytes: whole,
      sha256: text,
      content_type: text,
    },
    ['expires_at', 'bytes', 'sha256', 'content_type'],
  ),
  JobList: object({ jobs: { type: 'array', items: ref('Job') }, next_cursor: orNull(text) }),
  Usage: object({
    remaining: whole,
    total_used: whole,
    held: whole,
    renewal_date: orNull(time),
    period: object({ start: time, end: time }),
    subscription: object(share),
    packs: orNull(
      object({
        count: whole,
        exhausted_count: whole,
        all_exhausted: yesNo,
        ...share,
        current_index: whole,
        current: orNull(packItem),
        items: { type: 'array', items: packItem },
      }),
    ),
    credits: object({ given: whole, consumed: whole, remaining: whole, percent_used: numeric }),
    rate_limit: object({ per_minute: quota, per_second: quota }),
    account: object({ name: text, slug: text }),
    api_key: object({
      alias: text,
      active: yesNo,
      category: text,
      expires: orNull(time),
      quotas: object({ total: quota, daily: quota, weekly: quota, monthly: quota }),
    }),
  }),
  ReducedUsage: object({ plan: text, remaining: text }),
  Stats: object({
    engine: text,
    path: orNull(text),
    health: { enum: ['operational', 'degraded', 'down'] },
    success_rate: numeric,
    avg_response_time_ms: whole,
    window: { const: '1h' },
  }),
};

/** Every schema under its name, and with `Part` behind the name as `fields` may cut it. */
export const schemas: Readonly<Record<string, Schema>> = {
  ...answers,
  ...Object.fromEntries(Object.entries(answers).map(([name, schema]) => [`${name}Part`, partOf(schema)])),
};

/** Returns the schema without any required field, at every depth. */
export function partOf(schema: Schema): Schema {
  return Object.fromEntries(
    Object.entries(schema).flatMap(([name, value]) => {
      if (name === 'required') return [];
      if (name === '$ref') return [[name, `${value}Part`]];
      if (name === 'properties') {
        const parts = Object.entries(value as Record<string, Schema>).map(([field, one]) => [field, partOf(one)]);
        return [[name, Object.fromEntries(parts)]];
      }
      if (name === 'items') return [[name, partOf(value as Schema)]];
      return [[name, name === 'anyOf' ? (value as Schema[]).map(partOf) : value]];
    }),
  );
}

const ajv = new Ajv({
  meta: false,
  validateSchema: false,
  keywords: ['components'],
  formats: {
    uuid: /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/,
    uri: (value) => URL.canParse(value),
    'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
  },
}).addSchema({ components: { schemas } }, 'answers');

/** Returns the first value of an answer that does not fit its schema, and why; `null` when there is none. */
export function answerFault(name: keyof typeof answers, answer: unknown): { path: string; problem: string } | null {
  const fits = ajv.getSchema(`answers#/components/schemas/${name}`);
  if (!fits) throw new Error(`there is no schema ${name}`);
  if (fits(answer)) return null;
  const [error] = fits.errors ?? [];
  return { path: error?.instancePath.slice(1).replaceAll('/', '.') ?? '', problem: error?.message ?? '' };
}
