import type { Plan } from '../../model/account.ts';
import { subscriptionLeft } from '../../model/money.ts';
import { parseBalances, readRawBalances, withDamagedRest } from '../money/read-balances.ts';
import { rollPeriod } from '../money/roll-period.ts';
import { number, type RecordStore } from '../script.ts';
import { accountOf } from './read-accounts.ts';
import { readPlan } from './read-plans.ts';

export type AccountSnapshot = ReturnType<typeof snapshotOf>;

/**
 * Reads an account with its balances, and rolls its billing period first when that has ended. `newestEntry` is the newest entry of its
 * ledger at that moment, '' without one. Throws `not_found`.
 */
export async function readSnapshot(store: RecordStore, accountId: string) {
  let seen = await readRawBalances(store, accountId);
  const ends = number(seen.fields.period_end);
  if (ends !== null && ends <= store.clock.now()) {
    await rollPeriod(store, accountId);
    // Read again also where another reader has rolled it meanwhile.
    seen = await readRawBalances(store, accountId);
  }
  const { plan: name, quota } = seen.fields;
  const plan = name ? await readPlan(store, { name, quota: Number(quota) }) : null;
  return { ...snapshotOf(seen.fields, seen.packs, plan), newestEntry: seen.newestEntry };
}

/** The quota is that of the plan, which may have changed since it was booked. */
export function snapshotOf(
  fields: Readonly<Record<string, string>>,
  packs: Readonly<Record<string, string>>,
  plan: Plan | null,
) {
  const booked = parseBalances(fields, packs);
  const packsKept = withDamagedRest(booked.packs, Number(fields.packs_left));
  const balances = { ...booked, packs: packsKept, quota: plan?.quota ?? 0 };
  /** Credits of a changed plan that the next charge books in the ledger; below 0 where they lapse. */
  const unbooked = subscriptionLeft(balances) - subscriptionLeft(booked);
  return { account: accountOf(fields), plan, balances, unbooked };
}
