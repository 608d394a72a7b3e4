import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { film, unknownId } from '../support/calls.ts';
import { expectErrorAnswer, sendRaw } from '../support/raw-http.ts';

const video = '/v1/video/download';
const long = (length: number) => 'a'.repeat(length);

describe('bad input', () => {
  let api: TestApi;
  let caller: ApiCaller;
  before(async () => {
    api = await startApi({ TRAWL_AUTH_FAILURES: '1000000' });
    caller = await api.addCaller({ credits: 1_000_000, stats: true });
  });
  after(() => api.stop());
  afterEach(async () => {
    expect((await api.get('/v1/usage', caller.key)).status, 'the next request').to.equal(200);
    expect(api.lines.filter((line) => line.includes('"level":"error"'))).to.deep.equal([]);
  });

  /** A request of this key over a connection of its own, which it wants closed. */
  const request = (start: string, { headers = '', body = '' } = {}) =>
    `${start} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-api-key: ${caller.key}\r\n${headers}\r\n${body}`;
  const post = (headers: string, body: string) => {
    const type = /^content-type/im.test(headers) ? '' : 'Content-Type: application/json\r\n';
    return request(`POST ${video}`, { headers: type + headers, body });
  };
  const json = (body: string) => post(`Content-Length: ${Buffer.byteLength(body)}\r\n`, body);
  const startedJobs = async () => (await api.get('/v1/jobs', caller.key, { limit: '100' })).json.jobs.length;

  describe('that is no HTTP, or bad HTTP', () => {
    const notHttp: [title: string, bytes: () => string | Uint8Array, status: number][] = [
      ['random bytes', () => Uint8Array.from({ length: 300 }, (_, n) => (n * 7919) % 256), 400],
      ['the hello of TLS', () => Buffer.from('16030100c8010000c40303', 'hex'), 400],
      ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
      ['an unknown version', () => request(`GET ${video}`).replace('HTTP/1.1', 'HTTP/3.0'), 400],
      ['an unknown method', () => request('NONSENSE /v1/usage'), 400],
      ['no Host', () => request('GET /v1/usage').replace('Host: x\r\n', ''), 400],
      ['two Hosts', () => request('GET /v1/usage', { headers: 'hOST: y\r\n' }), 400],
      ['a target without a slash', () => request('GET v1/usage'), 400],
      ['a target of another scheme', () => request('GET javascript:alert(1)'), 400],
      ['a target that names a broken host', () => request('GET http://[bad/v1/nonsense'), 404],
      ['a target that names a port above all', () => request('GET http://a:99999999/v1/nonsense'), 404],
      ['a target that is a star', () => request('OPTIONS *'), 404],
      ['a tunnel', () => request('CONNECT example.com:443'), 400],
      ['a tunnel to a route', () => request('CONNECT /v1/usage'), 400],
      ['TRACE', () => request('TRACE /v1/usage'), 405],
      ['a NUL in the target', () => request('GET /v1/usage?a=\0'), 400],
      ['a NUL in a header', () => request('GET /v1/usage', { headers: 'A: \0\r\n' }), 400],
      ['bytes above ASCII in the target', () => Buffer.from(request('GET /v1/jobs/\xff\xfe'), 'latin1'), 400],
      ['line ends without CR', () => request('GET /v1/usage').replaceAll('\r', ''), 400],
      ['a line end without LF', () => request('GET /v1/usage', { headers: 'A: b\rC: d\r\n' }), 400],
      ['a header that is folded', () => request('GET /v1/usage', { headers: 'A: b\r\n c\r\n' }), 400],
      ['a header of 40 KB', () => request('GET /v1/usage', { headers: `A: ${long(40_000)}\r\n` }), 431],
      ['10,000 headers', () => request('GET /v1/usage', { headers: 'A: b\r\n'.repeat(10_000) }), 431],
      ['a URL of 40 KB', () => request(`GET ${video}?query=${film}?${long(40_000)}`), 431],
      ['two keys', () => request('GET /v1/usage', { headers: `x-api-key: ${caller.key}\r\n` }), 401],
      [
        'an Idempotency-Key of odd bytes',
        () => request(`GET ${video}?query=${film}`, { headers: 'Idempotency-Key: \x80\r\n' }),
        400,
      ],
      ['an expectation and no body', () => post('Expect: a miracle\r\nContent-Length: 0\r\n', ''), 400],
      ['a body announced too large', () => post('Expect: 100-continue\r\nContent-Length: 20000\r\n', ''), 413],
    ];
    for (const [title, bytes, status] of notHttp) {
      it(`${title} is ${status} with a sentence`, async () => {
        const said = await sendRaw(api.url, bytes());
        expectErrorAnswer(said);
        expect(said.status, said.text).to.equal(status);
      });
    }

    it('a letter beyond ASCII in the URL, as curl sends it, and a control character in a header are told as such', async () => {
      const target = Buffer.from(request(`GET ${video}?query=https://example.com/\u00fc`), 'utf8');
      const { body: url } = await sendRaw(api.url, target);
      expect(JSON.parse(url).error).to.equal('Bad Request: the URL must begin with a slash and be percent-encoded');
      const { body: header } = await sendRaw(api.url, request('GET /v1/usage', { headers: 'A: \x01\r\n' }));
      expect(JSON.parse(header).error).to.equal('Bad Request: a header has a character that no header may have');
    });

    it('an absolute target and an Upgrade header are served as plain requests', async () => {
      const target = '/v1/usage?fields=held';
      for (const [start, headers] of [
        [`GET http://elsewhere.example${target}`, ''],
        [`GET ${target}`, 'Upgrade: websocket\r\n'],
      ] as const) {
        const { status, body, text } = await sendRaw(api.url, request(start, { headers }));
        expect([status, body], text).to.deep.equal([200, '{"held":0}']);
      }
    });
  });

  describe('that hides one request in another', () => {
    const inside = () => request(`GET ${video}?query=${film}`);
    const hidden: [title: string, bytes: () => string][] = [
      ['both lengths', () => post('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n', `0\r\n\r\n${inside()}`)],
      [
        'both lengths, in the other order',
        () => post('Transfer-Encoding: chunked\r\nContent-Length: 4\r\n', `0\r\n\r\n${inside()}`),
      ],
      ['two lengths', () => post('Content-Length: 2\r\nContent-Length: 3\r\n', `{}${inside()}`)],
      ['a length with a sign', () => post('Content-Length: +2\r\n', `{}${inside()}`)],
      ['a length below zero', () => post('Content-Length: -1\r\n', inside())],
      ['a length above all numbers', () => post(`Content-Length: ${'9'.repeat(30)}\r\n`, inside())],
      [
        'two encodings',
        () => post('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', `0\r\n\r\n${inside()}`),
      ],
      ['an unknown encoding', () => post('Transfer-Encoding: xchunked\r\n', `0\r\n\r\n${inside()}`)],
      ['a space before the colon', () => post('Transfer-Encoding : chunked\r\n', `0\r\n\r\n${inside()}`)],
      ['a size of a chunk that is no number', () => post('Transfer-Encoding: chunked\r\n', `zz\r\n${inside()}`)],
      [
        'a size of a chunk above all numbers',
        () => post('Transfer-Encoding: chunked\r\n', `${'f'.repeat(20)}\r\n${inside()}`),
      ],
      [
        'an endless extension of a chunk',
        () => post('Transfer-Encoding: chunked\r\n', `1;${long(20_000)}\r\n${inside()}`),
      ],
      ['a chunk without its end', () => post('Transfer-Encoding: chunked\r\n', `2\r\n{}${inside()}`)],
    ];
    for (const [title, bytes] of hidden) {
      it(`${title} is refused, and the hidden request does not run`, async () => {
        const before = await startedJobs();
        expectErrorAnswer(await sendRaw(api.url, bytes()));
        expect(await startedJobs()).to.equal(before);
      });
    }

    it('a tunnel asked for behind a request that closes its connection ends no process', async () => {
      const closing = request('GET /v1/usage', { headers: 'hOST: y\r\n' });
      for (const start of ['CONNECT //', 'CONNECT example.com:443']) {
        const { text } = await sendRaw(api.url, closing + request(start));
        expect(text).to.match(/^HTTP\/1\.1 400 /);
      }
    });

    it('a tunnel asked for over a connection that is reset ends no process', async () => {
      for (let n = 0; n < 20; n++) {
        const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
        await once(socket, 'connect');
        socket.write(request('CONNECT example.com:443'), () => socket.resetAndDestroy());
        await once(socket, 'close');
      }
    });

    it('garbage after a request never takes the place of its answer', async () => {
      const keptOpen = request(`GET /v1/jobs/${unknownId}`).replace('Connection: close\r\n', '');
      const { text } = await sendRaw(api.url, `${keptOpen}\x01 garbage\r\n\r\n`);
      expect(text).to.match(/^HTTP\/1\.1 404 [\s\S]*\}$/);
    });
  });

  describe('in parameters', () => {
    const wrong: [title: string, target: string, error: RegExp][] = [
      ['a NUL', `${video}?query=https://example.com/%00`, /^Bad Request: query must be /],
      ['CR and LF', `${video}?query=https://example.com/%0d%0aSet-Cookie:%20a=b`, /^Bad Request: query must be /],
      ['a NUL in an id', '/v1/jobs/%00', /^Bad Request: id must be /],
      ['a NUL in fields', '/v1/usage?fields=%00', /^Bad Request: fields must be /],
      ['broken percent-encoding', `${video}?query=${film}%zz`, /^Bad Request: the query has a percent sign/],
      ['half an encoding', `/v1/usage?a=%`, /^Bad Request: the query has a percent sign/],
      ['bytes that are no UTF-8', `${video}?query=${film}%ff`, /^Bad Request: the query has a percent sign/],
      ['a lone surrogate', `${video}?query=${film}%ED%A0%80`, /^Bad Request: the query has a percent sign/],
      ['the same in the path', '/v1/jobs/%ff', /^Bad Request: id must be a UUID$/],
      [
        'a URL of 16 KiB',
        `${video}?query=${film}?${long(16_384)}`,
        /^Bad Request: query must be a URL of at most 8192 /,
      ],
      ['a parameter given twice', `${video}?query=${film}&query=${film}`, /^Bad Request: query must be a single value/],
      ['a list in PHP style', `${video}?query[]=${film}`, /^Bad Request: query is required$/],
      ['a nested parameter', `${video}?query[a][b]=${film}`, /^Bad Request: query is required$/],
      ['__proto__', `${video}?__proto__=${film}&__proto__[query]=${film}`, /^Bad Request: query is required$/],
      ['constructor.prototype', `${video}?constructor.prototype.query=${film}`, /^Bad Request: query is required$/],
      ['10,000 parameters', `${video}?query=${film}${'&a'.repeat(10_000)}`, /^Bad Request: there are more than 1000 /],
      [
        'a parameter behind 1,000 empty ones, which the parser does not read',
        `${video}?query=${film}${'&'.repeat(1000)}max_duration=x`,
        /^Bad Request: there are more than 1000 /,
      ],
      [
        '10,000 fields',
        `/v1/usage?fields=${'a,'.repeat(10_000)}`,
        /^Bad Request: fields must be at most 2048 characters/,
      ],
      ['fields 2,000 levels deep', `/v1/usage?fields=${'a.'.repeat(2000)}a`, /^Bad Request: fields must be /],
      ['a number beyond numbers', `${video}?query=${film}&max_duration=1e999`, /^Bad Request: max_duration must be /],
      ['a cursor of somebody else', `/v1/jobs?cursor=${long(200)}`, /^Bad Request: cursor must be /],
    ];
    for (const [title, target, error] of wrong) {
      it(`${title} is 400 with a sentence`, async () => {
        const said = await sendRaw(api.url, request(`GET ${target}`));
        expectErrorAnswer(said);
        expect(said.status).to.equal(400);
        expect(JSON.parse(said.body).error).to.match(error);
      });
    }

    it('D85: a result link with a percent sign that encodes nothing is 403, as every altered one', async () => {
      const { status, body } = await sendRaw(api.url, request(`GET /files/${unknownId}/a%.mp4?exp=9999999999&sig=x`));
      expect([status, body]).to.deep.equal([403, '{"error":"Forbidden"}']);
    });

    it('fields named as inherited members select nothing', async () => {
      const names = ['__proto__', 'constructor', 'toString', 'credits.__proto__', 'held'];
      const { status, body } = await sendRaw(api.url, request(`GET /v1/usage?fields=${names.join()}`));
      expect([status, body]).to.deep.equal([200, '{"held":0,"credits":{}}']);
    });
  });

  describe('in bodies', () => {
    const url = JSON.stringify(film);
    const wrong: [title: string, bytes: () => string, status: number, error: RegExp][] = [
      ['a lone surrogate', () => json('{"query":"https://example.com/\\ud800"}'), 400, /^Bad Request: query must be /],
      ['a NUL', () => json('{"query":"https://example.com/\\u0000"}'), 400, /^Bad Request: query must be /],
      ['a list for a word', () => json(`{"query":[${url}]}`), 400, /^Bad Request: query must be a single value/],
      ['an object for a word', () => json(`{"query":{"toString":${url}}}`), 400, /^Bad Request: query must be /],
      ['__proto__', () => json(`{"__proto__":{"query":${url}}}`), 400, /^Bad Request: query is required$/],
      ['null', () => json(`{"query":null}`), 400, /^Bad Request: query must be /],
      [
        'a number beyond numbers',
        () => json(`{"query":${url},"max_duration":1e999}`),
        400,
        /^Bad Request: max_duration /,
      ],
      ['JSON that is cut', () => json('{"query":'), 400, /^Bad Request: the body must be a JSON object$/],
      ['JSON with a comma too many', () => json('{"a":1,}'), 400, /^Bad Request: the body must be a JSON object$/],
      ['two values', () => json('{}{}'), 400, /^Bad Request: the body must be a JSON object$/],
      ['16,000 brackets', () => json('['.repeat(16_000)), 400, /^Bad Request: the body must be a JSON object$/],
      ['a byte order mark in UTF-16', () => json('\u{feff}\u0000{'), 400, /^Bad Request: the body must be /],
      ['no type', () => json('{}').replace(/Content-Type.*\r\n/, ''), 400, /^Bad Request: the body must be of type /],
      ['another type', () => post('Content-Type: text/xml\r\nContent-Length: 4\r\n', '<a/>'), 400, /must be of type /],
      [
        'a type of 10 KB',
        () => post(`Content-Type: ${'a/b;'.repeat(2500)}\r\nContent-Length: 2\r\n`, '{}'),
        400,
        /type /,
      ],
      [
        'a compressed body',
        () => post('Content-Encoding: gzip\r\nContent-Length: 4\r\n', '\x1f\x08\0\0'),
        400,
        /^Bad Request: the body must be a JSON object without a Content-Encoding$/,
      ],
      ['one byte too many', () => json(`{"a":"${long(16_377)}"}`), 413, /^Payload Too Large$/],
      [
        '10,000 fields',
        () => json(JSON.stringify(Object.fromEntries([...Array(10_000).keys()].entries()))),
        413,
        /^Payload/,
      ],
    ];
    for (const [title, bytes, status, error] of wrong) {
      it(`${title} is ${status} with a sentence`, async () => {
        const said = await sendRaw(api.url, bytes());
        expectErrorAnswer(said);
        expect([said.status, JSON.parse(said.body).error]).to.satisfy(
          ([seen, words]: [number, string]) => seen === status && error.test(words),
          said.text,
        );
      });
    }

    it('endless chunks are 413 after 16 KiB, and the connection is closed', async () => {
      const piece = `2000\r\n${long(0x2000)}\r\n`;
      const said = await sendRaw(api.url, post('Transfer-Encoding: chunked\r\n', piece), { andThen: piece });
      expectErrorAnswer(said);
      expect(said.status).to.equal(413);
    });
  });
});
