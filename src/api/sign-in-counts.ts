import type { Store } from 'express-rate-limit';
import { clearBlock } from '../store/access/clear-block.ts';
import { countSignIn, takeSignInsBack } from '../store/people/count-sign-in.ts';
import type { RecordStore } from '../store/script.ts';
import type { BlockedAddresses } from './caller-address.ts';

export const emailWindowMs = 15 * 60_000;

/** Sign-ins of each person in a window that begins with the first. */
export function emailCounts(store: RecordStore): Store {
  return {
    localKeys: false,
    async increment(personId) {
      const { count, leftMs } = await countSignIn(store, personId, emailWindowMs);
      return { totalHits: count, resetTime: inMs(leftMs) };
    },
    decrement: (personId) => takeSignInsBack(store, personId, 1),
    resetKey: (personId) => takeSignInsBack(store, personId, Number.MAX_SAFE_INTEGER),
  };
}

/** Failures of each address and its block, which no failure meanwhile makes longer. Only failures come here: none is ever taken back. */
export function addressCounts(store: RecordStore, blocked: BlockedAddresses): Store {
  const get = (address: string) => {
    const seconds = blocked.waitSeconds(address);
    return seconds === null ? undefined : { totalHits: Number.POSITIVE_INFINITY, resetTime: inMs(seconds * 1000) };
  };
  return {
    localKeys: false,
    get,
    increment: async (address) =>
      get(address) ?? { totalHits: await blocked.countFailure(address), resetTime: undefined },
    decrement: () => {},
    resetKey: async (address) => void (await clearBlock(store, address)),
  };
}

/** The clock of the record may differ from that of this process. */
function inMs(leftMs: number): Date {
  return new Date(Date.now() + leftMs);
}
