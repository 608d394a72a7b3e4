import { refuse } from '../base/errors.ts';
import { type ChartDay, chartDays } from '../model/chart-days.ts';
import { remaining } from '../model/money.ts';
import { historyRange, sumDays } from '../model/usage-history.ts';
import { readSnapshot } from '../store/accounts/read-snapshot.ts';
import type { ReadArchivedPart } from '../store/log/archived-parts.ts';
import { readHistory } from '../store/log/read-history.ts';
import { readLedger } from '../store/log/read-ledger.ts';
import type { RecordStore } from '../store/script.ts';
import type { DashboardRoute } from './dashboard-app.ts';

const days = 30;
/** Older credits left are not told: every charge is an entry. */
const maxEntries = 5_000;
const cachedMs = 30_000;
const maxCached = 1_000;

/** Route of the last 30 days of an account, kept for 30 s: they are counted from the request log. */
export function chartRoutes(store: RecordStore, open: ReadArchivedPart): DashboardRoute[] {
  const cached = new Map<string, { readonly until: number; readonly found: Promise<ChartDay[]> }>();
  const read = (accountId: string) => {
    const known = cached.get(accountId);
    if (known !== undefined && known.until > performance.now()) return known.found;
    cached.delete(accountId);
    const [oldest] = cached.keys();
    if (cached.size >= maxCached && oldest !== undefined) cached.delete(oldest);
    const found = readDays(store, open, accountId);
    cached.set(accountId, { until: performance.now() + cachedMs, found });
    found.catch(() => cached.delete(accountId));
    return found;
  };
  return [
    {
      method: 'GET',
      path: '/api/history',
      handle: async ({ accountId }) => {
        if (accountId === '') throw refuse('not_found', 'Choose an account first');
        return { status: 200, body: { days: await read(accountId) } };
      },
    },
  ];
}

async function readDays(store: RecordStore, open: ReadArchivedPart, accountId: string): Promise<ChartDay[]> {
  const now = store.clock.now();
  const [history, entries, { balances }] = await Promise.all([
    readHistory(store, accountId, historyRange(undefined, undefined, now)!, open),
    readLedger(store, accountId, maxEntries, open),
    readSnapshot(store, accountId),
  ]);
  const counts = sumDays(
    history.map(({ day, calls, credits, completed, failed }) => ({ [day]: { calls, credits, completed, failed } })),
  );
  const known = { entries, isWhole: entries.length < maxEntries, remaining: remaining(balances) };
  return chartDays(counts, known, now, days);
}
