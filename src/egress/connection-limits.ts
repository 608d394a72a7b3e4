import type { Socket } from 'node:net';

export type ConnectionLimit = 'bytes' | 'idle' | 'time';

export interface ConnectionLimits {
  /** Sum of both directions of one connection. */
  readonly bytes: number;
  /** Longest time without a byte in either direction. */
  readonly idleSeconds: number;
  /** Idle time of a client that sends no more: most have gone, and a process that has ended cannot be told from a client that waits. */
  readonly leftSeconds: number;
  readonly totalSeconds: number;
}

export type LimitWatch = ReturnType<typeof startLimitWatch>;

interface WatchedConnection {
  readonly client: Socket;
  readonly upstream: Socket;
  readonly cut: (limit: ConnectionLimit) => void;
  readonly startMs: number;
  moved: number;
  movedMs: number;
}

/** Checks every connection each 250 ms, with one timer: a limit is exceeded by at most the bytes of one interval. */
export function startLimitWatch(limits: ConnectionLimits, everyMs = 250) {
  const { bytes, idleSeconds, leftSeconds, totalSeconds } = limits;
  const all = new Set<WatchedConnection>();
  const judge = (watched: WatchedConnection, nowMs: number): ConnectionLimit | undefined => {
    const moved = bytesOf(watched.client) + bytesOf(watched.upstream);
    if (moved !== watched.moved) Object.assign(watched, { moved, movedMs: nowMs });
    if (bytesOf(watched.upstream) > bytes) return 'bytes';
    const waitSeconds = watched.client.readableEnded ? Math.min(idleSeconds, leftSeconds) : idleSeconds;
    if (nowMs - watched.movedMs > waitSeconds * 1000) return 'idle';
    return nowMs - watched.startMs > totalSeconds * 1000 ? 'time' : undefined;
  };
  const timer = setInterval(() => {
    const nowMs = performance.now();
    for (const watched of all) {
      const limit = judge(watched, nowMs);
      if (limit && all.delete(watched)) watched.cut(limit);
    }
  }, everyMs);
  return {
    /** Calls `cut` once when a limit is passed, until the returned function is called. */
    add: (client: Socket, upstream: Socket, cut: (limit: ConnectionLimit) => void) => {
      const nowMs = performance.now();
      const watched = { client, upstream, cut, startMs: nowMs, moved: 0, movedMs: nowMs };
      all.add(watched);
      return () => all.delete(watched);
    },
    close: () => clearInterval(timer),
  };
}

export function bytesOf({ bytesRead, bytesWritten }: Socket): number {
  return bytesRead + bytesWritten;
}
