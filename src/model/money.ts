import type { Account, Key, Plan } from './account.ts';
import { monthOf } from './billing-period.ts';
import { writeTime } from './timestamp.ts';

/** Balance that a credit is drawn from; `overdraft` when all three are empty (D71). */
export type Balance = 'subscription' | 'packs' | 'credits' | 'overdraft';

export interface Pack {
  readonly id: string;
  readonly title: string;
  /** Milliseconds. */
  readonly purchased_at: number;
  readonly total: number;
  readonly used: number;
}

/** Money of one account in the record. Times are milliseconds, `null` without a plan. */
export interface AccountBalances {
  /** Quota that the plan granted for this period as last booked; 0 without a plan. */
  readonly quota: number;
  readonly used: number;
  readonly period_start: number | null;
  readonly period_end: number | null;
  readonly packs: readonly Pack[];
  readonly credits_given: number;
  readonly credits_consumed: number;
  readonly held: number;
}

/** Returns the rest of the plan's quota; 0 also when more was used than a lowered quota grants. */
export function subscriptionLeft(balances: Pick<AccountBalances, 'quota' | 'used'>): number {
  return leftOf(balances.quota, balances.used);
}

/** The packs in the order in which they are drawn: by purchase, then by id. */
function packOrder(packs: readonly Pack[]): Pack[] {
  return packs.toSorted((a, b) => a.purchased_at - b.purchased_at || Number(a.id > b.id) - Number(a.id < b.id));
}

/** Returns the rest of all balances; credits on hold count as left (D41). */
export function remaining(balances: AccountBalances): number {
  return (
    subscriptionLeft(balances) +
    sum(balances.packs.map(packLeft)) +
    leftOf(balances.credits_given, balances.credits_consumed)
  );
}

export function packItem(pack: Pack) {
  const { id, title, total, used } = pack;
  const left = packLeft(pack);
  const purchased_at = writeTime(pack.purchased_at);
  return { id, title, purchased_at, ...share(total, used, left), exhausted: left === 0 };
}

export type Usage = ReturnType<typeof usage>;

/** The Usage snapshot of the contract, with `held` added. The period must have been rolled; `key` is null when no key asks. */
export function usage(
  balances: AccountBalances,
  account: Pick<Account, 'name' | 'slug'>,
  plan: Pick<Plan, 'per_minute' | 'per_second'> | null,
  key: Pick<Key, 'alias' | 'active' | 'category' | 'expires' | 'quotas'> | null,
  now: number,
) {
  const { quota, used, period_start, period_end, credits_given, credits_consumed } = balances;
  const packs = packsUsage(balances.packs);
  const { used: packsUsed, total: packsTotal, remaining: packsLeft } = packs ?? share(0, 0, 0);
  const renewed = plan !== null && period_start !== null && period_end !== null;
  const period = renewed ? { start: period_start, end: period_end } : monthOf(now);
  return {
    remaining: remaining(balances),
    total_used: used + packsUsed + credits_consumed,
    held: balances.held,
    renewal_date: renewed ? writeTime(period_end) : null,
    period: { start: writeTime(period.start), end: writeTime(period.end) },
    subscription: share(quota + packsTotal, used + packsUsed, subscriptionLeft(balances) + packsLeft),
    packs,
    credits: {
      given: credits_given,
      consumed: credits_consumed,
      remaining: leftOf(credits_given, credits_consumed),
      percent_used: percent(credits_consumed, credits_given),
    },
    rate_limit: { per_minute: plan?.per_minute ?? null, per_second: plan?.per_second ?? null },
    account: { name: account.name, slug: account.slug },
    api_key: key && keyUsage(key),
  };
}

/** The reduced usage answer: the plan's name, or `none`, and what remains as text (D48, D80). */
export function reducedUsage(balances: AccountBalances, plan: Pick<Plan, 'name'> | null) {
  return { plan: plan?.name ?? 'none', remaining: String(remaining(balances)) };
}

function packsUsage(packs: readonly Pack[]) {
  if (packs.length === 0) return null;
  const items = packOrder(packs).map(packItem);
  const exhausted = items.filter((item) => item.exhausted).length;
  const current = items.findIndex((item) => !item.exhausted);
  return {
    count: items.length,
    exhausted_count: exhausted,
    all_exhausted: exhausted === items.length,
    ...share(sum(packs.map((pack) => pack.total)), sum(packs.map((pack) => pack.used)), sum(packs.map(packLeft))),
    current_index: current === -1 ? items.length : current,
    current: items[current] ?? null,
    items,
  };
}

function keyUsage(key: Pick<Key, 'alias' | 'active' | 'category' | 'expires' | 'quotas'>) {
  const { alias, active, category, expires } = key;
  const { total, daily, weekly, monthly } = key.quotas;
  const quotas = { total, daily, weekly, monthly };
  return { alias, active, category, expires: writeTime(expires), quotas };
}

function share(total: number, used: number, left: number) {
  return { total, used, remaining: left, percent_used: percent(used, total) };
}

function percent(used: number, total: number): number {
  return total === 0 ? 0 : Math.min(100, Math.round((used * 10_000) / total) / 100);
}

function packLeft(pack: Pack): number {
  return leftOf(pack.total, pack.used);
}

function leftOf(total: number, used: number): number {
  return Math.max(0, total - used);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((before, number) => before + number, 0);
}
