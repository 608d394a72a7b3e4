import type { Log } from '../../base/log.ts';
import type { RedisTopology } from './discovery.ts';
import { ReconnectingConnection } from './reconnecting-connection.ts';

export type Listener = (message: string) => void;

/** Receives published messages over a connection of its own; those published while it is broken are lost. */
export function openSubscriptions(topology: RedisTopology, log: Log) {
  const listenersOf = new Map<string, Set<Listener>>();
  const deliver = (message: string, channel: string): void => {
    for (const listener of listenersOf.get(channel) ?? []) {
      try {
        listener(message);
      } catch (error) {
        // The library would take an error of a listener for a broken connection.
        log.error('a listener failed', { channel, error });
      }
    }
  };
  const connection = new ReconnectingConnection(topology, log, {
    prepare: async (client) => {
      // One command: an API watches up to 10,000 jobs, and as many commands would take longer than a new connection may.
      await client.subscribe([...listenersOf.keys()], deliver);
    },
    check: async (client) => {
      await client.sendCommand(['PING']);
    },
  });
  const remove = async (channel: string, listener: Listener): Promise<void> => {
    const listeners = listenersOf.get(channel);
    if (!listeners?.delete(listener) || listeners.size > 0) return;
    listenersOf.delete(channel);
    await connection.calls.client()?.unsubscribe(channel, deliver);
  };
  return {
    subscribe: async (channel: string, listener: Listener): Promise<() => Promise<void>> => {
      listenersOf.set(channel, (listenersOf.get(channel) ?? new Set()).add(listener));
      try {
        const client = await connection.calls.present();
        await client.subscribe(channel, deliver);
      } catch (error) {
        await remove(channel, listener);
        throw error;
      }
      return () => remove(channel, listener);
    },
    close: () => connection.close(),
  };
}
