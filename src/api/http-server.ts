import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { closeServer } from '../base/close-server.ts';
import { listenAt } from '../base/server-address.ts';
import { refuseBytes, timeoutCode, tunnelCode } from './refuse-bytes.ts';
import { hasBody, originTarget } from './request-syntax.ts';
import { closeUnread, type PendingLimit } from './unread-answers.ts';

export interface HttpTimeouts {
  /** For the headers of a request. */
  readonly headersMs: number;
  /** For the body of a request, and again while 64 KiB of it arrive within this time. */
  readonly bodyMs: number;
  /** For the whole body, however steadily it arrives. */
  readonly wholeBodyMs: number;
  /** Between an answer and the next request. */
  readonly keepAliveMs: number;
  /** For reading something of what was sent to it. */
  readonly unreadMs: number;
  /** Interval at which the times of headers and unread answers are checked; a body has timers of its own. */
  readonly checkMs: number;
}

interface Peer {
  readonly address: string;
  /** Connections kept open after an answer, oldest first. */
  readonly idle: Set<Socket>;
  /** Open connections. */
  count: number;
  /** Those of them without a complete request, oldest first, each with the time since when. */
  readonly pending: Map<Socket, number>;
}

/** Of each open connection the answer to the last request that was begun; `null` before the first one. */
type LastAnswers = Map<Socket, ServerResponse | null>;

const defaultTimeouts: HttpTimeouts = {
  headersMs: 10_000,
  bodyMs: 5_000,
  wholeBodyMs: 20_000,
  keepAliveMs: 65_000,
  unreadMs: 120_000,
  checkMs: 2_000,
};

const maxPending = 100;
/** Requests that wait behind another one of their connection. */
const maxWaiting = 100;
/** Of one address: a thousand files, which keep 64 KiB each, or some tens of long lists. */
const maxUnreadBytes = 64 * 1024 * 1024;
/** A caller may keep more of those over which it has asked something, for its next requests. */
const maxIdle = 1000;
/** A caller that opens many connections at once has sent its requests by then. */
const graceMs = 1000;
/** A timer may fire a millisecond before its time. */
const timerSlackMs = 5;

/** Least that arrives of a large body within each time limit of a body: 0.1 Mbit/s. */
const steadyBytes = 64 * 1024;

/**
 * Serves the app; connections that send slowly, or too much, are closed. `drain` accepts nothing more, lets open requests end, and closes
 * what is left after some seconds. Idle connections are closed after `idleSeconds`: until it hears of their end, a proxy sends
 * requests over them.
 */
export async function listen(
  app: RequestListener,
  host: string,
  port: number,
  pending: PendingLimit,
  timeouts = defaultTimeouts,
) {
  const answers: LastAnswers = new Map();
  const serve = inOrder((req, res) => {
    answers.set(req.socket, res);
    noteRequest(req, res);
    if (hasBody(req)) limitBody(server, req, timeouts);
    if (!req.url?.startsWith('/')) req.url = originTarget(req.url ?? '');
    app(req, res);
  });
  const server = createServer(
    {
      headersTimeout: timeouts.headersMs,
      // Node's limit would count the time for which a request waits, unread, behind another one: `limitBody` does not.
      requestTimeout: 0,
      keepAliveTimeout: timeouts.keepAliveMs,
      connectionsCheckingInterval: timeouts.checkMs,
      maxHeaderSize: 32 * 1024,
      // The app itself refuses a request without Host, in words.
      requireHostHeader: false,
    },
    serve,
  );
  // A caller may close its side of the connection behind its request and wait for the answer; see `onLeave`.
  Object.assign(server, { httpAllowHalfOpen: true });
  // An unknown Expect header is ignored (Node would answer 417).
  server.on('checkExpectation', serve);
  const refuseNow = (socket: Duplex, code?: string) =>
    refuseBytes(socket as Socket, answers.get(socket as Socket), code);
  server.on('connect', (_req, socket) => refuseNow(socket, tunnelCode));
  trackConnections(server, answers);
  closeUnread(server, { ...timeouts, maxBytesOfAddress: maxUnreadBytes }, pending);
  const noteRequest = limitPending(server, pending);
  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket) => {
    const last = answers.get(socket as Socket);
    const areHeadersLate = code === timeoutCode && (!last || last.req.complete);
    if (code === 'ECONNRESET') socket.destroy();
    // Where they arrived while this process was halted, their request begins before the immediate.
    else if (areHeadersLate) setImmediate(() => answers.get(socket as Socket) === last && refuseNow(socket, code));
    else refuseNow(socket, code);
  });
  const bound = await listenAt(server, { host, port });
  return { port: bound, drain: (seconds: number, idleSeconds = 0) => drain(server, answers, seconds, idleSeconds) };
}

/**
 * Begins a request that came behind another one of its connection when that one is answered: a call whose answer cannot come,
 * because its caller is gone or the answer before it closes the connection, starts and costs nothing.
 */
function inOrder(begin: RequestListener): RequestListener {
  /** Of each connection the answer to its newest request. */
  const newest = new WeakMap<Socket, ServerResponse>();
  const waiting = new WeakMap<Socket, number>();
  return (req, res) => {
    const { socket } = req;
    const earlier = newest.get(socket);
    newest.set(socket, res);
    if (!earlier) return begin(req, res);
    const beginNow = () => {
      if (socket.writable) begin(req, res);
    };
    if (earlier.closed) return beginNow();
    const count = (waiting.get(socket) ?? 0) + 1;
    waiting.set(socket, count);
    if (count > maxWaiting) return void socket.destroy();
    earlier.once('close', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1);
      beginNow();
    });
  };
}

/** Ends a request whose body is late as Node ends one whose headers are late; a large body goes on while it arrives steadily. */
function limitBody(server: Server, req: IncomingMessage, { bodyMs, wholeBodyMs }: HttpTimeouts): void {
  const { socket } = req;
  let { bytesRead } = socket;
  const end = () => {
    if (req.complete || req.closed) return;
    server.emit('clientError', Object.assign(new Error('the body is late'), { code: timeoutCode }), socket);
  };
  const judge = () => {
    const arrived = socket.bytesRead - bytesRead;
    bytesRead = socket.bytesRead;
    if (arrived < steadyBytes) end();
  };
  // What arrived while this process was halted is read before the immediate.
  const steady = setInterval(() => setImmediate(judge), bodyMs).unref();
  const whole = setTimeout(() => setImmediate(end), wholeBodyMs).unref();
  req.once('close', () => {
    clearInterval(steady);
    clearTimeout(whole);
  });
}

function trackConnections(server: Server, answers: LastAnswers): void {
  server.on('connection', (socket) => {
    answers.set(socket, null);
    // Node listens no more after a CONNECT, and an error that nobody hears would end the process. The close that follows is heard.
    socket.on('error', () => undefined);
    socket.once('close', () => answers.delete(socket));
  });
}

function drain(server: Server, answers: LastAnswers, seconds: number, idleSeconds: number): Promise<void> {
  const idleUntil = performance.now() + idleSeconds * 1000;
  // Node would cut off an answer that was written whole and is still being sent, and keep a connection without a request.
  server.closeIdleConnections = () => {
    if (performance.now() < idleUntil) return;
    for (const [socket, answer] of answers) {
      if (answer === null || (answer.closed && answer.req.complete)) socket.destroy();
    }
  };
  // Node forgets a connection behind a CONNECT.
  server.closeAllConnections = () => {
    for (const socket of answers.keys()) socket.destroy();
  };
  return closeServer(server, seconds * 1000);
}

/**
 * Closes the oldest connections of an address when more than 100 of them have no complete request, or more than 1,000 are idle
 * after an answer, so that a caller that never ends its requests, or never leaves, uses up neither memory nor sockets. A new
 * connection is always accepted. Returns a function that must be told of each request when its headers are complete.
 */
function limitPending(
  server: Server,
  { addressOf, onDrop }: PendingLimit,
): (req: IncomingMessage, res: ServerResponse) => void {
  const peers = new Map<string, Peer>();
  const peerOf = new WeakMap<Socket, Peer>();

  const dropOldest = ({ address, pending }: Peer) => {
    for (const [socket, since] of pending) {
      if (pending.size <= maxPending || performance.now() - since < graceMs) return;
      pending.delete(socket);
      socket.destroy();
      onDrop(address);
    }
  };
  const add = (socket: Socket, peer: Peer) => {
    if (peer.pending.has(socket)) return;
    peer.pending.set(socket, performance.now());
    // What came while the process was busy is read before the immediate.
    if (peer.pending.size > maxPending) {
      setTimeout(() => setImmediate(dropOldest, peer), graceMs + timerSlackMs).unref();
    }
  };

  server.on('connection', (socket: Socket) => {
    const address = addressOf(socket.remoteAddress);
    if (address === null) return;
    const peer = peers.get(address) ?? { address, count: 0, pending: new Map(), idle: new Set() };
    peers.set(address, peer);
    peer.count++;
    peerOf.set(socket, peer);
    add(socket, peer);
    socket.once('close', () => {
      peer.pending.delete(socket);
      peer.idle.delete(socket);
      peer.count--;
      if (peer.count === 0) peers.delete(address);
    });
  });
  function noteClosed(this: ServerResponse): void {
    const { socket } = this.req;
    const peer = peerOf.get(socket);
    if (peer && !socket.destroyed) keepIdle(socket, peer, onDrop);
  }
  return (req, res) => {
    const { socket } = req;
    const peer = peerOf.get(socket);
    if (peer === undefined) return;
    peer.idle.delete(socket);
    res.on('close', noteClosed);
    if (!hasBody(req)) return void peer.pending.delete(socket);
    add(socket, peer);
    req.once('end', () => peer.pending.delete(socket));
  };
}

function keepIdle(socket: Socket, { idle, address }: Peer, onDrop: PendingLimit['onDrop']): void {
  idle.add(socket);
  for (const oldest of idle) {
    if (idle.size <= maxIdle) return;
    idle.delete(oldest);
    oldest.destroy();
    onDrop(address);
  }
}
