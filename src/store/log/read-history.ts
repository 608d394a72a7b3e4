import {
  type CountsByDay,
  countLines,
  type DayCounts,
  type HistoryRange,
  isInRange,
  sumDays,
} from '../../model/usage-history.ts';
import type { RecordStore } from '../script.ts';
import {
  beforeFirstEntry,
  type EntryStream,
  listArchivedParts,
  newestArchivedPart,
  type ReadArchivedPart,
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
const maxLooks = 3;
/** Keys that are read at once: an account may have a thousand, each with a thousand lines in hand. */
const keysAtOnce = 20;

/** Returns what became of the requests of an account, by day and key, as far as its request log goes back. */
export async function readHistory(
  store: RecordStore,
  accountId: string,
  range: HistoryRange,
  open: ReadArchivedPart,
): Promise<HistoryDay[]> {
  const found: HistoryDay[] = [];
  const names = await listKeyNames(store, accountId);
  for (let from = 0; from < names.length; from += keysAtOnce) {
    const days = names.slice(from, from + keysAtOnce).map(async ({ id, alias }) => {
      const streams = [freeLineStream(id), paidLineStream(id)];
      const counts = sumDays(await Promise.all(streams.map((origin) => countStream(store, origin, open))));
      return Object.entries(counts).flatMap(([day, sum]) =>
        isInRange(day, range) ? [{ day, key: alias, ...sum }] : [],
      );
    });
    found.push(...(await Promise.all(days)).flat());
  }
  const order = ({ day, key }: HistoryDay) => `${day} ${key}`;
  return found.sort((a, b) => (order(a) < order(b) ? -1 : 1));
}

/** Counts a stream and its archived parts, again when lines were moved from one to the other meanwhile. */
async function countStream(
  store: RecordStore,
  origin: EntryStream<StoredLogLine>,
  open: ReadArchivedPart,
): Promise<CountsByDay> {
  for (let looks = 1; ; looks++) {
    // One call of Redis, which answers in this order. Where more pages follow, lines may move while they are read.
    const [parts, { counts, pages }, first] = await Promise.all([
      listArchivedParts(store, origin),
      countKept(store, origin),
      newestArchivedPart(store, origin),
    ]);
    const newest = pages > 1 ? await newestArchivedPart(store, origin) : first;
    if (newest?.object !== parts.at(-1)?.object && looks < maxLooks) continue;
    const moved: CountsByDay[] = [];
    for (const { object, days } of parts) {
      // Parts of the release before have no counts.
      const lines = days ? [] : ((await open(object)) as readonly StoredLogLine[] | null);
      moved.push(days ?? countLines(kindOf(origin), lines ?? []));
    }
    return sumDays([...moved, counts]);
  }
}

async function countKept(
  store: RecordStore,
  origin: EntryStream<StoredLogLine>,
): Promise<{ readonly counts: CountsByDay; readonly pages: number }> {
  const pages: CountsByDay[] = [];
  for (let behind = beforeFirstEntry; ; ) {
    const lines = await readOldestEntries(store, origin, pageSize, { behind });
    pages.push(countLines(kindOf(origin), lines));
    const last = lines.at(-1);
    if (last === undefined || lines.length < pageSize) return { counts: sumDays(pages), pages: pages.length };
    behind = last.entry;
  }
}

function kindOf({ kind }: EntryStream<StoredLogLine>): 'paid' | 'free' {
  return kind === 'paid' ? 'paid' : 'free';
}
