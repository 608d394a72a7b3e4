import { refuse } from '../base/errors.ts';
import { chartDays, chartHours, firstHour } from '../model/chart-days.ts';
import { remaining } from '../model/money.ts';
import { historyRange, sumDays } from '../model/usage-history.ts';
import type { ReadArchivedPart } from '../store/log/archived-parts.ts';
import { readHistoryAndHours } from '../store/log/read-history.ts';
import type { RecordStore } from '../store/script.ts';
import { type DashboardRoute, readRoute } from './dashboard-app.ts';
import { readMoney } from './read-money.ts';

const shownDays = 30;
const shownHours = 24;
/** Older credits left are not told: every charge is an entry. */
const maxEntries = 5_000;
/** A chart is kept for as long as this many readings of it take, so that no account keeps a process busy with its charts. */
const keptReadings = 20;
const maxCachedMs = 30_000;
const maxCached = 1_000;

/** Route of the last 30 days and 24 hours of an account, kept for at most 30 s: they are counted from the request log. */
export function chartRoutes(store: RecordStore, open: ReadArchivedPart): DashboardRoute[] {
  const cached = new Map<string, { until: number; readonly found: ReturnType<typeof readChart> }>();
  const read = (accountId: string) => {
    const known = cached.get(accountId);
    if (known !== undefined && known.until > performance.now()) return known.found;
    cached.delete(accountId);
    const [oldest] = cached.keys();
    if (cached.size >= maxCached && oldest !== undefined) cached.delete(oldest);
    const beganAt = performance.now();
    const found = readChart(store, open, accountId);
    const entry = { until: beganAt + maxCachedMs, found };
    cached.set(accountId, entry);
    found.then(
      () => {
        const endedAt = performance.now();
        entry.until = Math.min(entry.until, endedAt + keptReadings * (endedAt - beganAt));
      },
      () => cached.delete(accountId),
    );
    return found;
  };
  return [
    readRoute('/api/history', async ({ accountId }) => {
      if (accountId === '') throw refuse('not_found', 'Choose an account first');
      return { status: 200, body: await read(accountId) };
    }),
  ];
}

/** Reads the series of the charts; the last day and the last hour are not over. */
async function readChart(store: RecordStore, open: ReadArchivedPart, accountId: string) {
  const now = store.clock.now();
  const range = historyRange(undefined, undefined, now)!;
  const [{ days, hours }, { balances, unbooked, entries: booked }] = await Promise.all([
    readHistoryAndHours(store, accountId, range, firstHour(now, shownHours)),
    readMoney(store, accountId, maxEntries, open),
  ]);
  const counts = sumDays(
    days.map(({ day, calls, credits, completed, failed }) => ({ [day]: { calls, credits, completed, failed } })),
  );
  const due = { at: now, kind: unbooked < 0 ? 'lapse' : 'grant', amount: Math.abs(unbooked) } as const;
  const known = { entries: [due, ...booked], isWhole: booked.length < maxEntries, remaining: remaining(balances) };
  return { days: chartDays(counts, known, now, shownDays), hours: chartHours(hours, now, shownHours) };
}
