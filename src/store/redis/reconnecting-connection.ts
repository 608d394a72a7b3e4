import { setTimeout as pause } from 'node:timers/promises';
import { backoffMs } from '../../base/backoff.ts';
import type { Log } from '../../base/log.ts';
import { within } from '../../base/within.ts';
import { CallSender, type Patience, unavailable } from './call-sender.ts';
import type { RedisTopology } from './discovery.ts';
import type { Cover } from './durability-watch.ts';
import { explainFailure } from './explain-failure.ts';
import { isReply, openRedisClient, type RedisClient } from './redis-client.ts';
import { RedisTimeout, timeoutMs, withTimeout } from './redis-time.ts';

/** Steps for each connection: one before it is used, one every 400 ms while it is. Each tells how its changes reach a replica. */
export interface ConnectionCare {
  readonly prepare: (client: RedisClient) => Promise<Cover | undefined>;
  /** Fails when Redis does not answer. */
  readonly check: (client: RedisClient) => Promise<Cover | undefined>;
}

const delays = { firstMs: 25, maxMs: 200 };
const steadyMs = 1_000;
const checkIntervalMs = 400;
const drainMs = 1_000;
/** Errors of a Redis that is there and will answer: its disk is busy, or it reads its file. */
const late = /^(LOADING|BUSY)\b/;

/**
 * Keeps one connection to the node that has the record, and opens the next one when it breaks. Each one has answered PING
 * and is prepared before calls are sent over it.
 */
export class ReconnectingConnection {
  readonly calls: CallSender;
  readonly #topology: RedisTopology;
  readonly #log: Log;
  readonly #care: ConnectionCare;
  readonly #patience: Patience | undefined;
  readonly #openMs: number;
  readonly #closing = new AbortController();
  readonly #kept: Promise<void>;
  #isLoggedConnected: boolean | undefined;
  #drained: Promise<void> = Promise.resolve();

  constructor(topology: RedisTopology, log: Log, care: ConnectionCare, patience?: Patience, openMs = 0) {
    this.calls = new CallSender(topology.moved, patience);
    this.#topology = topology;
    this.#log = log;
    this.#care = care;
    this.#patience = patience;
    this.#openMs = Math.max(openMs, patience?.timeoutMs ?? 0);
    this.#kept = this.#keep();
  }

  /** Waits for the first connection: for a Redis that is late as long as this process may, never for one that is absent. */
  async open(): Promise<void> {
    const endsAt = performance.now() + this.#openMs;
    for (;;) {
      try {
        await this.calls.make(() => this.calls.present(), timeoutMs);
        return;
      } catch (error) {
        const cause = this.calls.cause ?? (error instanceof Error ? error.cause : error);
        const isLate = cause instanceof RedisTimeout || isReply(cause, late);
        if (isLate && performance.now() < endsAt) {
          this.#patience?.onSlow();
          continue;
        }
        // The start fails now; attempts under way end by themselves.
        void this.close();
        const place = this.#topology.name;
        const failed = isReply(cause) ? `Redis at ${place} refuses` : `Redis cannot be reached at ${place}`;
        throw unavailable(cause, `${failed}: ${explainFailure(cause)}`);
      }
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const client = this.calls.client();
    if (client) this.calls.leave(client);
    await this.#kept;
    await this.#drained;
  }

  async #keep(): Promise<void> {
    let failures = 0;
    for (let turn = 0; !this.#closing.signal.aborted; turn += 1) {
      const began = performance.now();
      await this.#useOne(turn).catch((error) => {
        this.calls.cause = error;
        this.#logChange(false);
      });
      failures = performance.now() - began > steadyMs ? 1 : failures + 1;
      // The delay ends early only when the connection is closed.
      await pause(backoffMs(failures, delays), undefined, { signal: this.#closing.signal }).catch(() => {});
    }
  }

  /** Uses one connection until it is left; throws why it broke. */
  async #useOne(turn: number): Promise<void> {
    const client = await openRedisClient(await this.#topology.find(turn));
    try {
      await withTimeout(client.sendCommand(['PING']));
      const cover = await withTimeout(this.#care.prepare(client));
      this.calls.noteCover(client, cover);
      if (!client.isReady || this.#closing.signal.aborted) return;
      await new Promise<void>((leave, broke) => {
        client.once('terminated', broke);
        this.calls.begin({ client, cover, leave, broke });
        this.#logChange(true);
        void this.#watch(client);
      });
    } finally {
      this.calls.forget(client);
      this.#drained = drain(client);
    }
  }

  /** Asks every 400 ms, so that a Redis that is gone is noticed without a call. */
  async #watch(client: RedisClient): Promise<void> {
    for (;;) {
      await pause(checkIntervalMs, undefined, { ref: false });
      if (this.calls.client() !== client) return;
      await withTimeout(this.#care.check(client), this.calls.timeoutMs).then(
        (cover) => this.calls.noteCover(client, cover),
        // Any other error means that the connection ended, or that too many commands are pending.
        (error) => error instanceof RedisTimeout && this.calls.suspect(client, error),
      );
    }
  }

  /** Logs each change once, however many attempts fail in between. */
  #logChange(isConnected: boolean): void {
    if (this.#isLoggedConnected === isConnected) return;
    this.#isLoggedConnected = isConnected;
    const fields = { place: this.#topology.name };
    if (isConnected) this.#log.info('redis is connected', fields);
    else this.#log.warn('redis cannot be reached', { ...fields, error: this.calls.cause });
  }
}

/** Lets a connection receive its pending answers, for a second at most, then closes it. */
async function drain(client: RedisClient): Promise<void> {
  // Closing rejects when the connection is broken already, and never resolves when it breaks now.
  await within(drainMs, client.close()).catch(() => {});
  client.destroy();
}
