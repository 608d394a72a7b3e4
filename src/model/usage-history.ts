import { writeTime } from './timestamp.ts';

const dayMs = 86_400_000;
/** Days of one answer: what the request log keeps unless it is told otherwise. */
export const maxHistoryDays = 92;
const defaultDays = 30;

/** Outcome of the requests with one key on one UTC day. */
export interface DayCounts {
  readonly calls: number;
  readonly credits: number;
  readonly completed: number;
  readonly failed: number;
}

export type CountsByDay = Readonly<Record<string, DayCounts>>;

/** Request-log lines that carry money or end a job are `paid`; the others are `free`. */
export interface CountedLine {
  readonly at: number;
  readonly status: number;
  readonly credits: number;
}

export interface HistoryRange {
  /** First and last day, as the beginning of each. */
  readonly from: number;
  readonly to: number;
}

export const everyDay: HistoryRange = { from: 0, to: Date.UTC(9999, 11, 31) };

/** Returns the days that a request asks for: 30 up to today unless it says so; `null` when they are too many, or none. */
export function historyRange(from: number | undefined, to: number | undefined, now: number): HistoryRange | null {
  const last = to ?? Math.floor(now / dayMs) * dayMs;
  const first = from ?? Math.max(0, last - (defaultDays - 1) * dayMs);
  return first > last || last - first >= maxHistoryDays * dayMs ? null : { from: first, to: last };
}

/** Returns true for a day of the range, written as `YYYY-MM-DD`. */
export function isInRange(day: string, { from, to }: HistoryRange): boolean {
  return day >= dayText(from) && day <= dayText(to);
}

/**
 * Counts the lines of one key by day, or as `nameOf` names their times. The end of a job, whose call has a line of its own, is a line with
 * status 201, and every other line of the `paid` kind but a synchronous answer (200).
 */
export function countLines(
  kind: 'paid' | 'free',
  lines: readonly CountedLine[],
  nameOf: (time: number) => string = dayText,
): CountsByDay {
  return sumDays(
    lines.map((line) => {
      const isCall = kind === 'free' || line.status === 200;
      const isGood = line.status === 200 || line.status === 201;
      const [completed, failed] = kind === 'free' ? [0, 0] : [Number(isGood), Number(!isGood)];
      return { [nameOf(line.at)]: { calls: Number(isCall), credits: line.credits, completed, failed } };
    }),
  );
}

/** Returns the name of an hour: its beginning, in UTC. */
export function hourText(time: number): string {
  return `${writeTime(time).slice(0, 13)}:00:00Z`;
}

export function sumDays(all: readonly CountsByDay[]): CountsByDay {
  const sums: Record<string, DayCounts> = {};
  for (const counts of all) {
    for (const [day, more] of Object.entries(counts)) {
      const sum = sums[day] ?? { calls: 0, credits: 0, completed: 0, failed: 0 };
      sums[day] = {
        calls: sum.calls + more.calls,
        credits: sum.credits + more.credits,
        completed: sum.completed + more.completed,
        failed: sum.failed + more.failed,
      };
    }
  }
  return sums;
}

function dayText(time: number): string {
  return writeTime(time).slice(0, 10);
}
