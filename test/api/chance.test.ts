import { expect } from 'chai';
import fc from 'fast-check';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { film, keyedCalls, unknownId } from '../support/calls.ts';
import { type RawAnswer, sendRaw } from '../support/raw-http.ts';

const runs = process.env.ROUNDS === undefined ? 150 : 5000;
const video = '/v1/video/download';

describe('random input', () => {
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

  const request = (start: string, rest = '\r\n') =>
    `${start} HTTP/1.1\r\nHost: x\r\nx-api-key: ${caller.key}\r\n${rest}`;
  const body = `{"query":"${film}"}`;

  const anyText = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom(
      film,
      '',
      '-1',
      '1e309',
      'NaN',
      'true',
      '__proto__',
      '../..',
      unknownId,
      '\0',
      '\'"<>',
      '\u{10ffff}',
    ),
  );
  const anyName = fc.oneof(
    anyText,
    fc.constantFrom(
      ...'query fields soft_fail is_async x_api_key wait limit cursor status view engine path max_duration'.split(' '),
      ...'download_type video_quality webhook_url webhook_authorization exp sig'.split(' '),
    ),
  );
  const anyByte = fc.tuple(fc.nat(2000), fc.nat(255));

  const expectNoFault = ({ status, text }: RawAnswer) => {
    if (status !== null) expect(status, text.slice(0, 500)).to.be.below(500);
  };

  it('random input that changes bytes of good requests is never answered with a 5xx, nor makes a connection hang', async () => {
    const length = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const good = [
      request(`GET ${video}?query=${film}`),
      request(`POST ${video}`, `${length}${body}`),
      request('GET /v1/usage?fields=held'),
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...good),
        fc.array(anyByte, { minLength: 1, maxLength: 8 }),
        async (text, changes) => {
          const bytes = Buffer.from(text);
          for (const [place, byte] of changes) bytes[place % bytes.length] = byte;
          expectNoFault(await sendRaw(api.url, bytes, { end: true }));
        },
      ),
      { numRuns: runs },
    );
  });

  it('random input in the parameters of any route is answered below 500, errors with a sentence', async () => {
    const encode = (text: string) => encodeURIComponent(text.toWellFormed());
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...keyedCalls),
        fc.array(fc.tuple(anyName, anyText)),
        fc.boolean(),
        async (call, given, inBody) => {
          const { wait: _, ...fields } = Object.fromEntries(given);
          const query = given
            .filter(([name]) => name !== 'wait')
            .map((pair) => pair.map(encode).join('='))
            .join('&');
          const answer = await api.call(call.method, inBody ? call.path : `${call.path}?${query}`, {
            key: caller.key,
            ...(inBody && call.method === 'POST' ? { body: fields } : {}),
          });
          expect(answer.status, answer.text).to.be.below(500);
          if (answer.status >= 400) expect(Object.keys(answer.json)).to.deep.equal(['error']);
        },
      ),
      { numRuns: runs },
    );
  });
});
