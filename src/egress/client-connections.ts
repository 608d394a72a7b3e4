import type { Socket } from 'node:net';

export interface GuestLimits {
  /** Connections of all clients at once. */
  readonly connections: number;
  readonly connectionsPerClient: number;
}

/** A client's connection to the proxy. */
export interface Guest {
  /** Address of the client, or path of the UNIX socket that it came through. */
  readonly client: string;
  /** The client already had as many connections as it may have: requests on this one are refused. */
  readonly surplus: boolean;
  /** A request is under way. */
  busy: boolean;
}

/** So many connections above its limit a client may open to hear of it; more are closed unheard. */
const spare = 16;

export interface Guests {
  /** Remembers a connection until it closes; false when there is no room for it. One that is `shared` stands for many clients. */
  readonly add: (socket: Socket, client: string, shared: boolean) => boolean;
  readonly get: (socket: Socket) => Guest | undefined;
  readonly list: () => readonly [Socket, Guest][];
}

/** Keeps the connections of clients and how many each of them has. */
export function makeGuests({ connections, connectionsPerClient }: GuestLimits): Guests {
  const guests = new Map<Socket, Guest>();
  const counts = new Map<string, number>();
  return {
    add: (socket, client, shared) => {
      const before = shared ? 0 : (counts.get(client) ?? 0);
      if (guests.size >= connections || before >= connectionsPerClient + spare) return false;
      guests.set(socket, { client, surplus: before >= connectionsPerClient, busy: false });
      if (!shared) counts.set(client, before + 1);
      socket.once('close', () => {
        guests.delete(socket);
        if (shared) return;
        const after = (counts.get(client) ?? 0) - 1;
        if (after > 0) counts.set(client, after);
        else counts.delete(client);
      });
      return true;
    },
    get: (socket) => guests.get(socket),
    list: () => [...guests],
  };
}
