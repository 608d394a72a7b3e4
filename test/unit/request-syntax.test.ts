import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import {
  escapedPath,
  hasBody,
  hasOneHost,
  judgeQuery,
  originTarget,
  readJsonBody,
  requireSmallBody,
} from '../../src/api/request-syntax.ts';

const json = 'application/json';
const request = (bytes: string | Buffer, headers: object) =>
  Object.assign(Readable.from([Buffer.from(bytes)]), { headers }) as unknown as IncomingMessage;

describe('the syntax of a request', () => {
  for (const [target, origin] of [
    ['/v1/usage?a=1', '/v1/usage?a=1'],
    ['http://host:80/v1/usage?a=1', '/v1/usage?a=1'],
    ['HTTPS://host', '/'],
    ['http://host?a=1', '/?a=1'],
    ['/x/http://host/', '/x/http://host/'],
  ]) {
    it(`the target ${target} means ${origin}`, () => expect(originTarget(target!)).to.equal(origin));
  }

  for (const [target, same] of [
    ['/v1/jobs/%zz?a=%zz', '/v1/jobs/%25zz?a=%zz'],
    ['/files/%20/%ff', '/files/%2520/%25ff'],
    ['/v1/jobs/%zz#%zz', '/v1/jobs/%25zz#%zz'],
  ]) {
    it(`the path of ${target}, escaped, is that of ${same}`, () => expect(escapedPath(target!)).to.equal(same));
  }

  for (const [rawHeaders, httpVersion, isOne] of [
    [['Host', 'a'], '1.1', true],
    [['host', 'a', 'HOST', 'b'], '1.1', false],
    [['accept', 'host'], '1.1', false],
    [['Date', 'a', 'x-a', 'b', 'Host', 'c'], '1.1', true],
    [[], '1.1', false],
    [[], '1.0', true],
    [['host', 'a', 'host', 'b'], '1.0', false],
  ] as const) {
    it(`HTTP ${httpVersion} with the headers ${rawHeaders.join()} has ${isOne ? 'one Host' : 'none or two'}`, () => {
      expect(hasOneHost({ rawHeaders, httpVersion } as unknown as IncomingMessage)).to.equal(isOne);
    });
  }

  for (const [headers, expected] of [
    [{}, false],
    [{ 'content-length': '0' }, false],
    [{ 'content-length': '1' }, true],
    [{ 'transfer-encoding': 'chunked' }, true],
  ] as const) {
    it(`a request with the headers ${JSON.stringify(headers)} has ${expected ? 'a body' : 'no body'}`, () => {
      expect(hasBody({ headers } as unknown as IncomingMessage)).to.equal(expected);
    });
  }

  it('a query is refused above a thousand parameters and with a percent sign that encodes nothing', () => {
    expect(judgeQuery('/%zz')).to.equal(null);
    expect(judgeQuery(`/?${'a&'.repeat(998)}b=%20`)).to.equal(null);
    expect(judgeQuery(`/?${'a=&'.repeat(999)}b`)).to.equal(null);
    expect(judgeQuery(`/?${'&'.repeat(999)}b`)).to.equal(null);
    for (const filler of ['a=&', '&'])
      expect(judgeQuery(`/?${filler.repeat(1000)}b`)).to.match(/^Bad Request: there are more than 1000 parameters$/);
    expect(judgeQuery('/?a=%ff')).to.match(/^Bad Request: the query has a percent sign/);
  });

  for (const [what, bytes, type, expected] of [
    ['no bytes', '', undefined, { parameters: {}, fault: null }],
    ['an object', '{"a":1}', 'Application/JSON; charset="UTF-8"', { parameters: { a: 1 }, fault: null }],
    ['JSON in UTF-8 that is spelled in another way', '{}', `${json} ;charset=utf8`, { parameters: {}, fault: null }],
    ['JSON with another parameter', '{}', `${json}; profile=a`, { parameters: {}, fault: null }],
    ['JSON in another charset', '{}', `${json};charset=latin1`, /type application\/json in UTF-8$/],
    ['JSON in a charset that begins as UTF-8', '{}', `${json};charset=utf-8x`, /type application\/json in UTF-8$/],
    ['text', '{}', 'text/plain', /type application\/json in UTF-8$/],
    ['an object with bytes that are no UTF-8', Buffer.from('{"a":"\xff"}', 'latin1'), json, /must be a JSON object$/],
    ['JSON without a content type', '{}', undefined, /type application\/json in UTF-8$/],
    ['a list', '[]', json, /must be a JSON object$/],
    ['null', 'null', json, /must be a JSON object$/],
    ['a number', '1', json, /must be a JSON object$/],
    ['half an object', '{', json, /must be a JSON object$/],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), json, /must be a JSON object$/],
  ] as const) {
    it(`a body of ${what} is ${expected instanceof RegExp ? 'refused' : 'read'}`, async () => {
      const body = await readJsonBody(request(bytes, { 'content-type': type }));
      if (expected instanceof RegExp) expect(body.fault).to.match(expected);
      else expect(body).to.deep.equal(expected);
    });
  }

  for (const [body, name] of [
    ['{"start":1,"x":{"start":2},"items":[{"start":3},{"start":4}],"y":"\\"start\\":","z":"start"}', null],
    ['{"x":1,"query":2,"x":3}', null],
    ['{"query":1,"x":2,"query":1}', 'query'],
    ['{"query":1,"\\u0071uery" :2}', 'query'],
    ['{"items":[{"end":1},{"end":[{}],"end":[]}]}', 'end'],
    ['{"x_api_key":"a","x_api_key":"b"}', 'x_api_key'],
    ['{"items":[],"items":[]}', 'items'],
    ['{"x":{"x":{"x":{"query":1,"query":2}}}}', null],
  ] as const) {
    it(`a body of ${body} is ${name === null ? 'read' : `refused for its second ${name}`}`, async () => {
      const { fault, parameters } = await readJsonBody(request(body, { 'content-type': json }));
      expect(fault).to.equal(name && `Bad Request: ${name} must be a single value, given once`);
      expect(parameters).to.deep.equal(JSON.parse(body));
    });
  }

  it('a body above 16 KiB is refused while it is read, and before that where its length is declared', async () => {
    const error = await readJsonBody(request('x'.repeat(16_385), {})).catch((caught) => caught);
    expect(error).to.include({ code: 'payload_too_large' });
    expect(() => requireSmallBody(request('', { 'content-length': '16385' }))).to.throw('Payload Too Large');
    expect(() => requireSmallBody(request('', { 'content-length': '16384' }))).not.to.throw();
  });
});
