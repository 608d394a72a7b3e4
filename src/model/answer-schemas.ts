import { failures } from '../base/errors.ts';
import { batchStatuses } from './batch-summary.ts';
import { jobStatuses } from './job.ts';
import { liveStatuses, metadataFields } from './metadata.ts';

export type Schema = Readonly<Record<string, unknown>>;

export const text = { type: 'string' };
const whole = { type: 'integer', minimum: 0 };
/** Bytes of files and counts of views exceed the 32 bits that generators of Java, C# and Rust give an integer without a format. */
const large = { ...whole, format: 'int64' };
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
  integer: large,
  number: numeric,
  boolean: yesNo,
  live_status: { type: 'string', enum: liveStatuses },
};

const share = { total: whole, used: whole, remaining: whole, percent_used: numeric };
const quota = orNull(whole);
const uuid = { type: 'string', format: 'uuid' };
const told = (description: string, schema: Schema): Schema => ({ ...schema, description });

const summary = {
  id: uuid,
  status: told('Running until every job has ended', { type: 'string', enum: batchStatuses }),
  counts: object({ queued: whole, running: whole, completed: whole, failed: told('Cancelled ones included', whole) }),
  credits: object({ held: whole, charged: whole }),
};

/** Answers that `fields` cannot cut, and the bodies of webhooks. */
const uncut: Readonly<Record<string, Schema>> = {
  Error: object({ error: told('What is wrong, in a sentence; the header x-error-code has the code', text) }),
  Accepted: object({ job_id: uuid }),
  AcceptedBatch: object({ batch_id: uuid }),
  WebhookBatch: object(summary),
  JobEvent: object({
    id: text,
    event: { type: 'string', enum: ['progress', 'end'] },
    data: told('The Job, as JSON', text),
  }),
  WebhookCompleted: object({
    id: told('Id of the job', uuid),
    status: { const: 'CompletedJob' },
    result: object({
      metadata: orNull(ref('Metadata')),
      response: told(
        'Signed link to the file; null when it is gone already',
        orNull({ type: 'string', format: 'uri' }),
      ),
    }),
  }),
  WebhookFailed: object({ id: told('Id of the job', uuid), status: { const: 'Error' }, error: text }),
  WebhookTest: object({ id: told('Id of the test', uuid), type: { const: 'test' }, created_at: time }),
};

/** Answers without `fields`. */
const cut: Readonly<Record<string, Schema>> = {
  Metadata: object(
    Object.fromEntries(
      Object.entries(metadataFields).map(([name, kind]) => [name, orNull(metadataTypes[kind] ?? text)]),
    ),
  ),
  Job: object(
    {
      id: uuid,
      status: told('Every other than QueuedJob and Running is the end', { type: 'string', enum: jobStatuses }),
      success: told('null until the end', orNull(yesNo)),
      endpoint: told('Path of the endpoint that started the job', text),
      created_at: time,
      started_at: orNull(time),
      completed_at: orNull(time),
      duration_ms: told('From start to end; null until the end', orNull(numeric)),
      progress: { type: 'integer', minimum: 0, maximum: 100 },
      args: told('The parameters as understood, with defaults', { type: 'object', additionalProperties: true }),
      result: told('null unless the job completed', orNull(ref('Result'))),
      error: told('Why the job did not complete, in a sentence', orNull(text)),
      error_code: told(
        'A code of docs/errors.md, which may gain more',
        orNull({ type: 'string', 'x-extensible-enum': Object.keys(failures) }),
      ),
      retryable: told('true when the same request may succeed later', orNull(yesNo)),
      queue: told(
        'While the job waits: its position among the jobs of the account',
        object({ position: whole, eta_seconds: orNull(numeric), reason: text }),
      ),
      stage: told('While the job runs: inspect, fetch, record (a live stream), convert, prove or upload', orNull(text)),
      speed_bytes: told('Bytes a second of the stage', orNull(numeric)),
      eta_seconds: told('Seconds to the end of the stage, estimated', orNull(numeric)),
    },
    ['error', 'error_code', 'retryable', 'queue', 'stage', 'speed_bytes', 'eta_seconds'],
  ),
  Result: object(
    {
      metadata: orNull(ref('Metadata')),
      response: told('Signed link to the file; null without a file', orNull({ type: 'string', format: 'uri' })),
      expires_at: told('When the file is removed', orNull(time)),
      bytes: large,
      sha256: told('Hexadecimal', text),
      content_type: text,
    },
    ['expires_at', 'bytes', 'sha256', 'content_type'],
  ),
  Batch: object({
    ...summary,
    jobs: {
      type: 'array',
      items: object({
        query: told('null when the record of the job has expired', orNull(text)),
        job_id: uuid,
        status: orNull({ type: 'string', enum: jobStatuses }),
        error: told('Why the job did not complete, in a sentence', orNull(text)),
        error_code: orNull({ type: 'string', 'x-extensible-enum': Object.keys(failures) }),
      }),
    },
    next_cursor: orNull(text),
  }),
  JobList: object({ jobs: { type: 'array', items: ref('Job') }, next_cursor: orNull(text) }),
  Pack: object({ id: text, title: text, purchased_at: time, ...share, exhausted: yesNo }),
  Usage: object({
    remaining: told('What is left of subscription, packs and credits', whole),
    total_used: whole,
    held: told('Credits that open jobs and calls will cost if they succeed', whole),
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
        current: orNull(ref('Pack')),
        items: { type: 'array', items: ref('Pack') },
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
  UsageHistory: object({
    days: {
      type: 'array',
      items: object({
        day: told('UTC', { type: 'string', format: 'date' }),
        key: told('Alias of the key', text),
        calls: told('Requests with the key, as far as its request log holds them', whole),
        credits: told('Credits charged', whole),
        completed: told('Synchronous answers and jobs that completed', whole),
        failed: told('Jobs that ended otherwise', whole),
      }),
    },
  }),
  ReducedUsage: object({ plan: text, remaining: text }),
  Stats: object({
    engine: text,
    path: orNull(text),
    health: { type: 'string', enum: ['operational', 'degraded', 'down'] },
    success_rate: numeric,
    avg_response_time_ms: whole,
    window: { const: '1h' },
  }),
};

/** Every schema under its name, and with `Part` behind the name as `fields` may cut it. */
export const schemas: Readonly<Record<string, Schema>> = {
  ...uncut,
  ...cut,
  ...Object.fromEntries(Object.entries(cut).map(([name, schema]) => [`${name}Part`, partOf(schema)])),
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
