import { setTimeout as pause } from 'node:timers/promises';
import { backoffMs } from '../../base/backoff.ts';
import type { Log } from '../../base/log.ts';
import type { RedisTopology } from './discovery.ts';
import { MissingReplica, meansAway, type PendingCall, unavailable } from './pending-call.ts';
import { asBytesOptions, isReply, openRedisClient, type RedisClient } from './redis-client.ts';
import { RedisTimeout, timeoutMs, withTimeout } from './timeout.ts';

type CommandWords = readonly (string | Buffer)[];

interface SendOptions {
  /** Returns the EVAL that carries the text of a script which Redis does not know. */
  readonly carrying?: () => CommandWords;
  /** Leaves the replies as bytes. */
  readonly asBytes?: boolean | undefined;
  /** Its answer waits until a replica has its change, where there are replicas. */
  readonly isKept?: boolean | undefined;
}

interface Use {
  readonly client: RedisClient;
  readonly leave: () => void;
  readonly broke: (why: Error) => void;
}

/** Steps for each connection: one before it is used, one every 400 ms while it is. */
interface ConnectionCare {
  readonly prepare: (client: RedisClient) => Promise<void>;
  /** Fails when Redis does not answer. */
  readonly check: (client: RedisClient) => Promise<unknown>;
  /** Called right before a change is sent: resolves whether a replica has it; `undefined` without replicas. */
  readonly cover?: (client: RedisClient) => Promise<boolean> | undefined;
}

/** Patience of a process whose calls wait for Redis longer than those of the API. */
export interface Patience {
  /** Longest time for a call. */
  readonly timeoutMs: number;
  /** Called for each call that Redis has not answered for 2 s. */
  readonly onSlow: () => void;
}

interface Limit {
  readonly withinMs?: number | undefined;
}

/** Errors after which another node may run the command: this one did nothing. */
const elsewhere = /^(READONLY|MOVED|CLUSTERDOWN|MASTERDOWN)\b/;
const delays = { firstMs: 25, maxMs: 200 };
const steadyMs = 1_000;
const checkIntervalMs = 400;
const drainMs = 1_000;
const slowMs = 2_000;
/** Errors of a Redis that is there and will answer: its disk is busy, or it reads its file. */
const late = /^(LOADING|BUSY)\b/;

/**
 * Keeps one connection to the node that has the record, and opens the next one when it breaks. Each one has answered PING
 * and is prepared before it is used. Each call is answered, or fails with `unavailable` and its cause, within two seconds.
 */
export class ReconnectingConnection {
  readonly #topology: RedisTopology;
  readonly #log: Log;
  readonly #care: ConnectionCare;
  readonly #patience: Patience | undefined;
  readonly #openMs: number;
  readonly #timeoutMs: number;
  readonly #closing = new AbortController();
  readonly #kept: Promise<void>;
  #use: Use | undefined;
  #arrival = Promise.withResolvers<RedisClient>();
  #cause: unknown;
  #answeredAt = 0;
  #sent = 0;
  #isLoggedConnected: boolean | undefined;
  #drained: Promise<void> = Promise.resolve();

  constructor(topology: RedisTopology, log: Log, care: ConnectionCare, patience?: Patience, openMs = 0) {
    this.#topology = topology;
    this.#log = log;
    this.#care = care;
    this.#patience = patience;
    this.#openMs = Math.max(openMs, patience?.timeoutMs ?? 0);
    this.#timeoutMs = patience?.timeoutMs ?? timeoutMs;
    this.#kept = this.#keep();
  }

  /** Waits for the first connection: for a Redis that is late as long as this process may, never for one that is absent. */
  async open(): Promise<void> {
    const endsAt = performance.now() + this.#openMs;
    for (;;) {
      try {
        await this.make(() => this.present(), { withinMs: timeoutMs });
        return;
      } catch (error) {
        const cause = this.#cause ?? (error instanceof Error ? error.cause : error);
        const isLate = cause instanceof RedisTimeout || isReply(cause, late);
        if (isLate && performance.now() < endsAt) {
          this.#patience?.onSlow();
          continue;
        }
        // The start fails now; attempts under way end by themselves.
        void this.close();
        throw unavailable(cause, `Redis cannot be reached at ${this.#topology.name}`);
      }
    }
  }

  client(): RedisClient | undefined {
    return this.#use?.client;
  }

  /** Waits for a connection, however long that takes. */
  present(): Promise<RedisClient> {
    return this.#arrival.promise;
  }

  /** Returns how many commands were sent. */
  sent(): number {
    return this.#sent;
  }

  /** Runs the commands of one call within the timeout. */
  async make<T>(
    work: (call: PendingCall) => Promise<T>,
    { withinMs: milliseconds = this.#timeoutMs }: Limit = {},
  ): Promise<T> {
    const call: PendingCall = { endsAt: performance.now() + milliseconds, isOver: false };
    const slow = this.#patience && setTimeout(this.#patience.onSlow, slowMs);
    const postpone = (endsAt: number) => {
      call.endsAt = Math.max(call.endsAt, endsAt);
    };
    try {
      return await withTimeout(work(call), milliseconds, postpone);
    } catch (error) {
      if (!(error instanceof RedisTimeout)) throw meansAway(error) ? unavailable(error, undefined, call) : error;
      if (call.client) this.#suspect(call.client, error);
      throw unavailable(call.error ?? error, undefined, call);
    } finally {
      clearTimeout(slow);
      call.isOver = true;
    }
  }

  /**
   * Sends one command of a call, and sends it to another node when this one only refused it. When Redis does not know the
   * script of an EVALSHA, the EVAL that carries its text follows.
   */
  async send(
    call: PendingCall,
    command: CommandWords,
    { carrying, asBytes, isKept = false }: SendOptions = {},
  ): Promise<unknown> {
    let client = this.client();
    let next = command;
    for (;;) {
      if (!client || call.isOver) throw call.error ?? this.#cause ?? new Error('There is no connection');
      call.client = client;
      this.#sent += 1;
      const covered = isKept ? this.#care.cover?.(client) : undefined;
      // A command that fails waits for no replica.
      covered?.catch(() => {});
      try {
        const reply = await client.sendCommand(next, asBytes ? asBytesOptions : undefined);
        this.#noteAnswer();
        if (covered && !(await covered)) throw new MissingReplica();
        return reply;
      } catch (error) {
        if (isReply(error)) this.#noteAnswer();
        if (carrying && next === command && isReply(error, /^NOSCRIPT/)) {
          next = carrying();
          continue;
        }
        if (!isReply(error, elsewhere)) throw error;
        if (isReply(error, /^MOVED/)) this.#topology.moved();
        call.error = error;
        this.#leave(client);
        client = await this.present();
      }
    }
  }

  #noteAnswer(): void {
    this.#answeredAt = performance.now();
  }

  /** Gives up a connection after a timeout, unless other answers still arrive; its pending commands fail. */
  #suspect(client: RedisClient, why: RedisTimeout): void {
    if (performance.now() - this.#answeredAt < this.#timeoutMs) return;
    this.#forget(client)?.broke(why);
    client.destroy();
  }

  /** Looks up again which node has the record; the old connection still receives its pending answers. */
  #leave(client: RedisClient): void {
    this.#forget(client)?.leave();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    if (this.#use) this.#leave(this.#use.client);
    await this.#kept;
    await this.#drained;
  }

  async #keep(): Promise<void> {
    let failures = 0;
    for (let turn = 0; !this.#closing.signal.aborted; turn += 1) {
      const began = performance.now();
      await this.#useOne(turn).catch((error) => {
        this.#cause = error;
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
      await withTimeout(this.#care.prepare(client));
      this.#noteAnswer();
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

  /** Asks every 400 ms, so that a Redis that is gone is noticed without a call. */
  async #watch(client: RedisClient): Promise<void> {
    for (;;) {
      await pause(checkIntervalMs, undefined, { ref: false });
      if (this.#use?.client !== client) return;
      await withTimeout(this.#care.check(client), this.#timeoutMs).then(
        () => this.#noteAnswer(),
        // Any other error means that the connection ended, or that too many commands are pending.
        (error) => error instanceof RedisTimeout && this.#suspect(client, error),
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
