import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { hasBody } from './request-syntax.ts';

export interface PendingLimit {
  /** Returns the address that the connections of a peer count for; `null` for a peer without a limit. */
  readonly addressOf: (peer: string | undefined) => string | null;
  /** Called for each connection that is closed. */
  readonly onDrop: (address: string) => void;
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

const maxPending = 100;
/** A caller may keep more of those over which it has asked something, for its next requests. */
const maxIdle = 1000;
/** A caller that opens many connections at once has sent its requests by then. */
const graceMs = 1000;
/** A timer may fire a millisecond before its time. */
const timerSlackMs = 5;

/**
 * Closes the oldest connections of an address when more than 100 of them have no complete request, or more than 1,000 are idle
 * after an answer, so that a caller that never ends its requests, or never leaves, uses up neither memory nor sockets. A new
 * connection is always accepted. Returns a function that must be told of each request when its headers are complete.
 */
export function limitPending(
  server: Server,
  { addressOf, onDrop }: PendingLimit,
): (req: IncomingMessage, res: ServerResponse) => void {
  const peers = new Map<string, Peer>();
  const peerOf = new WeakMap<Socket, Peer>();
  const answers = new WeakMap<Socket, number>();

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
  return (req, res) => {
    const { socket } = req;
    const peer = peerOf.get(socket);
    if (peer === undefined) return;
    peer.idle.delete(socket);
    const answer = (answers.get(socket) ?? 0) + 1;
    answers.set(socket, answer);
    res.once('close', () => {
      // A request that came behind this one is being answered.
      if (answers.get(socket) === answer && !socket.destroyed) keepIdle(socket, peer, onDrop);
    });
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
