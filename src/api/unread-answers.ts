import type { Server } from 'node:http';
import type { Socket } from 'node:net';

export interface PendingLimit {
  /** Returns the address that the connections of a peer count for; `null` for a peer without a limit. */
  readonly addressOf: (peer: string | undefined) => string | null;
  /** Called for each connection that is closed because its address has too many, or leaves too much unread. */
  readonly onDrop: (address: string) => void;
}

/** Limits of connections whose caller reads nothing of what was sent. */
export interface UnreadLimits {
  /**
   * Time after which such a connection is closed. What was written at once must be read within it as a whole. The kernel asks for more when up
   * to 1.7 MB were read, so that in 120 s a reader of less than 15 KB/s may seem to read nothing.
   */
  readonly unreadMs: number;
  /** Interval at which connections are looked at. */
  readonly checkMs: number;
  /** Limit of what this process keeps for all such connections of one address. A file keeps 64 KiB at a time, an answer all of it. */
  readonly maxBytesOfAddress: number;
}

interface Reading {
  readonly address: string | null;
  /** Bytes that the kernel has taken over. */
  taken: number;
  /** When the kernel was last seen to take some, or nothing was left to take. */
  since: number;
  /** Looks since then: of a halt of this process, after which the kernel may take more at once, one look counts. */
  looks: number;
}

/**
 * Closes a connection whose caller reads nothing of what was sent for the time limit, and the oldest of an address for which they keep
 * too much. Their number is no limit: most slow readers of files seem to read nothing between two looks, and keep little. Node's
 * timeout of a socket knows neither an answer written at once nor a kernel that has taken a part of a chunk, after which it waits
 * twice as long.
 */
export function closeUnread(server: Server, limits: UnreadLimits, { addressOf, onDrop }: PendingLimit): void {
  const connections = new Map<Socket, Reading>();
  server.on('connection', (socket) => {
    connections.set(socket, { address: addressOf(socket.remoteAddress), taken: 0, since: performance.now(), looks: 0 });
    socket.once('close', () => connections.delete(socket));
  });
  const timer = setInterval(() => {
    const now = performance.now();
    const unread = [...connections].filter(([socket, reading]) => isUnread(socket, reading, now));
    const kept = new Map<string | null, number>();
    // The newest ones first: they stay.
    for (const [socket, { address, looks }] of unread.sort(([, one], [, other]) => other.since - one.since)) {
      const bytes = (kept.get(address) ?? 0) + socket.writableLength;
      const isTooMuch = address !== null && bytes > limits.maxBytesOfAddress;
      if (isTooMuch) onDrop(address);
      else kept.set(address, bytes);
      if (isTooMuch || looks * limits.checkMs > limits.unreadMs) socket.destroy();
    }
  }, limits.checkMs).unref();
  server.once('close', () => clearInterval(timer));
}

/** Returns true when nothing of what is left was taken since the last look; notes what was. */
function isUnread(socket: Socket, reading: Reading, now: number): boolean {
  const left = socket.writableLength;
  const taken = socket.bytesWritten - left;
  if (left > 0 && taken === reading.taken) {
    reading.looks++;
    return true;
  }
  reading.taken = taken;
  reading.since = now;
  reading.looks = 0;
  return false;
}
