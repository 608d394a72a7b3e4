import fc from 'fast-check';
import type { LedgerEntry } from '../../src/model/ledger.ts';
import { type AccountBalances, subscriptionLeft } from '../../src/model/money.ts';
import { aPack, someBooks } from './books.ts';
import { balanceToDraw, draw } from './reference-models.ts';

/** The money of one account: what happened to it, and what it came to. */
export interface History {
  readonly entries: readonly LedgerEntry[];
  readonly books: AccountBalances;
  readonly holds: number;
}

type Deed =
  | { readonly do: 'credits' | 'pack' | 'quota'; readonly amount: number }
  | { readonly do: 'renew' | 'hold' | 'release' | 'charge' };

const amount = fc.integer({ min: 1, max: 6 });
const deeds: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ do: fc.constantFrom('credits' as const, 'pack' as const), amount }),
  fc.record({ do: fc.constant('quota' as const), amount: fc.nat(6) }),
  fc.record({ do: fc.constantFrom('renew' as const, 'hold' as const, 'release' as const) }),
  { arbitrary: fc.record({ do: fc.constant('charge' as const) }), weight: 3 },
);

/** What may happen to an account: money comes in, quotas change and end, calls are held, released and charged. */
export const histories: fc.Arbitrary<History> = fc
  .array(deeds, { maxLength: 40 })
  .map((list) => list.reduce(take, { entries: [], books: someBooks(), holds: 0 }));

function take(history: History, deed: Deed): History {
  const { books, holds } = history;
  switch (deed.do) {
    case 'credits': {
      const after = { ...books, credits_given: books.credits_given + deed.amount };
      return book(history, after, ['grant', 'credits', deed.amount, null, null]);
    }
    case 'pack': {
      const id = `p${books.packs.length}`;
      const packs = [...books.packs, aPack(id, { total: deed.amount, purchased_at: -books.packs.length })];
      return book(history, { ...books, packs }, ['grant', 'packs', deed.amount, null, id]);
    }
    case 'quota':
      return changeSubscription(history, { ...books, quota: deed.amount });
    case 'renew':
      return changeSubscription(changeSubscription(history, { ...books, quota: 0 }), { ...books, used: 0 });
    case 'hold':
      return { ...history, holds: holds + 1, books: { ...books, held: books.held + 1 } };
    case 'release':
      return holds === 0 ? history : { ...history, holds: holds - 1, books: { ...books, held: books.held - 1 } };
    case 'charge': {
      const { balance, pack = null } = balanceToDraw(books);
      const kind = balance === 'overdraft' ? 'overdraft' : 'charge';
      return book(history, draw(books), [kind, balance, 1, `j${history.entries.length}`, pack]);
    }
  }
}

/** Grants or lets lapse the difference between what was left and what is left now. */
function changeSubscription(history: History, books: AccountBalances): History {
  const change = subscriptionLeft(books) - subscriptionLeft(history.books);
  if (change === 0) return { ...history, books };
  return book(history, books, [change > 0 ? 'grant' : 'lapse', 'subscription', Math.abs(change), null, null]);
}

type Row = [LedgerEntry['kind'], LedgerEntry['balance'], amount: number, job: string | null, pack: string | null];

function book(history: History, books: AccountBalances, [kind, balance, moved, job, pack]: Row): History {
  const n = history.entries.length;
  const entry: LedgerEntry = { at: n, entry: `e${n}`, kind, balance, amount: moved, job, pack };
  return { ...history, books, entries: [...history.entries, entry] };
}
