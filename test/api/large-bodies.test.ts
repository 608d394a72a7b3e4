import { connect } from 'node:net';
import { expect } from 'chai';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';

const piece = 'x'.repeat(64 * 1024);
const chunk = `${piece.length.toString(16)}\r\n${piece}\r\n`;

describe('the body of a refused request', () => {
  let api: TestApi;
  let caller: ApiCaller;
  before(async () => {
    api = await startApi();
    caller = await api.addCaller();
  });
  after(() => api.stop());

  /** Sends a request whose body goes on after its answer, in so many pieces, and returns what came back and the fault of the connection. */
  const send = (path: string, header: string, part: string, pieces: number, last = '') =>
    new Promise<{ text: string; fault: string | null }>((resolve) => {
      const socket = connect({ port: Number(new URL(api.url).port), host: '127.0.0.1', allowHalfOpen: true });
      let text = '';
      let fault: string | null = null;
      let left = pieces;
      const sendNext = () => {
        if (left === 0) return void socket.end(last);
        left -= 1;
        socket.write(part, sendNext);
      };
      socket.on('data', (bytes) => {
        if (text === '') sendNext();
        text += bytes;
      });
      socket.on('error', ({ message }) => {
        fault = message;
      });
      socket.once('close', () => resolve({ text, fault }));
      const target = path.includes(' ') ? path : `${path} HTTP/1.1`;
      const head = `POST ${target}\r\nHost: x\r\nx-api-key: ${caller.key}\r\nContent-Type: application/json\r\n`;
      socket.write(`${head}${header}\r\n\r\n`);
      // Enough for the refusal of a body that does not tell its length.
      if (header.startsWith('Transfer')) for (let sent = 0; sent < 40; sent++) socket.write(part);
    });

  for (const path of ['/v1/video/download', '/v1/batches', '/mcp']) {
    it(`is read to its end after its 413, so that no caller loses the answer, at ${path}`, async () => {
      const length = `Content-Length: ${64 * piece.length}`;
      for (const answer of [
        await send(path, length, piece, 64),
        await send(path, 'Transfer-Encoding: chunked', chunk, 24, '0\r\n\r\n'),
      ]) {
        expect(answer.fault).to.equal(null);
        expect(answer.text)
          .to.match(/^HTTP\/1\.1 413 /)
          .and.match(/^connection: close\r$/im)
          .and.match(/\{"error":"Payload Too Large"\}$/);
      }
    });
  }

  const refused: [path: string, header: string, status: number][] = [
    ['/v1/batches', 'x-api-key: another\r\n', 401],
    ['/v1/no-such-route', '', 404],
    ['/v1/usage', '', 405],
  ];
  for (const [path, header, status] of refused) {
    it(`is read to its end after a ${status} that came before it, although the caller asked to close, at ${path}`, async () => {
      for (const version of ['1.0', '1.1']) {
        const closing = `${header}Connection: close\r\nContent-Length: ${24 * piece.length}`;
        const answer = await send(`${path} HTTP/${version}`, closing, piece, 24);
        expect(answer.fault, version).to.equal(null);
        expect(answer.text, version).to.match(new RegExp(`^HTTP/1\\.1 ${status} `));
      }
    });
  }

  it('is not read on without an end', async () => {
    const { text, fault } = await send('/v1/video/download', 'Transfer-Encoding: chunked', chunk, 10_000);
    expect(text).to.match(/^HTTP\/1\.1 413 /);
    expect(fault).to.match(/EPIPE|ECONNRESET/);
  });
});
