import type { RecordStore } from '../store/script.ts';
import { dueWebhooks } from '../store/webhooks/due-webhooks.ts';
import type { FairQueue } from './fair-queue.ts';

const fullPassMs = 60_000;
const pageSize = 500;

/**
 * Reads the record page by page and calls `goOn` after each one, so that queued webhooks are sent meanwhile; false ends the
 * search. `longestWaitMs`: from an attempt to the next one; a webhook that would wait longer is due at once.
 */
export function makeDueFinder(store: RecordStore, queue: FairQueue, longestWaitMs: number, goOn: () => boolean) {
  let seenTo = 0;
  let passedAt = Number.NEGATIVE_INFINITY;

  /** Returns the time up to which every due webhook is known. */
  const read = async (from: number, isEnough: () => boolean): Promise<number> => {
    for (let at = from; ; ) {
      const { due, now } = await dueWebhooks(store, pageSize, at, longestWaitMs);
      for (const one of due) queue.add(one, one.at);
      if (!goOn()) return at;
      if (due.length < pageSize) return now;
      // A page whose webhooks all share one time is skipped: a later pass finds the rest of that time.
      at = Math.max(at + 1, due.at(-1)?.at ?? 0);
      if (isEnough()) return at;
    }
  };
  return {
    /** Queues webhooks that became due since the last search, and those that a full queue left out; every minute all that are due. */
    find: async () => {
      if (performance.now() - passedAt >= fullPassMs) {
        passedAt = performance.now();
        seenTo = 0;
      }
      for (let refill = queue.refill(); refill !== null && goOn(); refill = queue.refill()) {
        await read(refill.from, refill.isEnough);
      }
      if (!queue.isFull()) seenTo = await read(seenTo, queue.isFull);
    },
    /** Lets the next search begin with all that are due. */
    forget: () => {
      passedAt = Number.NEGATIVE_INFINITY;
    },
  };
}
