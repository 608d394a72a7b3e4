import { connect } from 'node:net';
import { expect } from 'chai';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';

const piece = 'x'.repeat(64 * 1024);
const chunk = `${piece.length.toString(16)}\r\n${piece}\r\n`;

describe('a body that is too large', () => {
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
      const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${caller.key}\r\nContent-Type: application/json\r\n`;
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

  it('is not read on without an end', async () => {
    const { text, fault } = await send('/v1/video/download', 'Transfer-Encoding: chunked', chunk, 10_000);
    expect(text).to.match(/^HTTP\/1\.1 413 /);
    expect(fault).to.match(/EPIPE|ECONNRESET/);
  });
});
