import type { Socket } from 'node:net';

interface ConnectionCounts {
  readonly of: (client: string) => number;
  /** Counts a connection of a client until it closes. */
  readonly add: (client: string, socket: Socket) => void;
}

/** Counts the open connections of each client. */
export function makeConnectionCounts(): ConnectionCounts {
  const counts = new Map<string, number>();
  const of = (client: string) => counts.get(client) ?? 0;
  return {
    of,
    add: (client, socket) => {
      counts.set(client, of(client) + 1);
      socket.once('close', () => {
        if (of(client) > 1) counts.set(client, of(client) - 1);
        else counts.delete(client);
      });
    },
  };
}
