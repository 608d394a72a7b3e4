import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../base/log.ts';
import type { RedisTopology } from './discovery.ts';
import { openRedisClient, type RedisClient } from './redis-client.ts';
import { RedisTimeout, timeoutMs, withTimeout } from './timeout.ts';

interface Use {
  readonly client: RedisClient;
  readonly leave: () => void;
  readonly broke: (why: Error) => void;
}

const firstDelayMs = 25;
const maxDelayMs = 200;
const steadyMs = 1_000;
const pingIntervalMs = 400;
const drainMs = 1_000;

/**
 * Keeps one connection to the node that has the record, and opens the next one when it breaks. Each one has answered PING
 * and is prepared before it is used.
 */
export class ReconnectingConnection {
  readonly #topology: RedisTopology;
  readonly #log: Log;
  readonly #prepare: (client: RedisClient) => Promise<void>;
  readonly #closing = new AbortController();
  readonly #kept: Promise<void>;
  #use: Use | undefined;
  #arrival = Promise.withResolvers<RedisClient>();
  #cause: unknown;
  #answeredAt = 0;
  #isLoggedConnected: boolean | undefined;
  #drained: Promise<void> = Promise.resolve();

  constructor(topology: RedisTopology, log: Log, prepare = async (_client: RedisClient): Promise<void> => {}) {
    this.#topology = topology;
    this.#log = log;
    this.#prepare = prepare;
    this.#kept = this.#keep();
  }

  client(): RedisClient | undefined {
    return this.#use?.client;
  }

  /** Waits for a connection, however long that takes. */
  present(): Promise<RedisClient> {
    return this.#arrival.promise;
  }

  cause(): unknown {
    return this.#cause;
  }

  noteAnswer(): void {
    this.#answeredAt = performance.now();
  }

  /** Gives up a connection after a timeout, unless other answers still arrive; its pending commands fail. */
  suspect(client: RedisClient, why: RedisTimeout): void {
    if (performance.now() - this.#answeredAt < timeoutMs) return;
    this.#forget(client)?.broke(why);
    client.destroy();
  }

  /** Looks up again which node has the record; the old connection still receives its pending answers. */
  leave(client: RedisClient): void {
    this.#forget(client)?.leave();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    if (this.#use) this.leave(this.#use.client);
    await this.#kept;
    await this.#drained;
  }

  async #keep(): Promise<void> {
    let delayMs = firstDelayMs;
    for (let turn = 0; !this.#closing.signal.aborted; turn += 1) {
      const began = performance.now();
      await this.#useOne(turn).catch((error) => {
        this.#cause = error;
        this.#logChange(false);
      });
      delayMs = performance.now() - began > steadyMs ? firstDelayMs : Math.min(delayMs * 2, maxDelayMs);
      // The delay ends early only when the connection is closed.
      await pause(delayMs, undefined, { signal: this.#closing.signal }).catch(() => {});
    }
  }

  /** Uses one connection until it is left; throws why it broke. */
  async #useOne(turn: number): Promise<void> {
    const client = await openRedisClient(await this.#topology.find(turn));
    try {
      await withTimeout(client.sendCommand(['PING']));
      await withTimeout(this.#prepare(client));
      this.noteAnswer();
      if (!client.isReady || this.#closing.signal.aborted) return;
      await new Promise<void>((leave, broke) => {
        client.once('terminated', broke);
        this.#use = { client, leave, broke };
        this.#logChange(true);
        this.#arrival.resolve(client);
        void this.#watch(client);
      });
    } finally {
      this.#forget(client);
      this.#drained = drain(client);
    }
  }

  /** Sends PING every 400 ms, so that a Redis that is gone is noticed without a call. */
  async #watch(client: RedisClient): Promise<void> {
    for (;;) {
      await pause(pingIntervalMs, undefined, { ref: false });
      if (this.#use?.client !== client) return;
      await withTimeout(client.sendCommand(['PING'])).then(
        () => this.noteAnswer(),
        // Any other error means that the connection ended, or that too many commands are pending.
        (error) => error instanceof RedisTimeout && this.suspect(client, error),
      );
    }
  }

  #forget(client: RedisClient): Use | undefined {
    const use = this.#use;
    if (use?.client !== client) return undefined;
    this.#use = undefined;
    this.#arrival = Promise.withResolvers();
    return use;
  }

  /** Logs each change once, however many attempts fail in between. */
  #logChange(isConnected: boolean): void {
    if (this.#isLoggedConnected === isConnected) return;
    this.#isLoggedConnected = isConnected;
    const fields = { place: this.#topology.name };
    if (isConnected) this.#log.info('redis is connected', fields);
    else this.#log.warn('redis cannot be reached', { ...fields, error: this.#cause });
  }
}

/** Lets a connection receive its pending answers, for a second at most, then closes it. */
async function drain(client: RedisClient): Promise<void> {
  const limit = Promise.withResolvers<void>();
  const timer = setTimeout(limit.resolve, drainMs);
  // Closing rejects when the connection is broken already, and never resolves when it breaks now.
  await Promise.race([client.close(), limit.promise]).catch(() => {});
  clearTimeout(timer);
  client.destroy();
}
