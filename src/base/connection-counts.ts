import type { Writable } from 'node:stream';

interface ConnectionCounts {
  readonly of: (client: string) => number;
  /** Counts a connection or an answer of a client until it closes. */
  readonly add: (client: string, counted: Writable) => void;
}

/** Counts the open connections, or answers, of each client. */
export function makeConnectionCounts(): ConnectionCounts {
  const counts = new Map<string, number>();
  const of = (client: string) => counts.get(client) ?? 0;
  return {
    of,
    add: (client, counted) => {
      // No close follows any more.
      if (counted.closed) return;
      counts.set(client, of(client) + 1);
      counted.once('close', () => {
        if (of(client) > 1) counts.set(client, of(client) - 1);
        else counts.delete(client);
      });
    },
  };
}
