import { failures, type RefusalCode, refusals } from '../base/errors.ts';
import { jobStatuses } from '../model/job.ts';
import { metadataFields } from '../model/metadata.ts';
import type { ParameterTable } from '../model/parameter.ts';
import {
  creditParameters,
  globalParameters,
  jobParameters,
  listParameters,
  pollParameters,
  statsParameters,
  usageParameters,
} from '../model/request.ts';
import { allowed, type Route, type RouteName, routes } from './routes.ts';

type Schema = Readonly<Record<string, unknown>>;

const text = { type: 'string' };
const whole = { type: 'integer' };
const numeric = { type: 'number' };
const yesNo = { type: 'boolean' };
const time = { type: 'string', format: 'date-time' };
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] });
const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
const object = (properties: Readonly<Record<string, Schema>>, required = Object.keys(properties)): Schema => ({
  type: 'object',
  properties,
  required,
});

const metadataTypes: Readonly<Record<string, Schema>> = {
  string: text,
  url: { type: 'string', format: 'uri' },
  integer: whole,
  number: numeric,
  boolean: yesNo,
  live_status: { enum: ['not_live', 'is_live', 'is_upcoming', 'was_live', 'post_live'] },
};

const share = { total: whole, used: whole, remaining: whole, percent_used: numeric };
const packItem = object({ id: text, title: text, purchased_at: time, ...share, exhausted: yesNo });
const quota = orNull(whole);

const schemas: Readonly<Record<string, Schema>> = {
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
    [
      'id',
      'status',
      'success',
      'endpoint',
      'created_at',
      'started_at',
      'completed_at',
      'duration_ms',
      'progress',
      'args',
      'result',
    ],
  ),
  Result: object(
    {
      metadata: orNull(ref('Metadata')),
      response: orNull({ type: 'string', format: 'uri' }),
      expires_at: orNull(time),
      bytes: whole,
      sha256: text,
      content_type: text,
    },
    ['metadata', 'response'],
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

/** What a route takes besides the global parameters, and what it answers when all is well. */
interface Spoken {
  readonly tables: readonly ParameterTable[];
  readonly ok: Readonly<Record<string, Schema | 'stream' | 'file'>>;
  readonly errors: readonly RefusalCode[];
}

const always: readonly RefusalCode[] = [
  'bad_request',
  'invalid_api_key',
  'inactive_api_key',
  'expired_api_key',
  'forbidden',
  'ip_blocked',
  'rate_limited',
  'internal_error',
  'unavailable',
];
const credit: readonly RefusalCode[] = [
  ...always,
  'key_quota_exceeded',
  'payment_required',
  'idempotency_conflict',
  'payload_too_large',
];

const spoken: Readonly<Record<RouteName, Spoken>> = {
  video: { tables: [creditParameters.video], ok: { 202: ref('Accepted') }, errors: credit },
  audio: { tables: [creditParameters.audio], ok: { 202: ref('Accepted') }, errors: credit },
  metadata: {
    tables: [creditParameters.metadata],
    ok: { 200: object({ metadata: ref('Metadata') }, []), 202: ref('Accepted') },
    errors: [...credit, 'not_found'],
  },
  jobs: { tables: [listParameters], ok: { 200: ref('JobList') }, errors: always },
  job: { tables: [pollParameters], ok: { 200: ref('Job') }, errors: [...always, 'not_found'] },
  retry: { tables: [], ok: { 202: ref('Accepted') }, errors: [...credit, 'not_found', 'not_ended'] },
  events: { tables: [], ok: { 200: 'stream' }, errors: [...always, 'not_found'] },
  usage: { tables: [usageParameters], ok: { 200: { anyOf: [ref('Usage'), ref('ReducedUsage')] } }, errors: always },
  stats: { tables: [statsParameters], ok: { 200: ref('Stats') }, errors: [...always, 'not_found'] },
  files: {
    tables: [],
    ok: { 200: 'file', 206: 'file' },
    errors: ['forbidden', 'not_found', 'method_not_allowed', 'unavailable'],
  },
  openapi: { tables: [], ok: { 200: { type: 'object' } }, errors: ['method_not_allowed'] },
};

/** The OpenAPI 3.1 document, made from the table of routes and the schemas that check requests. */
export function makeOpenapi(version: string, serverUrl: string): object {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const name of Object.keys(routes) as RouteName[]) {
    const route: Route = routes[name];
    for (const [n, path] of route.paths.entries()) {
      const methods: Record<string, unknown> = {};
      for (const method of allowed(route)) {
        if (method === 'OPTIONS' || method === 'HEAD') continue;
        methods[method.toLowerCase()] = operation(name, route, method, path, n);
      }
      paths[path.replaceAll(/:(\w+)/g, '{$1}')] = methods;
    }
  }
  const securitySchemes = {
    header: { type: 'apiKey', in: 'header', name: 'x-api-key' },
    query: { type: 'apiKey', in: 'query', name: 'x_api_key' },
  };
  return {
    openapi: '3.1.0',
    info: { title: 'trawl', version, description: 'A metered media-download service.' },
    servers: [{ url: serverUrl }],
    security: [{ header: [] }, { query: [] }],
    paths,
    components: { schemas, securitySchemes },
  };
}

function operation(name: RouteName, route: Route, method: string, path: string, alias: number): object {
  const { tables, ok, errors } = spoken[name];
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, id = '']) => ({
    name: id,
    in: 'path',
    required: true,
    schema: id === 'id' ? jobParameters.id.schema : text,
  }));
  const given = route.isOpen || (name === 'job' && method === 'DELETE') ? [] : tables;
  const global = route.isOpen ? [] : [globalParameters];
  const body = method === 'POST' && route.endpoint !== undefined;
  const query = [...(body ? [] : given), ...global].flatMap(parametersOf);
  return {
    operationId: `${name}_${method.toLowerCase()}${alias === 0 ? '' : `_${alias + 1}`}`,
    summary: route.text,
    ...(route.isOpen ? { security: [] } : {}),
    parameters: [...inPath, ...query],
    ...(body ? { requestBody: bodyOf([...given, globalParameters]) } : {}),
    responses: { ...responsesOf(ok), ...errorsOf(errors) },
  };
}

function parametersOf(table: ParameterTable): object[] {
  return Object.entries(table).map(([name, { schema, required }]) => ({
    name,
    in: 'query',
    required: required === true,
    schema,
  }));
}

function bodyOf(tables: readonly ParameterTable[]): object {
  const entries = tables.flatMap((table) => Object.entries(table));
  const properties = Object.fromEntries(entries.map(([name, { schema }]) => [name, schema]));
  const required = entries.filter(([, parameter]) => parameter.required === true).map(([name]) => name);
  return { required: true, content: { 'application/json': { schema: object(properties, required) } } };
}

function responsesOf(ok: Spoken['ok']): object {
  return Object.fromEntries(
    Object.entries(ok).map(([status, schema]) => {
      const type = schema === 'stream' ? 'text/event-stream' : schema === 'file' ? '*/*' : 'application/json';
      const content = { [type]: { schema: typeof schema === 'string' ? text : schema } };
      return [status, { description: status === '202' ? 'Accepted' : 'Done', content }];
    }),
  );
}

function errorsOf(errors: readonly RefusalCode[]): object {
  const byStatus = Map.groupBy(errors, (code) => refusals[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      {
        description: codes.map((code) => refusals[code].sentence).join('; '),
        content: { 'application/json': { schema: ref('Error') } },
      },
    ]),
  );
}
