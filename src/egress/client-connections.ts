import type { Socket } from 'node:net';
import { CountsByName } from '../base/counts.ts';

export interface ClientLimits {
  /** Connections of all clients at once. */
  readonly connections: number;
  readonly connectionsPerClient: number;
}

export interface ClientConnection {
  /** Address of the client, or path of the UNIX socket that it came through. */
  readonly client: string;
  /** The client already had as many connections as it may have: requests on this one are refused. */
  readonly isSurplus: boolean;
  isBusy: boolean;
}

/** A client may open so many connections above its limit and read the refusal on them; further ones are closed at once. */
const spareConnections = 16;

export function makeClientConnections({ connections, connectionsPerClient }: ClientLimits) {
  const all = new Map<Socket, ClientConnection>();
  const counts = new CountsByName();
  return {
    /** Counts a connection until it closes; false when it is over the limits. One that is `isShared` stands for many clients. */
    add: (socket: Socket, client: string, isShared: boolean) => {
      const before = isShared ? 0 : counts.of(client);
      if (all.size >= connections || before >= connectionsPerClient + spareConnections) return false;
      all.set(socket, { client, isSurplus: before >= connectionsPerClient, isBusy: false });
      if (!isShared) counts.change(client, 1);
      socket.once('close', () => {
        all.delete(socket);
        if (!isShared) counts.change(client, -1);
      });
      return true;
    },
    get: (socket: Socket) => all.get(socket),
    list: () => [...all],
  };
}
