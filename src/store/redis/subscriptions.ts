import type { Log } from '../../base/log.ts';
import type { RedisTopology } from './discovery.ts';
import { ReconnectingConnection } from './reconnecting-connection.ts';

export type Listener = (message: string) => void;

/** Receives published messages over a connection of its own; those published while it is broken are lost. */
export class Subscriptions {
  readonly #log: Log;
  readonly #connection: ReconnectingConnection;
  readonly #listeners = new Map<string, Set<Listener>>();

  constructor(topology: RedisTopology, log: Log) {
    this.#log = log;
    this.#connection = new ReconnectingConnection(topology, log, {
      prepare: async (client) => {
        // One command: an API watches up to 10,000 jobs, and as many commands would take longer than a new connection may.
        await client.subscribe([...this.#listeners.keys()], this.#deliver);
      },
      check: async (client) => {
        await client.sendCommand(['PING']);
      },
    });
  }

  async subscribe(channel: string, listener: Listener): Promise<() => Promise<void>> {
    this.#listeners.set(channel, (this.#listeners.get(channel) ?? new Set()).add(listener));
    try {
      const client = await this.#connection.calls.present();
      await client.subscribe(channel, this.#deliver);
    } catch (error) {
      await this.#remove(channel, listener);
      throw error;
    }
    return () => this.#remove(channel, listener);
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async #remove(channel: string, listener: Listener): Promise<void> {
    const listeners = this.#listeners.get(channel);
    if (!listeners?.delete(listener) || listeners.size > 0) return;
    this.#listeners.delete(channel);
    await this.#connection.calls.client()?.unsubscribe(channel, this.#deliver);
  }

  readonly #deliver = (message: string, channel: string): void => {
    for (const listener of this.#listeners.get(channel) ?? []) {
      try {
        listener(message);
      } catch (error) {
        // The library would take an error of a listener for a broken connection.
        this.#log.error('a listener failed', { channel, error });
      }
    }
  };
}
