const form =
  /^(\d{4}-\d\d-\d\d)(?:T([01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))?$/;
const timesOfDay = { first: '00:00:00Z', last: '23:59:59.999Z' };
const latest = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Reads ISO 8601 with a zone, or `YYYY-MM-DD` as the first or last ms of that UTC day; `null` for anything else. */
export function parseTime(text: unknown, momentOfDay: 'first' | 'last'): number | null {
  if (typeof text !== 'string') return null;
  const [, day, hour] = form.exec(text) ?? [];
  if (day === undefined || !isDay(day)) return null;
  const time = Date.parse(hour === undefined ? `${day}T${timesOfDay[momentOfDay]}` : text);
  return time >= 0 && time <= latest ? time : null;
}

/** The time as the contract writes it: ISO 8601, UTC, with milliseconds; `null` stays `null`. */
export function writeTime<T extends number | null>(time: T): T extends number ? string : null;
export function writeTime(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}

/** True for `YYYY-MM-DD` of a day that exists. */
export function isDay(day: string): boolean {
  const time = Date.parse(`${day}T00:00:00Z`);
  // Date.parse may roll 30 February over into March instead of refusing it.
  return !Number.isNaN(time) && writeTime(time).startsWith(day);
}
