import { expect } from 'chai';
import { readGetOrder } from '../../src/client/get-order.ts';
import { mcpTools } from '../../src/mcp/mcp-tools.ts';
import { creditParameters } from '../../src/model/request-parameters.ts';
import type { Json } from '../support/json.ts';
import { expectNames } from '../support/same-names.ts';
import { read } from '../support/tree.ts';

/** Parameters that a caller on a terminal has no use for: it waits itself, and chooses the sound by --audio. */
const leftOut = ['download_type', 'webhook_url', 'webhook_authorization'];
const kinds = ['video', 'audio'] as const;
/** Arguments of the tool `download` that are no parameters of the API: its own, and the header Idempotency-Key. */
const ofTheTool = ['idempotency_key', 'kind', 'wait_seconds'];

describe('the parameters of a download', () => {
  const document: Json = JSON.parse(read('docs/openapi.json'));
  const namesOf = (kind: (typeof kinds)[number]) => Object.keys(creditParameters[kind]).sort();

  for (const kind of kinds) {
    it(`of ${kind} are the same in the API, its document, trawl get and both clients`, () => {
      const { get, post } = document.paths[`/v1/${kind}/download`];
      const asked = get.parameters.filter((one: Json) => one.in === 'query').map((one: Json) => one.name);
      const global = ['soft_fail', 'is_async', 'fields'];
      const inBody = Object.keys(post.requestBody.content['application/json'].schema.properties);
      for (const names of [asked, inBody])
        expectNames('docs/openapi.json, which make verify writes', names, [...namesOf(kind), ...global]);
      const order = (...args: string[]) =>
        readGetOrder([
          'https://example.com',
          ...(kind === 'audio' ? ['--audio'] : []),
          '--quality',
          'best',
          '--format',
          kind === 'audio' ? 'mp3' : 'mp4',
          ...args,
        ]);
      const given = [order('--max-duration', '1'), order('--start', '1', '--end', '2')].flatMap((one) =>
        one === 'help' ? [] : Object.keys(one.parameters),
      );
      expectNames('src/client/get-order.ts or `leftOut` of this test', ['query', ...given, ...leftOut], namesOf(kind));
      const inTypescript = read('clients/typescript/src/api-types.ts');
      const inPython = read('clients/python/trawl_client/api_types.py');
      for (const name of namesOf(kind)) {
        expect(inTypescript, `clients/typescript: ${name}`).to.match(new RegExp(`^ +${name}\\??: `, 'm'));
        expect(inPython, `clients/python: ${name}`).to.match(new RegExp(`^ +${name}: `, 'm'));
      }
    });
  }

  it('are the arguments of the tool download', () => {
    const names = Object.keys(mcpTools.find(({ name }) => name === 'download')?.inputSchema.properties as object);
    const wanted = kinds.flatMap(namesOf).filter((name) => !leftOut.includes(name));
    expectNames('src/mcp/mcp-tools.ts or `leftOut` of this test', names, [...wanted, ...ofTheTool]);
  });
});
