import type { LedgerEntry } from './ledger.ts';
import { writeTime } from './timestamp.ts';
import { type CountsByDay, type DayCounts, hourText } from './usage-history.ts';

interface ChartDay extends DayCounts {
  readonly day: string;
  /** Credits that were left at its end; `null` where the known part of the ledger does not reach back to it. */
  readonly remaining: number | null;
}

/** One hour of an account, named by its beginning. */
interface ChartHour extends DayCounts {
  readonly hour: string;
}

/** Newest entries of a ledger, newest first. */
interface KnownLedger {
  readonly entries: readonly Pick<LedgerEntry, 'at' | 'kind' | 'amount'>[];
  /** No entry is older than these. */
  readonly isWhole: boolean;
  /** Credits that are left now. */
  readonly remaining: number;
}

const dayMs = 86_400_000;
const hourMs = 3_600_000;
const nothing: DayCounts = { calls: 0, credits: 0, completed: 0, failed: 0 };
/** An overdraft takes from no balance. */
const signs = { grant: 1, charge: -1, lapse: -1, overdraft: 0 } as const;

/** Returns the last days up to today, each of them, oldest first. The credits left are counted back from those of now. */
export function chartDays(counts: CountsByDay, known: KnownLedger, now: number, days: number): ChartDay[] {
  const today = Math.floor(now / dayMs) * dayMs;
  const oldest = known.entries.at(-1)?.at ?? 0;
  const found: ChartDay[] = [];
  let { remaining } = known;
  let next = 0;
  for (let start = today; found.length < days; start -= dayMs) {
    const end = start + dayMs;
    for (; next < known.entries.length && known.entries[next]!.at >= end; next++) {
      const { kind, amount } = known.entries[next]!;
      remaining -= signs[kind] * amount;
    }
    const day = writeTime(start).slice(0, 10);
    found.push({ day, ...(counts[day] ?? nothing), remaining: known.isWhole || oldest < end ? remaining : null });
  }
  return found.reverse();
}

/** Returns when the first of so many hours began, of which the last one is not over. */
export function firstHour(now: number, hours: number): number {
  return (Math.floor(now / hourMs) - hours + 1) * hourMs;
}

/** Returns the last hours up to this one, each of them, oldest first. */
export function chartHours(counts: CountsByDay, now: number, hours: number): ChartHour[] {
  const first = firstHour(now, hours);
  return Array.from({ length: hours }, (_, n) => {
    const hour = hourText(first + n * hourMs);
    return { hour, ...(counts[hour] ?? nothing) };
  });
}
