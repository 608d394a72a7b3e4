/** From `start` to just before `end`, in milliseconds. */
interface Period {
  readonly start: number;
  readonly end: number;
}

/** UTC month from the anchor's day and time, or the month's last day (D50). Counted from the anchor: 28 February, then 31 March. */
export function periodAt(anchor: number, now: number): Period {
  const months = monthNumber(now) - monthNumber(anchor);
  const passed = addMonths(anchor, months) > now ? months - 1 : months;
  return { start: addMonths(anchor, passed), end: addMonths(anchor, passed + 1) };
}

/** The UTC calendar month that holds this moment. */
export function monthOf(now: number): Period {
  const date = new Date(now);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return { start: Date.UTC(year, month), end: Date.UTC(year, month + 1) };
}

function monthNumber(time: number): number {
  const date = new Date(time);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

function addMonths(time: number, months: number): number {
  const date = new Date(time);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  const lastDay = new Date(Date.UTC(year, month + months + 1, 0)).getUTCDate();
  const timeOfDay = time - Date.UTC(year, month, day);
  return Date.UTC(year, month + months, Math.min(day, lastDay)) + timeOfDay;
}
