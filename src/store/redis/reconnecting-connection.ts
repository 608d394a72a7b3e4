import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../base/log.ts';
import type { Place } from './discovery.ts';
import { type Client, openClient } from './redis-client.ts';
import { inTime, Late, limitMs } from './timeout.ts';

interface Use {
  readonly client: Client;
  readonly leave: () => void;
  readonly broke: (why: Error) => void;
}

const shortestDelayMs = 25;
const longestDelayMs = 200;
const steadyMs = 1_000;
const watchMs = 400;
const drainMs = 1_000;

/**
 * Keeps one connection to wherever the record is, and opens the next one when it breaks. Each answers PING and is prepared
 * before it is given out.
 */
export class Link {
  readonly #place: Place;
  readonly #log: Log;
  readonly #prepare: (client: Client) => Promise<void>;
  readonly #closing = new AbortController();
  readonly #kept: Promise<void>;
  #use: Use | undefined;
  #arrival = Promise.withResolvers<Client>();
  #cause: unknown;
  #answeredAt = 0;
  #isTold: boolean | undefined;
  #drained: Promise<void> = Promise.resolve();

  constructor(place: Place, log: Log, prepare = async (_client: Client): Promise<void> => {}) {
    this.#place = place;
    this.#log = log;
    this.#prepare = prepare;
    this.#kept = this.#keep();
  }

  /** The connection, while there is one. */
  client(): Client | undefined {
    return this.#use?.client;
  }

  /** Waits for a connection, however long that takes. */
  present(): Promise<Client> {
    return this.#arrival.promise;
  }

  /** What went wrong last. */
  cause(): unknown {
    return this.#cause;
  }

  /** Takes note that Redis has answered something. */
  noteAnswer(): void {
    this.#answeredAt = performance.now();
  }

  /** Gives up a connection over which an answer is late, unless it is only slow: whoever still waits gets an error. */
  suspect(client: Client, why: Late): void {
    if (performance.now() - this.#answeredAt < limitMs) return;
    this.#forget(client)?.broke(why);
    client.destroy();
  }

  /** Looks anew where the record is; what the old connection has still to answer is waited for. */
  leave(client: Client): void {
    this.#forget(client)?.leave();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    if (this.#use) this.leave(this.#use.client);
    await this.#kept;
    await this.#drained;
  }

  async #keep(): Promise<void> {
    let delayMs = shortestDelayMs;
    for (let turn = 0; !this.#closing.signal.aborted; turn += 1) {
      const began = performance.now();
      await this.#useOne(turn).catch((error) => {
        this.#cause = error;
        this.#tell(false);
      });
      delayMs = performance.now() - began > steadyMs ? shortestDelayMs : Math.min(delayMs * 2, longestDelayMs);
      // It ends early only because all is closed.
      await pause(delayMs, undefined, { signal: this.#closing.signal }).catch(() => {});
    }
  }

  /** Uses one connection until it is left; throws why it broke. */
  async #useOne(turn: number): Promise<void> {
    const client = await openClient(await this.#place.find(turn));
    try {
      await inTime(client.sendCommand(['PING']));
      await inTime(this.#prepare(client));
      this.noteAnswer();
      if (!client.isReady || this.#closing.signal.aborted) return;
      await new Promise<void>((leave, broke) => {
        client.once('terminated', broke);
        this.#use = { client, leave, broke };
        this.#tell(true);
        this.#arrival.resolve(client);
        void this.#watch(client);
      });
    } finally {
      this.#forget(client);
      this.#drained = drain(client);
    }
  }

  /** Asks again and again, so that a Redis that is gone is noticed without a call. */
  async #watch(client: Client): Promise<void> {
    for (;;) {
      await pause(watchMs, undefined, { ref: false });
      if (this.#use?.client !== client) return;
      await inTime(client.sendCommand(['PING'])).then(
        () => this.noteAnswer(),
        // Any other error comes with the end of the connection, or because too much is under way.
        (error) => error instanceof Late && this.suspect(client, error),
      );
    }
  }

  #forget(client: Client): Use | undefined {
    const use = this.#use;
    if (use?.client !== client) return undefined;
    this.#use = undefined;
    this.#arrival = Promise.withResolvers();
    return use;
  }

  /** Tells a change once, however often it is tried in between. */
  #tell(isConnected: boolean): void {
    if (this.#isTold === isConnected) return;
    this.#isTold = isConnected;
    const fields = { place: this.#place.name };
    if (isConnected) this.#log.info('redis is connected', fields);
    else this.#log.warn('redis cannot be reached', { ...fields, error: this.#cause });
  }
}

/** Lets a connection receive what it still waits for, then ends it. */
async function drain(client: Client): Promise<void> {
  const limit = Promise.withResolvers<void>();
  const timer = setTimeout(limit.resolve, drainMs);
  // Closing fails when the connection is broken already, so that there is nothing to wait for, and never ends when it breaks now.
  await Promise.race([client.close(), limit.promise]).catch(() => {});
  clearTimeout(timer);
  client.destroy();
}
