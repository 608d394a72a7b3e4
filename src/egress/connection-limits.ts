import type { Socket } from 'node:net';

/** Which limit ended a connection. */
export type Cut = 'bytes' | 'idle' | 'time';

export interface WatchLimits {
  /** Of one connection, both directions together. */
  readonly bytes: number;
  /** Without a single byte in either direction. */
  readonly idleSeconds: number;
  readonly totalSeconds: number;
}

/** The two sides of one connection through the proxy. */
export interface Sides {
  readonly client: Socket;
  readonly upstream: Socket;
}

export interface Watch {
  /** Calls `cut` once when a limit is passed, until the returned function is called. */
  readonly add: (sides: Sides, cut: (limit: Cut) => void) => () => void;
  readonly close: () => void;
}

interface Watched extends Sides {
  readonly cut: (limit: Cut) => void;
  readonly startMs: number;
  moved: number;
  movedMs: number;
}

/** Looks at all connections together, a few times a second: a limit is passed by no more than what flows in between. */
export function startWatch({ bytes, idleSeconds, totalSeconds }: WatchLimits, everyMs = 250): Watch {
  const all = new Set<Watched>();
  const judge = (watched: Watched, nowMs: number): Cut | undefined => {
    const moved = bytesOf(watched.client) + bytesOf(watched.upstream);
    if (moved !== watched.moved) Object.assign(watched, { moved, movedMs: nowMs });
    if (bytesOf(watched.upstream) > bytes) return 'bytes';
    if (nowMs - watched.movedMs > idleSeconds * 1000) return 'idle';
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
    add: (sides, cut) => {
      const nowMs = performance.now();
      const watched = { ...sides, cut, startMs: nowMs, moved: 0, movedMs: nowMs };
      all.add(watched);
      return () => all.delete(watched);
    },
    close: () => clearInterval(timer),
  };
}

/** Returns the bytes that a socket has carried in both directions. */
export function bytesOf({ bytesRead, bytesWritten }: Socket): number {
  return bytesRead + bytesWritten;
}
