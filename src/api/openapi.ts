import { version } from '../base/version.ts';
import { object, partOf, ref, type Schema, schemas, text } from '../model/answer-schemas.ts';
import type { ParameterTable } from '../model/parameter-kinds.ts';
import { globalParameters, jobParameters } from '../model/request-parameters.ts';
import { errorComponents, errorsOf } from './openapi-errors.ts';
import { acceptedExample, answerExamples, batchIdExample, bodyExamples, jobIdExample } from './openapi-examples.ts';
import { answerHeaders, headersOf, requestHeaders } from './openapi-headers.ts';
import { operations } from './openapi-operations.ts';
import { type OperationRow, tags } from './openapi-row.ts';
import { webhooks } from './openapi-webhooks.ts';
import { openRoutes, pathTemplate, type Route, type RouteName, routes } from './routes.ts';

const about = `Send the URL of a film or of sound, get back a file that was checked. A download is a job: start it, wait for its end, fetch
the file. A job costs one credit when it completes, and nothing when it does not.

Every route that costs a credit or tells of an account needs an API key, in the header \`x-api-key\` or in the query parameter
\`x_api_key\`. Every error is \`{"error": sentence}\`, with a stable code in the header \`x-error-code\`. Paths that begin with \`/api\`,
and \`/jobs/{id}\`, are permanent aliases.`;

/** One method at one path of a route; `alias` is the place of the path in the route's list. */
interface PathOperation {
  readonly name: RouteName;
  readonly route: Route;
  readonly method: string;
  readonly path: string;
  readonly alias: number;
}

/**
 * Returns the OpenAPI 3.1 document, made from the table of routes and the schemas that check requests. `asyncStatus` is the status
 * of an accepted call (D1).
 */
export function makeOpenapi(serverUrl: string, asyncStatus = 202): object {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const name of Object.keys(routes) as RouteName[]) {
    const route: Route = routes[name];
    for (const [alias, path] of route.paths.entries()) {
      const methods = route.methods.map((method) => [
        method.toLowerCase(),
        operation({ name, route, method, path, alias }, asyncStatus),
      ]);
      paths[pathTemplate(path)] = Object.fromEntries(methods);
    }
  }
  const securitySchemes = {
    header: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'The API key; the header wins.' },
    query: { type: 'apiKey', in: 'query', name: 'x_api_key', description: 'For clients that cannot set a header.' },
  };
  return {
    openapi: '3.1.0',
    info: {
      title: 'trawl',
      version,
      summary: 'A metered media-download service.',
      description: about,
      contact: { name: 'The operator of this service', url: serverUrl },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: serverUrl, description: 'This service' }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    security: [{ header: [] }, { query: [] }],
    paths,
    webhooks,
    components: { schemas, responses: errorComponents(), headers: answerHeaders, securitySchemes },
  };
}

function operation({ name, route, method, path, alias }: PathOperation, asyncStatus: number): object {
  const row = (operations[name] as Readonly<Record<string, OperationRow>>)[method];
  if (row === undefined) throw new Error(`${method} ${path} is not described`);
  const { tables = [] } = row;
  const isOpen = name in openRoutes;
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, id = '']) => pathParameter(id, name));
  const global = isOpen ? [] : [globalParameters];
  const body = method === 'POST' && route.endpoint !== undefined;
  const query = [...(body ? [] : tables), ...global].flatMap(parametersOf);
  const same = alias === 0 ? '' : ` The same as \`${pathTemplate(route.paths[0])}\`.`;
  return {
    operationId: `${row.id}${alias === 0 ? '' : `_${alias + 1}`}`,
    tags: [alias === 0 ? row.tag : 'Aliases'],
    summary: row.summary,
    description: row.description + same,
    ...(isOpen ? { security: [] } : {}),
    parameters: [
      ...inPath,
      ...(name === 'files' ? linkParameters : []),
      ...(row.headers ?? []).map((one) => requestHeaders[one]),
      ...query,
    ],
    ...(body ? { requestBody: bodyOf(row, [...tables, globalParameters]) } : {}),
    ...(row.body ? { requestBody: { required: true, content: jsonOf(row.body, bodyExamples[row.id]) } } : {}),
    responses: { ...responsesOf(row, isOpen, asyncStatus), ...errorsOf(row.errors, isOpen) },
  };
}

/** Not required, although a link without them is 403: callers take the whole link from an answer. */
const linkParameters = ['exp', 'sig'].map((name) => ({
  ...{ name, in: 'query', required: false, schema: text },
  description: 'As it stands in the link; a link without it is refused.',
}));

function pathParameter(name: string, route: RouteName): object {
  if (name === 'id') {
    const { description: ofJob, ...schema } = jobParameters.id.schema;
    const [description, example] = route === 'batch' ? ['UUID of the batch.', batchIdExample] : [ofJob, jobIdExample];
    return { name, in: 'path', required: true, description, schema: { ...schema, examples: [example] } };
  }
  const description = name === 'file' ? 'Its name.' : 'As it stands in the link.';
  return { name, in: 'path', required: true, description, schema: text };
}

function parametersOf(table: ParameterTable): object[] {
  return Object.entries(table).map(([name, { schema: described, required = false }]) => {
    const { description, ...schema } = described;
    return { name, in: 'query', required, description, schema };
  });
}

function bodyOf({ id }: OperationRow, tables: readonly ParameterTable[]): object {
  const entries = tables.flatMap((table) => Object.entries(table));
  const properties = Object.fromEntries(entries.map(([name, { schema }]) => [name, schema]));
  const optional = entries.filter(([, { required }]) => required !== true).map(([name]) => name);
  return { required: true, content: jsonOf(object(properties, optional), bodyExamples[id]) };
}

/** OpenAPI links from a 202 to the operations on its job, or on its batch. */
const jobLinks = linksTo('job_id', [
  operations.job.GET,
  operations.job.DELETE,
  operations.events.GET,
  operations.retry.POST,
]);
const batchLinks = linksTo('batch_id', [operations.batch.GET, operations.batch.DELETE]);

function linksTo(member: string, rows: readonly Pick<OperationRow, 'id' | 'summary'>[]): object {
  const parameters = { id: `$response.body#/${member}` };
  return Object.fromEntries(rows.map(({ id, summary }) => [id, { operationId: id, description: summary, parameters }]));
}

/** Under soft_fail every error is a 200; with `fields` an answer is only a part of itself. */
function responsesOf(row: OperationRow, isOpen: boolean, asyncStatus: number): object {
  const error = jsonOf(ref('Error'), { error: 'Bad Request' });
  const soft = {
    description: 'An error, with soft_fail: status 200',
    headers: headersOf('200', isOpen, true),
    content: error,
  };
  const message = object({ event: text, data: { ...text, description: 'A JSON-RPC message' } }, ['event']);
  const contents = {
    file: { '*/*': { schema: text } },
    page: { 'text/html': { schema: text } },
    stream: { 'text/event-stream': { schema: ref('JobEvent') }, ...error },
    messages: { 'text/event-stream': { schema: message }, ...error },
  };
  const good = Object.entries(row.ok).map(([status, schema]) => {
    const description = 'Done';
    const headers = headersOf(status, isOpen, status === '200' && !isOpen);
    if (typeof schema === 'string') return [status, { description, headers, content: contents[schema] }];
    if (status === '202') return [String(asyncStatus), accepted(row, schema, asyncStatus)];
    const shown = isOpen ? schema : anyOf(schema, partOf(schema), ref('Error'));
    return [status, { description, headers, content: jsonOf(shown, answerExamples[row.id.replace('ByPost', '')]) }];
  });
  const others = Object.entries(row.besides ?? {}).map(([status, description]) => [
    status,
    { description, headers: headersOf(status, isOpen, false), ...(Number(status) >= 400 ? { content: error } : {}) },
  ]);
  // Generators of Java and Go read every success by the schema of its lowest status: that has to be the accepted call.
  const softStatus = asyncStatus === 202 && row.ok['200'] === undefined ? '2XX' : '200';
  return { ...(isOpen ? {} : { [softStatus]: soft }), ...Object.fromEntries([...good, ...others]) };
}

/** Returns the answer to an accepted call, which as a 200 shares its status with errors under soft_fail and with metadata read at once. */
function accepted({ id, ok }: OperationRow, schema: Schema, asyncStatus: number): object {
  const isBatch = id === 'startBatch';
  const example = isBatch ? answerExamples[id] : acceptedExample;
  const atOnce = typeof ok[200] === 'object' ? [ok[200], partOf(ok[200])] : [];
  const isShared = asyncStatus === 200;
  return {
    description: 'Accepted: the job is on its way',
    headers: { ...(isShared ? headersOf('200', false, true) : {}), ...headersOf('202', false, false) },
    content: jsonOf(isShared ? anyOf(schema, ...atOnce, ref('Error')) : schema, example),
    links: isBatch ? batchLinks : jobLinks,
  };
}

function jsonOf(schema: Schema, example?: unknown): object {
  return { 'application/json': { schema, ...(example === undefined ? {} : { example }) } };
}

function anyOf(...schemas: Schema[]): Schema {
  return { anyOf: schemas };
}
