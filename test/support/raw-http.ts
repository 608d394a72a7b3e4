import { connect } from 'node:net';
import { expect } from 'chai';

/** Ends a hang, and judges no speed. */
const hangSeconds = 30;

/** The first answer that a server gave over one connection. */
export interface RawAnswer {
  /** All that was said until the connection closed. */
  readonly text: string;
  /** `null` when it closed without a word. */
  readonly status: number | null;
  readonly headers: string;
  readonly body: string;
  readonly seconds: number;
}

export interface RawOptions {
  /** Half-closes the connection when all is sent. */
  readonly end?: boolean;
  /** Sent again and again after that until the connection closes. */
  readonly andThen?: string;
  /** With so many milliseconds between. */
  readonly every?: number;
}

/** Says some bytes to a server and listens until it closes the connection; fails when that takes too long. */
export function sendRaw(url: string, bytes: string | Uint8Array, spoken: RawOptions = {}): Promise<RawAnswer> {
  const { end = false, andThen, every = 5 } = spoken;
  const began = performance.now();
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true });
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    // A server may close before it has read all.
    socket.on('error', () => {});
    socket.once('end', () => socket.end());
    const again = andThen === undefined ? undefined : setInterval(() => socket.write(andThen), every);
    const limit = setTimeout(() => {
      reject(new Error(`Still open after ${hangSeconds} s, having said ${JSON.stringify(text.slice(0, 300))}`));
      socket.destroy();
    }, hangSeconds * 1000);
    socket.once('close', () => {
      clearInterval(again);
      clearTimeout(limit);
      resolve({ ...read(text), text, seconds: (performance.now() - began) / 1000 });
    });
    socket.write(bytes);
    if (end) socket.end();
  });
}

/** Expects an error answer: a status below 500, a code, and a sentence in a body of one field. */
export function expectErrorAnswer({ status, headers, body, text }: RawAnswer): void {
  expect(status, text).to.be.within(400, 499);
  expect(headers, text).to.match(/^content-type: application\/json; charset=utf-8\r?$/im);
  expect(headers, text).to.match(/^x-error-code: \w+\r?$/im);
  expect(headers, text).to.match(/^x-request-id: [\w.-]{1,64}\r?$/im);
  const { error, ...rest } = JSON.parse(body);
  expect(error, text).to.be.a('string').and.match(/\S/);
  expect(rest).to.deep.equal({});
}

function read(text: string): Pick<RawAnswer, 'status' | 'headers' | 'body'> {
  // 100 Continue comes before the answer.
  const answer = text.replace(/^HTTP\/1\.1 1\d\d [^\r]*\r\n\r\n/, '');
  const [headers = '', ...bodies] = answer.split('\r\n\r\n');
  const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(headers) ?? [];
  return { status: status === undefined ? null : Number(status), headers, body: bodies.join('\r\n\r\n') };
}
