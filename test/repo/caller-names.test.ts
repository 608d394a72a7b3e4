import { expect } from 'chai';
import { makeOpenapi } from '../../src/api/openapi.ts';
import { answerHeaders } from '../../src/api/openapi-headers.ts';
import { operations } from '../../src/api/openapi-operations.ts';
import { type OperationRow, publicRefusals } from '../../src/api/openapi-row.ts';
import { keyedRoutes, pathTemplate, type Route, routes } from '../../src/api/routes.ts';
import { failures, refusals } from '../../src/base/errors.ts';
import { exitCodes } from '../../src/client/client-command.ts';
import { getHelp, getOptions, getUsage } from '../../src/client/get-options.ts';
import { mcpTools } from '../../src/mcp/mcp-tools.ts';
import { schemas } from '../../src/model/answer-schemas.ts';
import { batchParameters } from '../../src/model/batch.ts';
import * as tables from '../../src/model/request-parameters.ts';
import { rows } from '../contract/page.ts';
import { fieldsOfPython, fieldsOfSchemas, fieldsOfTypescript } from '../support/client-types.ts';
import type { Json } from '../support/json.ts';
import { expectNames } from '../support/same-names.ts';
import { read } from '../support/tree.ts';
import { texts } from '../support/tree-files.ts';

const { components, paths, webhooks }: Json = makeOpenapi('https://trawl.example');
/** Keyed routes that each client does not ask: a new call does what a retry does, and stats are for those who watch the platform. */
const unasked = {
  'clients/typescript/src/': ['mcp', 'retry', 'stats'],
  'clients/python/trawl_client/': ['mcp', 'retry', 'stats'],
  'src/client/': ['history', 'jobs', 'mcp', 'retry', 'stats'],
};
const routesOfTheInterface = [
  ...['/v1/video/download', '/v1/audio/download', '/v1/media/metadata'],
  ...['/v1/jobs/{id}', '/v1/usage', '/v1/stats'],
];

/** Names between backticks in the sentence of a row of the contract. */
function namesIn(id: string): string[] {
  return [...rows.find((row) => row.id === id)!.sentence.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
}

/** Names that have a row each: `video-query` is that of `query`. */
function rowsOf(...families: readonly string[]): string[] {
  return families.flatMap((family) =>
    rows
      .filter(({ id, sentence }) => id.startsWith(family) && sentence.startsWith(`\`${id.slice(family.length)}`))
      .map(({ id }) => id.slice(family.length)),
  );
}

/** Place of a sentence of the contract. */
const sentence = (id: string) => `test/contract/rows.txt, ${id}`;

describe('what callers can name', () => {
  it('caller-routes: is the same route in the API, the contract and every client', () => {
    const all = Object.values<Route>(routes).map((route) => pathTemplate(route.paths[0]!));
    expectNames(sentence('caller-routes'), [...routesOfTheInterface, ...namesIn('caller-routes')], all);
    for (const [folder, left] of Object.entries(unasked)) {
      const asked = [...texts]
        .filter(([path]) => path.startsWith(folder))
        .flatMap(([path, code]) => listPaths(path, code));
      const isAsked = (route: Route) => asked.some((path) => path.test(route.paths[0]!));
      expectNames(
        `${folder} or \`unasked\` of this test`,
        [
          ...left,
          ...Object.values<Route>(keyedRoutes)
            .filter(isAsked)
            .map(({ name }) => name),
        ],
        Object.keys(keyedRoutes),
      );
      expect(
        left.filter((name) => isAsked(keyedRoutes[name as keyof typeof keyedRoutes])),
        folder,
      ).to.deep.equal([]);
      const isRoute = (path: RegExp) => Object.values<Route>(keyedRoutes).some((route) => path.test(route.paths[0]!));
      expect(
        asked.filter((path) => !isRoute(path)),
        folder,
      ).to.deep.equal([]);
    }
  });

  it('caller-parameters: is the same parameter in the API, its document and the contract', () => {
    const {
      creditParameters: credit,
      globalParameters,
      idempotencyParameters: _,
      jobParameters: __,
      ...others
    } = tables;
    const further = [batchParameters, ...Object.values(others).filter((table) => typeof table === 'object')];
    const named = further.flatMap((table) => Object.keys(table));
    const ofTheInterface = rowsOf('video-', 'audio-', 'stats-', 'global-');
    expectNames(
      sentence('caller-parameters'),
      [...ofTheInterface, ...namesIn('caller-parameters')].filter((name) => !['x_api_key', 'items'].includes(name)),
      [...Object.values(credit).flatMap((table) => Object.keys(table)), ...Object.keys(globalParameters), ...named],
    );
    const shown = Object.values<Json>(paths).flatMap((methods) =>
      Object.values<Json>(methods).flatMap(({ parameters = [], requestBody }) => [
        ...parameters.filter((one: Json) => one.in === 'query').map((one: Json) => one.name),
        ...Object.keys(requestBody?.content['application/json'].schema.properties ?? {}),
      ]),
    );
    const keys = Object.values<Json>(components.securitySchemes)
      .filter((one) => one.in === 'query')
      .map((one) => one.name);
    const ofMessages = ['jsonrpc', 'id', 'method', 'params', 'exp', 'sig'];
    expectNames(
      'parameters of the API document, made of src/api',
      [...keys, ...shown].filter((name) => !ofMessages.includes(name)),
      [...ofTheInterface, ...namesIn('caller-parameters')],
    );
  });

  it('caller-fields caller-batch: is the same field in answers, the contract and the types of both clients', () => {
    const fields = (name: string) => Object.keys(schemas[name]!.properties as object);
    const ofResult = ['metadata', 'response', 'expires_at', 'bytes', 'sha256', 'content_type'];
    const ofUsage = rowsOf('usage-').filter((name) => name in (schemas.Usage!.properties as object));
    expectNames(
      sentence('caller-fields'),
      [...rowsOf('job-'), ...ofResult, ...ofUsage, ...namesIn('caller-fields')],
      [...fields('Job'), ...fields('Result'), ...fields('Usage')],
    );
    expectNames(sentence('caller-batch'), namesIn('caller-batch'), [...fields('AcceptedBatch'), ...fields('Batch')]);
    const bodyOf = (path: string) => paths[path].post.requestBody.content['application/json'].schema;
    const whole = Object.entries<Json>(components.schemas).filter(([name]) => !name.endsWith('Part'));
    const told = {
      ...Object.fromEntries(whole),
      VideoRequest: bodyOf('/v1/video/download'),
      AudioRequest: bodyOf('/v1/audio/download'),
      MetadataRequest: bodyOf('/v1/media/metadata'),
      BatchRequest: bodyOf('/v1/batches'),
    };
    const wanted = fieldsOfSchemas(told);
    expectNames('clients/typescript/src/api-types.ts, which make verify writes', fieldsOfTypescript(), wanted);
    expectNames(
      'clients/python/trawl_client/api_types.py, which make verify writes',
      fieldsOfPython(Object.keys(told)),
      wanted,
    );
  });

  it('has every webhook of the document in the event type of both clients', () => {
    const wanted = [...JSON.stringify(webhooks).matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name!);
    const expectType = (path: string, from: RegExp) => {
      const names = [...(from.exec(read(path))?.[1] ?? '').matchAll(/Webhook\w+/g)].map(([name]) => name);
      expectNames(`${path}, WebhookEvent`, names, wanted);
    };
    expectType('clients/typescript/src/webhook.ts', /^export type WebhookEvent = ([^;]+);/m);
    expectType('clients/python/trawl_client/webhook.py', /^WebhookEvent = (.+)$/m);
  });

  it('caller-headers: is the same header in the document and the contract', () => {
    expectNames(sentence('caller-headers'), namesIn('caller-headers'), Object.keys(answerHeaders));
  });

  it('caller-refusals caller-failures: is the same code in the API, its document, the contract and both clients', async () => {
    const answered = Object.values(operations).flatMap((methods) =>
      Object.values<OperationRow>(methods).flatMap(({ errors }) => errors),
    );
    expectNames('src/api/openapi-row.ts, publicRefusals', publicRefusals, answered);
    expectNames(sentence('caller-refusals'), namesIn('caller-refusals'), answered);
    expectNames(sentence('caller-failures'), namesIn('caller-failures'), Object.keys(failures));
    const blamed = Object.entries(failures).map(([code, { blame, retryable }]) =>
      [code, blame, String(retryable)].join(),
    );
    const refused = Object.entries(refusals).map(([code, { status }]) => {
      const isOurs = status >= 500;
      return [code, isOurs ? 'us' : 'caller', String(isOurs || status === 429)].join();
    });
    const expectListed = (path: string, row: RegExp) => {
      const listed = [...read(path).matchAll(row)].map(([, code, blame, retryable]) =>
        [code, blame, retryable?.toLowerCase()].join(),
      );
      expectNames(`${path}, which make verify writes`, listed, [...blamed, ...refused]);
    };
    expectListed('clients/typescript/src/error-codes.ts', /^ {2}(\w+): \{ blame: '(\w+)', retryable: (\w+) \},$/gm);
    expectListed('clients/python/trawl_client/error_codes.py', /^ {4}"(\w+)": \("(\w+)", (\w+)\),$/gm);
  });

  it('caller-exit: is the same exit code and option in trawl get, its help and the contract', () => {
    const numbers = (text: string) => [...text.matchAll(/\b(\d+)(?=\b)/g)].map(([, number]) => number!);
    const wanted = Object.values(exitCodes).map(String);
    expectNames(sentence('caller-exit'), numbers(rows.find(({ id }) => id === 'caller-exit')!.sentence), wanted);
    const help = 'src/client/get-options.ts, getHelp';
    expectNames(
      help,
      [...getHelp.slice(getHelp.indexOf('Exit code')).matchAll(/(\d+):/g)].map(([, number]) => number!),
      wanted,
    );
    const [inUsage, inHelp] = [getUsage.matchAll(/--([\w-]+)/g), getHelp.matchAll(/^ {2}--([\w-]+)/gm)];
    expectNames(
      'src/client/get-options.ts, getUsage',
      [...inUsage].map(([, name]) => name!),
      Object.keys(getOptions).filter((name) => name !== 'help'),
    );
    expectNames(
      help,
      [...inHelp].map(([, name]) => name!),
      Object.keys(getOptions),
    );
  });

  it('caller-tools: is the same tool of MCP in the code, docs/api.md and the contract', () => {
    const names = mcpTools.map(({ name }) => name);
    expectNames(sentence('caller-tools'), namesIn('caller-tools'), names);
    const [, told = ''] = /Its tools are ([^;]+);/.exec(read('docs/api.md').replaceAll('\n', ' ')) ?? [];
    expectNames(
      'docs/api.md',
      [...told.matchAll(/`(\w+)`/g)].map(([, name]) => name!),
      names,
    );
  });
});

/** Returns the paths that a source asks for, each as a pattern of those that its values may lead to. */
function listPaths(path: string, code: string): RegExp[] {
  const filled = path.endsWith('.py')
    ? code.replaceAll('{job_path(job_id)}', '/v1/jobs/{}').replaceAll(/\{[^{}\n]*\}/g, '{}')
    : code.replaceAll(/\$\{[^{}]*\}/g, '{}');
  const found = filled.match(/\/v1(?:\/(?:\w+|\{\}))+/g) ?? [];
  return found.map((one) => new RegExp(`^${one.replaceAll('{}', '[^/]+')}$`));
}
