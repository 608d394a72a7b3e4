import type { Log } from '../../base/log.ts';
import type { Place } from './discovery.ts';
import { Link } from './reconnecting-connection.ts';

export type Listener = (message: string) => void;

/** Hears what is published, over a connection of its own. What is published while that is broken is not heard. */
export class Channels {
  readonly #log: Log;
  readonly #link: Link;
  readonly #listeners = new Map<string, Set<Listener>>();

  constructor(place: Place, log: Log) {
    this.#log = log;
    this.#link = new Link(place, log, async (client) => {
      for (const channel of this.#listeners.keys()) await client.subscribe(channel, this.#tell);
    });
  }

  /** Calls the listener with each message from now on. Answers how to end that. */
  async subscribe(channel: string, listener: Listener): Promise<() => Promise<void>> {
    this.#listeners.set(channel, (this.#listeners.get(channel) ?? new Set()).add(listener));
    try {
      const client = await this.#link.present();
      await client.subscribe(channel, this.#tell);
    } catch (error) {
      await this.#remove(channel, listener);
      throw error;
    }
    return () => this.#remove(channel, listener);
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  async #remove(channel: string, listener: Listener): Promise<void> {
    const listeners = this.#listeners.get(channel);
    if (!listeners?.delete(listener) || listeners.size > 0) return;
    this.#listeners.delete(channel);
    await this.#link.client()?.unsubscribe(channel, this.#tell);
  }

  readonly #tell = (message: string, channel: string): void => {
    for (const listener of this.#listeners.get(channel) ?? []) {
      try {
        listener(message);
      } catch (error) {
        // It must not reach the library, which would take it for a broken connection.
        this.#log.error('a listener failed', { channel, error });
      }
    }
  };
}
