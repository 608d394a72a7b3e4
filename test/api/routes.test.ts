import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { type Route, routes } from '../../src/api/routes.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { allCalls, creditPaths, expectRefused, film, keyedCalls, unknownId } from '../support/calls.ts';
import { until } from '../support/until.ts';

/** The paths that the contract and D13 name. */
const paths = {
  video: ['/v1/video/download', '/api/v1/video/download'],
  audio: ['/v1/audio/download', '/api/v1/audio/download'],
  metadata: ['/v1/media/metadata', '/api/v1/media/metadata'],
  job: ['/v1/jobs/:id', '/api/v1/jobs/:id', '/jobs/:id'],
  usage: ['/v1/usage', '/api/v1/usage', '/api/usage'],
  stats: ['/v1/stats', '/api/v1/stats'],
};

describe('routes', () => {
  let api: TestApi;
  let caller: ApiCaller;
  before(async () => {
    api = await startApi({ TRAWL_AUTH_FAILURES: '1000000' });
    caller = await api.addCaller({ stats: true });
  });
  after(() => api.stop());

  for (const [name, aliases] of Object.entries(paths)) {
    it(`paths versioning D13: ${name} has the paths ${aliases.join(', ')}`, () => {
      expect(routes[name as keyof typeof paths].paths).to.deep.equal(aliases);
    });
  }

  for (const path of ['/v1/video/download', '/api/v1/video/download', '/v1/audio/download', '/api/v1/audio/download']) {
    it(`operation-1 operation-2: POST ${path} starts a job as GET does`, async () => {
      const { status, json } = await api.call('POST', path, { key: caller.key, body: { query: film } });
      expect(status).to.equal(202);
      const { endpoint } = (await api.get(`/v1/jobs/${json.job_id}`, caller.key)).json;
      expect(endpoint).to.equal(path.replace(/^\/api/, ''));
    });
  }

  for (const path of ['/v1/media/metadata', '/api/v1/media/metadata']) {
    it(`operation-3: GET and POST ${path} answer the metadata`, async () => {
      const asked = [
        await api.get(path, caller.key, { query: film }),
        await api.call('POST', path, { key: caller.key, body: { query: film } }),
      ];
      for (const { status, json } of asked) expect([status, json.metadata.id]).to.deep.equal([200, 'f1']);
    });
  }

  for (const route of Object.values<Route>(routes)) {
    it(`D3 D77: ${route.name} answers OPTIONS with 204 and Allow, and 405 to every other method`, async () => {
      const head = route.methods.includes('GET') && !creditPaths.includes(route.paths[0]);
      const allow = [...route.methods, ...(head ? ['HEAD'] : [])].join(', ');
      for (const pattern of route.paths) {
        const path = pattern.replaceAll(/:\w+/g, unknownId);
        const options = await api.call('OPTIONS', path, {});
        expect([options.status, options.headers.get('allow'), options.text]).to.deep.equal([204, allow, '']);
        const others = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].filter(
          (one) => !allow.split(', ').includes(one),
        );
        for (const method of others) {
          const answer = await api.call(method, path, { key: caller.key });
          expect([method, answer.status, answer.headers.get('allow')]).to.deep.equal([method, 405, allow]);
          expect(answer.headers.get('x-error-code')).to.equal('method_not_allowed');
        }
      }
    });
  }

  it('D77: HEAD of a free route has the status and headers of GET, and no body', async () => {
    for (const path of ['/v1/usage', '/v1/jobs', `/v1/jobs/${unknownId}`, '/v1/stats?engine=video', '/openapi.json']) {
      const [get, head] = [await api.get(path, caller.key), await api.call('HEAD', path, { key: caller.key })];
      const told = ({ headers }: typeof get) =>
        ['content-type', 'content-length', 'cache-control'].map((n) => headers.get(n));
      expect([head.status, head.text, told(head)], path).to.deep.equal([get.status, '', told(get)]);
    }
  });

  const unknown =
    '/v1 /api /v1/nothing /v2/usage /v1/usage/ /V1/usage //v1/usage /v1/jobs/x/y/z /docs/ /admin /healthz /readyz /metrics /.env /%ZZ';
  for (const path of unknown.split(' ')) {
    it(`rule-5 D77: ${path} is 404 with a key, with a wrong one and without`, async () => {
      for (const key of [caller.key, 'wrong', null]) {
        expectRefused(await api.get(path, key), 404, 'not_found', 'Not Found');
        expect((await api.call('OPTIONS', path, { key })).status).to.equal(404);
      }
    });
  }

  it('paths D13: no path redirects, with or without a slash at its end', async () => {
    for (const { method, path } of allCalls) {
      for (const end of ['', '/']) {
        const { status, headers } = await api.call(method, path + end, { key: caller.key });
        expect([status >= 300 && status < 400, status === 202 || !headers.has('location')]).to.deep.equal([
          false,
          true,
        ]);
      }
    }
  });

  it('auth-8: no answer has a CORS header, so pages of other origins cannot read it', async () => {
    const headers = { origin: 'https://example.com', 'access-control-request-method': 'GET' };
    for (const { method, path } of allCalls) {
      const answer = await api.call(method, path, { key: caller.key, headers });
      const allowing = [...answer.headers.keys()].filter((name) => name.startsWith('access-control'));
      expect(allowing, `${method} ${path}`).to.deep.equal([]);
    }
  });

  it('D3: every answer has no-store and nosniff, and no ETag, Server or X-Powered-By', async () => {
    for (const { method, path } of [...keyedCalls, { method: 'GET', path: '/v1/nothing' }]) {
      const { headers } = await api.call(method, path, { key: caller.key });
      expect(headers.get('cache-control')).to.equal('no-store');
      expect(headers.get('x-content-type-options')).to.equal('nosniff');
      expect([headers.has('etag'), headers.has('x-powered-by'), headers.has('server')]).to.deep.equal([
        false,
        false,
        false,
      ]);
    }
  });

  it('D3: a call with an If-None-Match of * gets its whole answer, never a 304', async () => {
    for (const path of [`/v1/video/download?query=${film}`, '/v1/usage', '/openapi.json']) {
      const answer = await api.call('GET', path, { key: caller.key, headers: { 'if-none-match': '*' } });
      expect([answer.status, answer.text === ''], path).to.deep.equal([path.includes('download') ? 202 : 200, false]);
    }
  });

  it('every answer has the x-request-id of its request, or a new one when that is missing or malformed', async () => {
    const ask = async (id: string) => {
      const answer = await api.call('GET', '/v1/usage', { key: caller.key, headers: { 'x-request-id': id } });
      return answer.headers.get('x-request-id');
    };
    expect(await ask('abc-1.2_X')).to.equal('abc-1.2_X');
    const made = [await ask(''), await ask('a b'), await ask('x'.repeat(65)), await ask('<script>')];
    expect(new Set(made).size).to.equal(4);
    for (const id of made) expect(id).to.match(/^[0-9a-f-]{36}$/);
    expect((await api.get('/nothing')).headers.get('x-request-id')).to.match(/^[0-9a-f-]{36}$/);
  });

  it('an answer that its route writes by itself has the x-request-id of its request and nosniff', async () => {
    const { json } = await api.get('/v1/video/download', caller.key, { query: film });
    for (const [method, path, body] of [
      ['OPTIONS', '/v1/usage', undefined],
      ['HEAD', `/v1/jobs/${json.job_id}/events`, undefined],
      ['GET', '/', undefined],
      ['GET', '/docs', undefined],
      ['GET', '/docs/api-docs.js', undefined],
      ['POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }],
    ] as const) {
      const answer = await api.call(method, path, { key: caller.key, headers: { 'x-request-id': 'own' }, body });
      const told = ['x-request-id', 'x-content-type-options'].map((name) => answer.headers.get(name));
      expect([answer.status < 300, ...told], path).to.deep.equal([true, 'own', 'nosniff']);
    }
  });

  it('log-entry: the request log has each call with endpoint, status, duration, address and credits, without aliases and ids', async () => {
    const { key, account } = await api.addCaller();
    const began = performance.now();
    await api.get('/api/usage', key);
    await api.get(`/jobs/${unknownId}`, key);
    await api.call('DELETE', `/api/v1/jobs/${unknownId}`, { key });
    await api.call('POST', '/api/v1/video/download', { key, body: {} });
    const callsMs = performance.now() - began;
    await until(async () => (await readLines(api.store, account, 9)).length === 4, 5, 'the lines');
    const lines = await readLines(api.store, account, 9);
    expect(lines.map(({ endpoint, status }) => `${endpoint} ${status}`).sort()).to.deep.equal([
      'DELETE /v1/jobs/{id} 404',
      'GET /v1/jobs/{id} 404',
      'GET /v1/usage 200',
      'POST /v1/video/download 400',
    ]);
    for (const line of lines) {
      expect(line).to.include({ ip: '127.0.0.1', credits: 0 });
      expect(line.duration_ms).to.be.within(0, Math.ceil(callsMs));
      expect(Math.abs(line.at - api.store.clock.now())).to.be.below(10_000);
    }
  });

  describe('hostile requests', () => {
    const port = () => Number(new URL(api.url).port);
    const head = (target: string) =>
      `GET ${target} HTTP/1.1\r\nHost: x\r\nx-api-key: ${caller.key}\r\nConnection: close\r\n\r\n`;

    const odd =
      '%00 a%00b %0d%0aSet-Cookie:x=1 %ED%A0%80 %FF%FE % %ZZ %E2%80%AE __proto__ %F0%9F%98%80 ../../x ;|&'.split(' ');
    for (const text of odd) {
      it(`${text} is refused or taken as plain text anywhere in a URL`, async () => {
        for (const target of [
          `/v1/video/download?query=${text}`,
          `/v1/video/download?query=${film}&video_quality=${text}`,
          `/v1/media/metadata?query=https://example.com/${text}`,
          `/v1/usage?fields=${text}`,
          `/v1/usage?${text}=${text}`,
          `/v1/jobs/${text}`,
          `/v1/jobs?cursor=${text}`,
          `/v1/stats?engine=${text}&path=${text}`,
          `/files/${text}/${text}?exp=${text}&sig=${text}`,
          `/${text}`,
        ]) {
          const answer = await raw(port(), head(target));
          expect(answer, target).to.match(/^HTTP\/1\.1 (200|202|400|403|404) /);
          expect(answer, target).not.to.match(/^set-cookie/im);
          if (!answer.startsWith('HTTP/1.1 2')) expect(answer, target).to.match(/^x-error-code: \w+\r$/m);
        }
        expect(api.lines.filter((line) => line.includes('"level":"error"'))).to.deep.equal([]);
      });
    }

    const notHttp: [what: string, bytes: string, status: number][] = [
      ['no HTTP', '\x00\x01\x02\r\n\r\n', 400],
      ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01', 400],
      ['no host', 'GET /v1/usage HTTP/1.1\r\n\r\n', 400],
      ['a NUL in a header', 'GET /v1/usage HTTP/1.1\r\nHost: x\r\nx-api-key: a\x00b\r\n\r\n', 400],
      [
        'two lengths',
        'POST /v1/video/download HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n',
        400,
      ],
      ['a length below zero', 'POST /v1/video/download HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n', 400],
      ['40 KB of header', `GET /v1/usage HTTP/1.1\r\nHost: x\r\nA: ${'b'.repeat(40_000)}\r\n\r\n`, 431],
      ['40 KB of URL', `GET /v1/usage?${'b'.repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431],
    ];
    for (const [what, bytes, status] of notHttp) {
      it(`${what} is ${status}, and the next caller is served`, async () => {
        expect(await raw(port(), bytes)).to.match(new RegExp(`^HTTP/1\\.1 ${status} `));
        expect((await api.get('/v1/usage', caller.key)).status).to.equal(200);
      });
    }

    it('a caller that disconnects in the middle of a body is counted as 499, and nothing is logged', async () => {
      const before = api.lines.length;
      const socket = connect(port(), '127.0.0.1');
      socket.write('POST /v1/video/download HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{');
      const counted = async () => /route="video",status="499"\} 1$/m.test(await api.metrics.registry.metrics());
      await new Promise((resolve) => socket.once('connect', resolve));
      setImmediate(() => socket.destroy());
      await until(counted, 5, 'the request to be counted');
      expect(api.lines.slice(before)).to.deep.equal([]);
    });

    it('a chunked body of 3 MB is 413, or 200 under soft_fail, and its connection ends', async () => {
      const body = 'x'.repeat(3_000_000);
      for (const [query, status] of [
        ['', 413],
        ['?soft_fail=1', 200],
      ] as const) {
        const text = `POST /v1/video/download${query} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`;
        const answer = await raw(port(), `${text}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
        expect(answer)
          .to.match(new RegExp(`^HTTP/1\\.1 ${status} `))
          .and.match(/\{"error":"Payload Too Large"\}$/);
      }
    });
  });

  it('__proto__ in a JSON body sets no parameter and pollutes no prototype', async () => {
    for (const body of [
      '{"__proto__":{"query":"http://x/","polluted":1}}',
      '{"constructor":{"prototype":{"polluted":1}}}',
    ]) {
      const headers = { 'content-type': 'application/json' };
      const answer = await api.call('POST', '/v1/video/download', { key: caller.key, body, headers });
      expectRefused(answer, 400, 'bad_request', 'Bad Request: query is required');
    }
    expect(({} as Record<string, unknown>).polluted).to.equal(undefined);
  });
});

/** Sends bytes to a server, and returns its output until it closes the connection. */
function raw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket: Socket = connect(port, '127.0.0.1');
    let said = '';
    socket.setEncoding('utf8').on('data', (piece) => {
      said += piece;
    });
    // The server may close before it has read all.
    socket.on('error', () => {});
    socket.once('close', () => resolve(said));
    socket.write(bytes, 'latin1');
  });
}
