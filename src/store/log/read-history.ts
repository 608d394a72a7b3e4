import {
  type CountsByDay,
  countLines,
  type DayCounts,
  everyDay,
  type HistoryRange,
  hourText,
  isInRange,
  sumDays,
} from '../../model/usage-history.ts';
import type { RecordStore } from '../script.ts';
import {
  beforeFirstEntry,
  type EntryStream,
  listArchivedParts,
  newestArchivedPart,
  readOldestEntries,
} from './archived-parts.ts';
import { listKeyNames } from './page-lines.ts';
import { freeLineStream, paidLineStream, type StoredLogLine } from './read-lines.ts';

export interface HistoryDay extends DayCounts {
  readonly day: string;
  /** Alias of the key. */
  readonly key: string;
}

const pageSize = 1000;
/** Lines are moved once a day, so a second look finds them at rest. */
const maxTries = 3;
/** Keys that are read at once: an account may have a thousand, each with a thousand lines in hand. */
const keysAtOnce = 20;

/** Returns what became of the requests of an account, by day and key, as far as its request log goes back. */
export async function readHistory(store: RecordStore, accountId: string): Promise<HistoryDay[]> {
  return (await readHistoryAndHours(store, accountId, everyDay, Number.POSITIVE_INFINITY)).days;
}

/** Returns the same and, out of the same lines, the counts of all keys by hour since a time of this day or yesterday: older lines are archived. */
export async function readHistoryAndHours(store: RecordStore, accountId: string, range: HistoryRange, since: number) {
  const found: HistoryDay[] = [];
  const hours: CountsByDay[] = [];
  const names = await listKeyNames(store, accountId);
  for (let from = 0; from < names.length; from += keysAtOnce) {
    const days = names.slice(from, from + keysAtOnce).map(async ({ id, alias }) => {
      const streams = [freeLineStream(id), paidLineStream(id)];
      const counted = await Promise.all(streams.map((origin) => countStream(store, origin, since)));
      hours.push(...counted.map((one) => one.hours));
      return Object.entries(sumDays(counted.map((one) => one.days))).flatMap(([day, sum]) =>
        isInRange(day, range) ? [{ day, key: alias, ...sum }] : [],
      );
    });
    found.push(...(await Promise.all(days)).flat());
  }
  const isBefore = (a: HistoryDay, b: HistoryDay) => a.day < b.day || (a.day === b.day && a.key < b.key);
  return { days: found.sort((a, b) => (isBefore(a, b) ? -1 : 1)), hours: sumDays(hours) };
}

/** Counts a stream and its archived parts, again when lines were moved from one to the other meanwhile. */
async function countStream(store: RecordStore, origin: EntryStream<StoredLogLine>, since: number) {
  for (let tries = 1; ; tries++) {
    // One call of Redis, which answers in this order. Where more pages follow, lines may move while they are read.
    const [parts, { days, hours, pages }, first] = await Promise.all([
      listArchivedParts(store, origin),
      countKept(store, origin, since),
      newestArchivedPart(store, origin),
    ]);
    const newest = pages > 1 ? await newestArchivedPart(store, origin) : first;
    if (newest?.object !== parts.at(-1)?.object && tries < maxTries) continue;
    return { days: sumDays([...parts.map((part) => part.days ?? {}), days]), hours };
  }
}

async function countKept(store: RecordStore, origin: EntryStream<StoredLogLine>, since: number) {
  const [pages, hours]: [CountsByDay[], CountsByDay[]] = [[], []];
  const kind = origin.kind === 'paid' ? 'paid' : 'free';
  for (let behind = beforeFirstEntry; ; ) {
    const lines = await readOldestEntries(store, origin, pageSize, { behind });
    pages.push(countLines(kind, lines));
    const late = lines.filter(({ at }) => at >= since);
    hours.push(countLines(kind, late, hourText));
    const last = lines.at(-1);
    if (last === undefined || lines.length < pageSize) {
      return { days: sumDays(pages), hours: sumDays(hours), pages: pages.length };
    }
    behind = last.entry;
  }
}
