import type { RecordStore } from '../store/script.ts';
import { dueWebhooks } from '../store/webhooks/due-webhooks.ts';
import type { FairQueue } from './fair-queue.ts';

/** Finds webhooks that are due in the record. */
export interface DueFinder {
  /** Lets what has become due since the last time wait in the line, and what stayed out of it before; every minute all that is due. */
  readonly find: () => Promise<void>;
  /** Forgets what it has seen. */
  readonly forget: () => void;
}

const passMilliseconds = 60_000;
const pageSize = 500;

/** Reads the record page by page: after each one `goOn` is asked, so that the line moves meanwhile. */
export function makeDueFinder(store: RecordStore, line: FairQueue, goOn: () => boolean): DueFinder {
  let seenTo = 0;
  let passedAt = Number.NEGATIVE_INFINITY;

  /** Reads from a time on; answers up to when all is known. */
  const read = async (from: number, isEnough: () => boolean): Promise<number> => {
    for (let at = from; ; ) {
      const { due, now } = await dueWebhooks(store, pageSize, at);
      for (const one of due) line.add(one, one.at);
      if (!goOn()) return at;
      if (due.length < pageSize) return now;
      // A page that begins and ends with the same time is passed by: a later pass finds what stands behind it.
      at = Math.max(at + 1, due.at(-1)?.at ?? 0);
      if (isEnough()) return at;
    }
  };
  return {
    find: async () => {
      if (performance.now() - passedAt >= passMilliseconds) {
        passedAt = performance.now();
        seenTo = 0;
      }
      for (let lack = line.refill(); lack !== null && goOn(); lack = line.refill()) {
        await read(lack.from, lack.isEnough);
      }
      if (!line.isFull()) seenTo = await read(seenTo, line.isFull);
    },
    forget: () => {
      passedAt = Number.NEGATIVE_INFINITY;
    },
  };
}
