import { type RefusalCode, refusals } from '../base/errors.ts';
import { object, partOf, ref, type Schema, schemas, text } from '../model/answer-schemas.ts';
import type { ParameterTable } from '../model/parameter-kinds.ts';
import {
  creditParameters,
  globalParameters,
  jobParameters,
  listParameters,
  pollParameters,
  statsParameters,
  usageParameters,
} from '../model/request-parameters.ts';
import { openRoutes, pathTemplate, type Route, type RouteName, routes } from './routes.ts';

/** Parameters of a route besides the global ones, and its answers. */
interface OperationTable {
  readonly tables: readonly ParameterTable[];
  readonly ok: Readonly<Record<string, Schema | 'stream' | 'file'>>;
  readonly errors: readonly RefusalCode[];
  /** Descriptions of further statuses, which have no JSON or the body of an error. */
  readonly besides?: Readonly<Record<string, string>>;
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

const operations: Readonly<Record<RouteName, OperationTable>> = {
  video: { tables: [creditParameters.video], ok: { 202: ref('Accepted') }, errors: credit },
  audio: { tables: [creditParameters.audio], ok: { 202: ref('Accepted') }, errors: credit },
  metadata: {
    tables: [creditParameters.metadata],
    ok: { 200: object({ metadata: ref('Metadata') }, ['metadata']), 202: ref('Accepted') },
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
    besides: {
      304: 'The caller has this file',
      307: 'The file is elsewhere, for some minutes',
      410: 'The link has expired, or the file was removed',
      416: 'The file has no such part',
    },
  },
  openapi: { tables: [], ok: { 200: { type: 'object' } }, errors: ['method_not_allowed'] },
};

/** Returns the OpenAPI 3.1 document, made from the table of routes and the schemas that check requests. */
export function makeOpenapi(version: string, serverUrl: string): object {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const name of Object.keys(routes) as RouteName[]) {
    const route: Route = routes[name];
    for (const [n, path] of route.paths.entries()) {
      const methods: Record<string, unknown> = {};
      for (const method of route.methods) {
        methods[method.toLowerCase()] = operation(name, route, method, path, n);
      }
      paths[pathTemplate(path)] = methods;
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
  const { tables, errors } = operations[name];
  const isOpen = name in openRoutes;
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, id = '']) => ({
    name: id,
    in: 'path',
    required: true,
    schema: id === 'id' ? jobParameters.id.schema : text,
  }));
  const given = isOpen || (name === 'job' && method === 'DELETE') ? [] : tables;
  const global = isOpen ? [] : [globalParameters];
  const body = method === 'POST' && route.endpoint !== undefined;
  const query = [...(body ? [] : given), ...global].flatMap(parametersOf);
  return {
    operationId: `${name}_${method.toLowerCase()}${alias === 0 ? '' : `_${alias + 1}`}`,
    summary: route.text,
    ...(isOpen ? { security: [] } : {}),
    parameters: [...inPath, ...query],
    ...(body ? { requestBody: bodyOf([...given, globalParameters]) } : {}),
    responses: { ...responsesOf(operations[name], isOpen), ...errorsOf(errors) },
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
  const optional = entries.filter(([, { required }]) => required !== true).map(([name]) => name);
  return { required: true, content: jsonOf(object(properties, optional)) };
}

/** OpenAPI links from a 202 to the operations on its job. */
const links = Object.fromEntries(
  ['job_get', 'job_delete', 'events_get', 'retry_post'].map((operationId) => [
    operationId,
    { operationId, parameters: { id: '$response.body#/job_id' } },
  ]),
);

/** Under soft_fail every error is a 200; with `fields` an answer is only a part of itself. */
function responsesOf({ ok, besides = {} }: OperationTable, isOpen: boolean): object {
  const soft = isOpen ? {} : { 200: { description: 'An error, with soft_fail', content: jsonOf(ref('Error')) } };
  const good = Object.entries(ok).map(([status, schema]) => {
    const description = status === '202' ? 'Accepted' : 'Done';
    if (schema === 'file') return [status, { description, content: { '*/*': { schema: text } } }];
    if (schema === 'stream') {
      const content = { 'text/event-stream': { schema: ref('Event') }, ...jsonOf(ref('Error')) };
      return [status, { description, content }];
    }
    const isWhole = isOpen || status === '202';
    const content = jsonOf(isWhole ? schema : anyOf(schema, partOf(schema), ref('Error')));
    return [status, { description, content, ...(status === '202' ? { links } : {}) }];
  });
  const others = Object.entries(besides).map(([status, description]) => [status, { description }]);
  return { ...soft, ...Object.fromEntries([...good, ...others]) };
}

function jsonOf(schema: Schema): object {
  return { 'application/json': { schema } };
}

function anyOf(...schemas: Schema[]): Schema {
  return { anyOf: schemas };
}

function errorsOf(errors: readonly RefusalCode[]): object {
  const byStatus = Map.groupBy(errors, (code) => refusals[code].status);
  const rows = [...byStatus].map(([status, codes]) => [
    status,
    codes.map((code) => refusals[code].sentence).join('; '),
  ]);
  const early = [
    [408, 'The request took too long to arrive'],
    [431, 'The URL or the headers are too long'],
  ];
  return Object.fromEntries(
    [...rows, ...early].map(([status, description]) => [status, { description, content: jsonOf(ref('Error')) }]),
  );
}
