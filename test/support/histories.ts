import fc from 'fast-check';
import type { LedgerEntry } from '../../src/model/ledger.ts';
import { type AccountBalances, subscriptionLeft } from '../../src/model/money.ts';
import { aPack, someBalances } from './balances.ts';
import { balanceToDraw, draw } from './reference-models.ts';

/** The money of one account: what happened to it, and what it came to. */
export interface History {
  readonly entries: readonly LedgerEntry[];
  readonly balances: AccountBalances;
  readonly holds: number;
  /** Jobs and calls that completed. */
  readonly completed: number;
}

type MoneyOperation =
  | { readonly do: 'credits' | 'pack' | 'quota'; readonly amount: number }
  | { readonly do: 'renew' | 'hold' | 'release' | 'charge' };

const amount = fc.integer({ min: 1, max: 6 });
const operations: fc.Arbitrary<MoneyOperation> = fc.oneof(
  fc.record({ do: fc.constantFrom('credits' as const, 'pack' as const), amount }),
  fc.record({ do: fc.constant('quota' as const), amount: fc.nat(6) }),
  fc.record({ do: fc.constantFrom('renew' as const, 'hold' as const, 'release' as const) }),
  { arbitrary: fc.record({ do: fc.constant('charge' as const) }), weight: 3 },
);

/** Random operations on an account: money comes in, quotas change and end, calls are held, released and charged. */
export const histories: fc.Arbitrary<History> = fc
  .array(operations, { maxLength: 40 })
  .map((list) => list.reduce(take, { entries: [], balances: someBalances(), holds: 0, completed: 0 }));

function take(history: History, deed: MoneyOperation): History {
  const { balances, holds } = history;
  switch (deed.do) {
    case 'credits': {
      const after = { ...balances, credits_given: balances.credits_given + deed.amount };
      return book(history, after, ['grant', 'credits', deed.amount, null, null]);
    }
    case 'pack': {
      const id = `p${balances.packs.length}`;
      const packs = [...balances.packs, aPack(id, { total: deed.amount, purchased_at: -balances.packs.length })];
      return book(history, { ...balances, packs }, ['grant', 'packs', deed.amount, null, id]);
    }
    case 'quota':
      return changeSubscription(history, { ...balances, quota: deed.amount });
    case 'renew':
      return changeSubscription(changeSubscription(history, { ...balances, quota: 0 }), { ...balances, used: 0 });
    case 'hold':
      return { ...history, holds: holds + 1, balances: { ...balances, held: balances.held + 1 } };
    case 'release':
      return holds === 0
        ? history
        : { ...history, holds: holds - 1, balances: { ...balances, held: balances.held - 1 } };
    case 'charge': {
      const { balance, pack = null } = balanceToDraw(balances);
      const kind = balance === 'overdraft' ? 'overdraft' : 'charge';
      return book(history, draw(balances), [kind, balance, 1, `j${history.entries.length}`, pack]);
    }
  }
}

/** Grants or lets lapse the difference between what was left and what is left now. */
function changeSubscription(history: History, balances: AccountBalances): History {
  const change = subscriptionLeft(balances) - subscriptionLeft(history.balances);
  if (change === 0) return { ...history, balances };
  return book(history, balances, [change > 0 ? 'grant' : 'lapse', 'subscription', Math.abs(change), null, null]);
}

type Row = [LedgerEntry['kind'], LedgerEntry['balance'], amount: number, job: string | null, pack: string | null];

function book(history: History, balances: AccountBalances, [kind, balance, moved, job, pack]: Row): History {
  const n = history.entries.length;
  const entry: LedgerEntry = { at: n, entry: `e${n}`, kind, balance, amount: moved, job, pack };
  const completed = history.completed + (job === null ? 0 : 1);
  return { ...history, balances, completed, entries: [...history.entries, entry] };
}
