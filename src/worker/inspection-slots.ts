import { mayTakeSlot } from '../model/slot-share.ts';

/** The inspector cannot answer now; the caller may ask again in a few seconds. */
export class InspectorBusy extends Error {}

/** The account uses its share of the inspector, so that others find a free slot. */
export class ShareUsedUp extends Error {}

export interface SlotWaits {
  readonly maxWaitMs: number;
  /** After this time an account that uses no slot gets the one of the youngest inspection of the account that uses most. */
  readonly claimMs: number;
}

interface Inspection {
  readonly account: string;
  readonly stop: AbortController;
}

const defaultWaits: SlotWaits = { maxWaitMs: 10_000, claimMs: 2_000 };
/** Inspections that wait, for each that runs. */
const maxWaitingPerSlot = 4;

/**
 * Shares the inspector's slots among accounts: sources that never answer keep only slots of the account that named them busy. Returns a
 * function that runs an inspection as soon as its account may take a slot. It rejects with `ShareUsedUp` or `InspectorBusy` when the
 * account may not wait, has waited too long, or had to give its slot to one that used none.
 */
export function shareSlots(slots: number, waits = defaultWaits) {
  const running: Inspection[] = [];
  const waiting: { readonly account: string; readonly start: () => void }[] = [];
  const mayStart = (account: string) => mayTakeSlot(countOf(running, account), slots - running.length);
  const mayWait = (account: string) =>
    mayTakeSlot(countOf(waiting, account), slots * maxWaitingPerSlot - waiting.length);
  const refusalOf = (account: string) =>
    countOf(running, account) + countOf(waiting, account) > 0
      ? new ShareUsedUp('the account uses its share')
      : new InspectorBusy('too many requests at once');

  const startNext = () => {
    const able = waiting.filter(({ account }) => mayStart(account));
    // The sort is stable: among equals the first one that came starts.
    const [next] = able.sort((a, b) => countOf(running, a.account) - countOf(running, b.account));
    if (next === undefined) return;
    next.start();
    startNext();
  };
  const wait = (own: Inspection, gone: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const leave = () => {
        remove(waiting, entry);
        for (const timer of timers) clearTimeout(timer);
        gone.removeEventListener('abort', giveUp);
      };
      const giveUp = () => {
        leave();
        reject(refusalOf(own.account));
      };
      const start = () => {
        leave();
        running.push(own);
        resolve();
      };
      const entry = { account: own.account, start };
      waiting.push(entry);
      const timers = [setTimeout(claimSlot, waits.claimMs, running, own.account), setTimeout(giveUp, waits.maxWaitMs)];
      gone.addEventListener('abort', giveUp);
    });

  return async <T>(account: string, gone: AbortSignal, inspect: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const own = { account, stop: new AbortController() };
    if (mayStart(account)) running.push(own);
    else if (mayWait(account) && !gone.aborted) await wait(own, gone);
    else throw refusalOf(account);
    try {
      return await inspect(AbortSignal.any([gone, own.stop.signal]));
    } catch (error) {
      throw own.stop.signal.aborted ? new ShareUsedUp('another account needed the slot') : error;
    } finally {
      remove(running, own);
      startNext();
    }
  };
}

/** Stops the youngest inspection of the account that uses most, for an account that uses no slot. */
function claimSlot(running: readonly Inspection[], account: string): void {
  const kept = running.filter(({ stop }) => !stop.signal.aborted);
  const most = Math.max(...kept.map((one) => countOf(kept, one.account)));
  if (countOf(running, account) > 0 || most < 2) return;
  kept.findLast((one) => countOf(kept, one.account) === most)?.stop.abort();
}

function countOf(some: readonly { readonly account: string }[], account: string): number {
  return some.filter((one) => one.account === account).length;
}

function remove<T>(list: T[], one: T): void {
  list.splice(list.indexOf(one), 1);
}
