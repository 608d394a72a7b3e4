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

/**
 * Knows how well the Redis in use keeps its changes, and waits for its replicas. `isReplicated`: the record is known to have some, although
 * perhaps not at this moment.
 */
export function watchDurability(isReplicated: boolean, observe?: ObserveReplicas) {
  const covers = new WeakMap<RedisClient, Cover>();
  const listeners = new Set<() => void>();
  let last: Durability = { weaknesses: [], replicas: 0 };
  let hasReplicas = isReplicated;
  let lookedAt = 0;

  const wait = async (client: RedisClient): Promise<boolean> => {
    const began = performance.now();
    const count = Number(await client.sendCommand(['WAIT', '1', String(replicaMs)]));
    observe?.((performance.now() - began) / 1000, count > 0);
    return count > 0;
  };
  const coverOf = (client: RedisClient): Cover | undefined => {
    if (last.replicas === 0) return undefined;
    const cover = covers.get(client) ?? shareWaits(() => wait(client));
    covers.set(client, cover);
    return cover;
  };
  /** Looks at the Redis of a connection. Returns how its changes reach a replica; `undefined` without replicas. */
  const look = async (client: RedisClient): Promise<Cover | undefined> => {
    lookedAt = performance.now();
    last = await readDurability((command) => client.sendCommand(command), hasReplicas);
    hasReplicas ||= last.replicas > 0;
    for (const listener of listeners) listener();
    return coverOf(client);
  };
  return {
    look,
    /** Looks again after 5 s: an operator may have changed a setting, or added a replica. */
    lookAgain: async (client: RedisClient) =>
      performance.now() - lookedAt > lookEveryMs ? look(client) : coverOf(client),
    last: () => last,
    hasReplicas: () => hasReplicas,
    watch: (listener: () => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/**
 * Waits until a replica has what was written on one connection, with one WAIT for everything that was sent since the last.
 * Redis answers nothing else on the connection meanwhile, so the next WAIT is sent only when the last one has ended.
 */
function shareWaits(wait: () => Promise<boolean>): Cover {
  let next: Promise<boolean> | undefined;
  let last: Promise<unknown> | undefined;
  /** In the turn that begins now more may be sent: all of it has one WAIT, which leaves in the same packet. */
  const begin = async (turn: Promise<unknown>): Promise<boolean> => {
    await turn;
    next = undefined;
    const waiting = wait();
    // Whoever waits for it gets its error; the next WAIT follows all the same.
    last = waiting.catch(() => {});
    try {
      return await waiting;
    } finally {
      if (next === undefined) last = undefined;
    }
  };
  return () => {
    next ??= begin(last ? last.then(() => nextTurn()) : nextTurn());
    return next;
  };
}
