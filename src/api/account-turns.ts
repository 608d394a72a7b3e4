import type { ServerResponse } from 'node:http';
import { CountsByName } from '../base/counts.ts';
import { refuse } from '../base/errors.ts';
import { mayTakeSlot } from '../model/slot-share.ts';
import type { KeyedCall } from './api-call.ts';
import { onLeave } from './on-leave.ts';
import { rateSentence } from './reply.ts';

/** Does the work of a call when it is its turn; returns `null` when its caller has left before. */
export type TakeTurn = <T>(call: Pick<KeyedCall, 'key' | 'res'>, work: () => Promise<T>) => Promise<T | null>;

/**
 * Returns a function that does at most so many pieces of work of an account at once in this process, and refuses further ones meanwhile
 * with `sentence`.
 */
export function fewAtATime(max: number, sentence: string, retryAfterSeconds?: number) {
  const inHand = new CountsByName();
  return async <T>(accountId: string, work: () => Promise<T>): Promise<T> => {
    if (inHand.of(accountId) >= max) throw refuse('rate_limited', sentence, retryAfterSeconds);
    inHand.change(accountId, 1);
    try {
      return await work();
    } finally {
      inHand.change(accountId, -1);
    }
  };
}

const maxReading = 4;
/** Of all accounts, as many as an API has requests in hand: one account takes half, each further one half of the rest. */
const maxWaiting = 1000;
const retrySeconds = 1;

/**
 * Returns a function that does at most 4 works of an account at once, such as pages of 100 jobs, and further ones in their order: the
 * commands of hundreds would be sent to Redis before those of everybody else. The one after 500 that wait is refused, sooner while those of
 * other accounts wait.
 */
export function makeAccountTurns(): TakeTurn {
  const reading = new CountsByName();
  const waiting = new Map<string, Set<(isTurn: boolean) => void>>();
  let allWaiting = 0;
  return async ({ key: { accountId }, res }, work) => {
    if (reading.of(accountId) < maxReading) reading.change(accountId, 1);
    else if (!(await waitForTurn(accountId, res))) return null;
    try {
      return res.destroyed ? null : await work();
    } finally {
      const [next] = waiting.get(accountId) ?? [];
      // A turn is handed on as it is.
      if (next === undefined) reading.change(accountId, -1);
      else {
        leaveQueue(accountId, next);
        next(true);
      }
    }
  };

  function leaveQueue(accountId: string, call: (isTurn: boolean) => void): void {
    const others = waiting.get(accountId);
    if (others?.delete(call)) allWaiting--;
    if (others?.size === 0) waiting.delete(accountId);
  }

  /** Returns false once the caller has left. */
  function waitForTurn(accountId: string, res: ServerResponse): Promise<boolean> {
    const others = waiting.get(accountId) ?? new Set();
    if (!mayTakeSlot(others.size, maxWaiting - allWaiting)) {
      throw refuse('rate_limited', rateSentence('waiting-calls'), retrySeconds);
    }
    allWaiting++;
    waiting.set(accountId, others);
    const turn = Promise.withResolvers<boolean>();
    others.add(turn.resolve);
    const leave = () => {
      leaveQueue(accountId, turn.resolve);
      turn.resolve(false);
    };
    // A caller that has closed its side is asked whether it has left.
    return turn.promise.finally(onLeave(res, leave));
  }
}
