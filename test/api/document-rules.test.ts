import { createConfig, lintFromString } from '@redocly/openapi-core';
import spectral, { type RulesetDefinition } from '@stoplight/spectral-core';
import rulesets from '@stoplight/spectral-rulesets';
import { expect } from 'chai';
import { makeOpenapi } from '../../src/api/openapi.ts';
import { answerHeaders } from '../../src/api/openapi-headers.ts';
import { operations } from '../../src/api/openapi-operations.ts';
import { listRows } from '../support/doc-page.ts';
import type { Json } from '../support/json.ts';
import { read } from '../support/tree.ts';

const text = `${JSON.stringify(makeOpenapi('https://trawl.example'), null, 2)}\n`;
const oas = rulesets.oas as unknown as RulesetDefinition;

describe('the document of the API', () => {
  it('docs/openapi.json is as it is generated', () => {
    expect(read('docs/openapi.json')).to.equal(text);
  });

  it('Spectral finds nothing', async () => {
    expect(await judgeBySpectral(JSON.parse(text))).to.deep.equal([]);
    const { info, ...rest } = JSON.parse(text);
    expect(await judgeBySpectral({ ...rest, info: { ...info, contact: undefined } })).to.deep.equal([
      'info-contact at info',
    ]);
  });

  it('Redocly finds nothing', async () => {
    expect(await judgeByRedocly(text)).to.deep.equal([]);
    const unlicensed = JSON.parse(text);
    delete unlicensed.info.license;
    expect(await judgeByRedocly(JSON.stringify(unlicensed))).to.deep.equal(['info-license at #/info']);
  });

  it('gives an example of every JSON answer and every JSON body', () => {
    const without = Object.entries<Json>(JSON.parse(text).paths).flatMap(([path, methods]) =>
      Object.entries<Json>(methods).flatMap(([method, { requestBody, responses }]) =>
        [requestBody, ...Object.values<Json>(responses)]
          .map((one) => one?.content?.['application/json'])
          .filter((content) => content !== undefined && content.example === undefined)
          .map(() => `${method} ${path}`),
      ),
    );
    expect(without).to.deep.equal(['get /openapi.json']);
  });

  it('has the body of an error at 410 and 416 of a result link, which answer one', () => {
    const { responses } = (JSON.parse(text) as Json).paths['/files/{job}/{name}'].get;
    for (const status of ['410', '416'])
      expect(responses[status].content['application/json'].schema).to.deep.equal({
        $ref: '#/components/schemas/Error',
      });
  });

  it('lists the statuses with which a result link answers an error, 500 for a file that is another one included', () => {
    const { responses } = (JSON.parse(text) as Json).paths['/files/{job}/{name}'].get;
    const errors = Object.keys(responses).filter((status) => Number(status) >= 400);
    expect(errors).to.have.members(['403', '404', '405', '408', '410', '416', '429', '431', '500', '503']);
  });

  it('gives a call that starts a job the accepted answer as its lowest success: clients in Java took the 202 for an error', () => {
    const { paths } = JSON.parse(text) as Json;
    for (const path of ['/v1/video/download', '/v1/audio/download', '/v1/jobs/{id}/retry', '/v1/batches'])
      for (const { operationId, responses } of Object.values<Json>(paths[path]))
        expect(Object.keys(responses).toSorted()[0], operationId).to.equal('202');
  });

  it('gives bytes of files and counts of views 64 bits: a file of 3 GB overflowed the generated clients of Java and Rust', () => {
    const { Result, Metadata } = (JSON.parse(text) as Json).components.schemas;
    const { like_count, view_count } = Metadata.properties;
    for (const schema of [Result.properties.bytes, like_count.anyOf[0], view_count.anyOf[0]])
      expect(schema).to.include({ type: 'integer', format: 'int64' });
  });

  it('tells the parameters of a result link, without which it is refused', () => {
    const { paths } = JSON.parse(text) as Json;
    const { example } = paths['/v1/jobs/{id}'].get.responses['200'].content['application/json'];
    const told = (paths['/files/{job}/{name}'].get.parameters as Json[]).filter((one) => one.in === 'query');
    expect(told.map(({ name }) => name)).to.deep.equal([...new URL(example.result.response).searchParams.keys()]);
  });

  it('tells the headers of docs/api.md, and no others', () => {
    const rows = listRows(read('docs/api.md'), 'header').flatMap(({ cells }) =>
      [...cells[0]!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!),
    );
    expect(Object.keys(answerHeaders).toSorted()).to.deep.equal(rows.toSorted());
  });

  it('gives webhooks a tag of their own: generators write one file for each tag, and webhooks replaced that of the downloads', () => {
    const { paths, webhooks } = JSON.parse(text) as Json;
    const tagsOf = (part: Json) =>
      Object.values<Json>(part).flatMap((methods) => Object.values<Json>(methods).flatMap(({ tags }) => tags));
    expect(new Set(tagsOf(webhooks))).to.deep.equal(new Set(['Webhooks']));
    expect(tagsOf(paths)).not.to.include('Webhooks');
  });

  it('gives no schema a list of types, which generators of Go refuse', () => {
    const listed: unknown[] = [];
    JSON.parse(text, (name, value) => (name === 'type' && Array.isArray(value) ? listed.push(value) : value));
    expect(listed).to.deep.equal([]);
  });

  it('gives no schema the name of a field of it with an enum, which generators of Rust take for one type', () => {
    const { schemas } = (JSON.parse(text) as Json).components;
    const twice = Object.entries<Json>(schemas).filter(
      ([name, { properties }]) => properties?.[name.toLowerCase()]?.enum !== undefined,
    );
    expect(twice.map(([name]) => name)).to.deep.equal([]);
  });

  it('names operations by a verb', () => {
    const ids = Object.values(operations).flatMap((methods) => Object.values<{ id: string }>(methods));
    for (const { id } of ids)
      expect(id).to.match(/^(?:call|delete|download|get|list|read|retry|start|stream)[A-Z]\w+$/);
  });
});

async function judgeBySpectral(document: object): Promise<string[]> {
  const judge = new spectral.Spectral();
  judge.setRuleset({ extends: [[oas, 'recommended']] });
  const found = await judge.run(JSON.parse(JSON.stringify(document)));
  return found.map(({ code, path }) => `${code} at ${path.join('.')}`);
}

async function judgeByRedocly(source: string): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended'] });
  const found = await lintFromString({ source, config, absoluteRef: '/openapi.json' });
  return found.map(({ ruleId, location: [place] }) => `${ruleId} at ${place?.pointer}`);
}
