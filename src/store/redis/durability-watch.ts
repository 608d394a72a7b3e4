import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Durability, readDurability } from './durability.ts';
import type { RedisClient } from './redis-client.ts';

/** Called with the time of each WAIT in seconds, and whether a replica had the changes. */
export type ObserveReplicas = (seconds: number, hasReplica: boolean) => void;

/** Called right before a change is sent: resolves whether a replica has it. */
export type Cover = () => Promise<boolean>;

/** Longest time for which an answer waits for a replica. */
export const replicaMs = 1_000;
const lookEveryMs = 5_000;

/** Knows how well the Redis in use keeps its changes, and waits for its replicas. */
export class DurabilityWatch {
  readonly #observe: ObserveReplicas | undefined;
  readonly #waits = new WeakMap<RedisClient, ReplicaWait>();
  readonly #listeners = new Set<() => void>();
  #last: Durability = { weaknesses: [], replicas: 0 };
  #hasReplicas: boolean;
  #lookedAt = 0;

  /** `hasReplicas`: the record is known to have some, although perhaps not at this moment. */
  constructor(hasReplicas: boolean, observe?: ObserveReplicas) {
    this.#hasReplicas = hasReplicas;
    this.#observe = observe;
  }

  last(): Durability {
    return this.#last;
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  hasReplicas(): boolean {
    return this.#hasReplicas;
  }

  /** Looks at the Redis of a connection. Returns how its changes reach a replica; `undefined` without replicas. */
  async look(client: RedisClient): Promise<Cover | undefined> {
    this.#lookedAt = performance.now();
    this.#last = await readDurability((command) => client.sendCommand(command), this.#hasReplicas);
    this.#hasReplicas ||= this.#last.replicas > 0;
    for (const listener of this.#listeners) listener();
    return this.#coverOf(client);
  }

  /** Looks again after 5 s: an operator may have changed a setting, or added a replica. */
  async lookAgain(client: RedisClient): Promise<Cover | undefined> {
    return performance.now() - this.#lookedAt > lookEveryMs ? this.look(client) : this.#coverOf(client);
  }

  #coverOf(client: RedisClient): Cover | undefined {
    if (this.#last.replicas === 0) return undefined;
    const wait = this.#waits.get(client) ?? new ReplicaWait(() => this.#wait(client));
    this.#waits.set(client, wait);
    return () => wait.cover();
  }

  async #wait(client: RedisClient): Promise<number> {
    const began = performance.now();
    const count = Number(await client.sendCommand(['WAIT', '1', String(replicaMs)]));
    this.#observe?.((performance.now() - began) / 1000, count > 0);
    return count;
  }
}

/**
 * Waits until a replica has what was written on one connection, with one WAIT for everything that was sent since the last.
 * Redis answers nothing else on the connection meanwhile, so the next WAIT is sent only when the last one has ended.
 */
class ReplicaWait {
  readonly #wait: () => Promise<unknown>;
  #next: Promise<boolean> | undefined;
  #last: Promise<unknown> | undefined;

  /** `wait` sends WAIT and returns the number of replicas that have everything. */
  constructor(wait: () => Promise<unknown>) {
    this.#wait = wait;
  }

  cover(): Promise<boolean> {
    this.#next ??= this.#begin(this.#last ? this.#last.then(() => nextTurn()) : nextTurn());
    return this.#next;
  }

  /** In the turn that begins now more may be sent: all of it has one WAIT, which leaves in the same packet. */
  async #begin(turn: Promise<unknown>): Promise<boolean> {
    await turn;
    this.#next = undefined;
    const waiting = this.#wait();
    this.#last = waiting.then(
      () => {},
      () => {},
    );
    try {
      return Number(await waiting) > 0;
    } finally {
      if (this.#next === undefined) this.#last = undefined;
    }
  }
}
