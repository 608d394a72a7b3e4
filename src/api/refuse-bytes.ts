import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export const timeoutCode = 'ERR_HTTP_REQUEST_TIMEOUT';
/** Of a CONNECT, which is an event to Node and no error. */
export const tunnelCode = 'CONNECT';

type FaultReply = readonly [status: string, sentence: string];

/** Answers to bytes that never become a request, by Node's error code. */
const faults: Readonly<Record<string, FaultReply>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'Bad Request: the URL or the headers are too long'],
  HPE_INVALID_URL: ['400 Bad Request', 'Bad Request: the URL must begin with a slash and be percent-encoded'],
  HPE_INVALID_HEADER_TOKEN: ['400 Bad Request', 'Bad Request: a header has a character that no header may have'],
  [timeoutCode]: ['408 Request Timeout', 'Bad Request: the request took too long to arrive'],
  [tunnelCode]: ['400 Bad Request', 'Bad Request: this server is no proxy'],
};
const unknown: FaultReply = ['400 Bad Request', 'Bad Request: this is not an HTTP request'];

/** Refuses bytes that never become a request and closes their connection, behind the answer to the request before them. */
export function refuseBytes(socket: Socket, last: ServerResponse | null | undefined, code = ''): void {
  if (isAnswering(last)) endAfter(last, socket);
  else if (socket.writable) send(socket, ...(faults[code] ?? unknown));
  else socket.destroy();
}

/** Returns true while an earlier answer is unfinished: the caller would take a 400 of this fault for it. */
function isAnswering(last: ServerResponse | null | undefined): last is ServerResponse {
  return last ? !last.writableFinished && (last.req.complete || last.headersSent) : false;
}

/** Closes a connection behind its unfinished answer, which may name a job; at once where the fault lies in the request itself. */
function endAfter(answer: ServerResponse, socket: Socket): void {
  if (!answer.req.complete) return void socket.destroy();
  // Each further piece of the bytes at fault is one more fault.
  if (answer.listeners('finish').includes(endConnection)) return;
  answer.once('finish', endConnection);
  // Node reads nothing behind a CONNECT, and `onLeave` would not hear of its end.
  socket.resume();
}

function endConnection(this: ServerResponse): void {
  this.req.socket.destroySoon();
}

function send(socket: Socket, status: string, sentence: string): void {
  const body = JSON.stringify({ error: sentence });
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json; charset=utf-8\r\nx-error-code: bad_request\r\n`;
  socket.end(
    `${head}x-request-id: ${randomUUID()}\r\ncache-control: no-store\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}
