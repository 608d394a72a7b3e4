import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mock } from 'node:test';
import { expect } from 'chai';
import { type ResultFile, Trawl } from '../../clients/typescript/src/trawl.ts';
import { until } from '../support/until.ts';

const half = Buffer.alloc(4096, 'a');
const whole = Buffer.concat([half, half]);

describe('the stream of a file, in typescript', () => {
  let server: Server;
  /** Answers requests of the file; each is noted. */
  let answerFile: (response: ServerResponse, range: string | undefined) => void;
  let asked: IncomingMessage[];

  beforeEach(async () => {
    asked = [];
    server = createServer((request, response) => {
      if (request.url !== '/file') return void response.end(JSON.stringify(jobOf(request.headers.host!)));
      asked.push(request);
      answerFile(response, request.headers.range);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => {
    mock.timers.reset();
    server.closeAllConnections();
    server.close();
  });

  const fileOf = (patienceSeconds: number, own: typeof fetch = fetch): Promise<ResultFile> => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return new Trawl({ url, key: 'k', patienceSeconds, fetch: own }).wait('1', { wait: 'poll' });
  };
  const read = async (reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Buffer> => {
    const chunks: Uint8Array[] = [];
    for (let next = await reader.read(); !next.done; next = await reader.read()) chunks.push(next.value);
    return Buffer.concat(chunks);
  };

  it('closes its connection at once when its reader cancels it while the service is silent', async () => {
    let isClosed = false;
    answerFile = (response) => {
      response.once('close', () => (isClosed = true)).write(half);
    };
    const reader = (await fileOf(30)).stream().getReader();
    await reader.read();
    const next = reader.read();
    await until(() => asked.length === 1, 10, 'the file is asked for');
    await Promise.all([reader.cancel(), until(() => isClosed, 10, 'the connection is closed')]);
    expect([await next, asked.length]).to.deep.equal([{ done: true, value: undefined }, 1]);
  });

  it('goes on where a connection broke although its reader paused for longer than the patience', async () => {
    let isBroken = false;
    answerFile = (response, range) => {
      if (range !== undefined) return void response.writeHead(206).end(half);
      response.writeHead(200, { 'content-length': whole.length });
      response.write(half, () => response.destroy());
      response.once('close', () => (isBroken = true));
    };
    const reader = (await fileOf(0.5)).stream().getReader();
    await until(() => isBroken, 10, 'the connection has broken');
    const paused = performance.now();
    await until(() => performance.now() > paused + 600, 10, 'the patience is over');
    expect(await read(reader)).to.deep.equal(whole);
  });

  it('takes neither the page of a proxy nor another part of a file for the part that was asked for', async () => {
    const page = '<html>Please sign in</html>';
    const answers: ((response: ServerResponse) => void)[] = [
      (response) => response.setHeader('content-length', page.length).end(page),
      (response) => response.setHeader('content-type', 'text/html').end(page),
      (response) => response.writeHead(200, { 'content-length': whole.length }).write(half, () => response.destroy()),
      (response) => response.writeHead(206, { 'content-range': `bytes 0-4095/${whole.length}` }).end('b'.repeat(4096)),
      (response) => response.writeHead(206, { 'content-range': `bytes 4096-8191/${whole.length}` }).end(half),
    ];
    answerFile = (response) => answers.shift()?.(response);
    const bytes = await read((await fileOf(20)).stream().getReader());
    expect([bytes.equals(whole), answers.length]).to.deep.equal([true, 0]);
  });

  it('keeps its connection while its reader pauses for minutes', async () => {
    let pulls = 0;
    const ownFetch: typeof fetch = async (input, init) => {
      if (!String(input).endsWith('/file')) return fetch(input, init);
      const pull = (sink: ReadableStreamDefaultController<Uint8Array>) => {
        pulls += 1;
        sink.enqueue(half);
      };
      const start = (sink: ReadableStreamDefaultController<Uint8Array>) =>
        init?.signal?.addEventListener('abort', () => sink.error(init.signal?.reason));
      return new Response(new ReadableStream({ start, pull }, { highWaterMark: 0 }));
    };
    const file = await fileOf(30, ownFetch);
    mock.timers.enable({ apis: ['setTimeout'] });
    const reader = file.stream().getReader();
    // Its first piece has arrived, and nobody reads it.
    while (pulls === 0) await new Promise(setImmediate);
    await new Promise(setImmediate);
    mock.timers.tick(600_000);
    expect(Buffer.concat([(await reader.read()).value!, (await reader.read()).value!])).to.deep.equal(whole);
    expect(pulls).to.equal(2);
  });
});

function jobOf(host: string) {
  const result = { response: `http://${host}/file`, bytes: whole.length, sha256: 'f', content_type: 'video/mp4' };
  return { id: '1', status: 'CompletedJob', endpoint: '/v1/video/download', result };
}
