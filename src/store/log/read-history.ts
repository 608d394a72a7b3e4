import {
  type CountsByDay,
  countLines,
  type DayCounts,
  type HistoryRange,
  isInRange,
  sumDays,
} from '../../model/usage-history.ts';
import { listKeys } from '../accounts/read-keys.ts';
import type { RecordStore } from '../script.ts';
import {
  beforeFirstEntry,
  type EntryStream,
  listArchivedParts,
  newestArchivedPart,
  type ReadArchivedPart,
  readOldestEntries,
} from './archived-parts.ts';
import { freeLineStream, paidLineStream, type StoredLogLine } from './read-lines.ts';

export interface HistoryDay extends DayCounts {
  readonly day: string;
  /** Alias of the key. */
  readonly key: string;
}

const pageSize = 1000;
/** Lines are moved once a day, so a second look finds them at rest. */
const maxLooks = 3;

/** Returns what became of the requests of an account, by day and key, as far as its request log goes back. */
export async function readHistory(
  store: RecordStore,
  accountId: string,
  range: HistoryRange,
  open: ReadArchivedPart,
): Promise<HistoryDay[]> {
  const found: HistoryDay[] = [];
  for (const key of await listKeys(store, accountId)) {
    if (key.last_used_at === null) continue;
    const streams = [freeLineStream(key.id), paidLineStream(key.id)];
    const counts = sumDays(await Promise.all(streams.map((origin) => countStream(store, origin, open))));
    for (const [day, sum] of Object.entries(counts)) {
      if (isInRange(day, range)) found.push({ day, key: key.alias, ...sum });
    }
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
    const parts = await listArchivedParts(store, origin);
    const kept = await countKept(store, origin);
    const newest = await newestArchivedPart(store, origin);
    if (newest?.object !== parts.at(-1)?.object && looks < maxLooks) continue;
    const moved: CountsByDay[] = [];
    for (const { object, days } of parts) {
      // Parts of the release before have no counts.
      const lines = days ? [] : ((await open(object)) as readonly StoredLogLine[] | null);
      moved.push(days ?? countLines(kindOf(origin), lines ?? []));
    }
    return sumDays([...moved, kept]);
  }
}

async function countKept(store: RecordStore, origin: EntryStream<StoredLogLine>): Promise<CountsByDay> {
  const pages: CountsByDay[] = [];
  for (let behind = beforeFirstEntry; ; ) {
    const lines = await readOldestEntries(store, origin, pageSize, { behind });
    pages.push(countLines(kindOf(origin), lines));
    const last = lines.at(-1);
    if (last === undefined || lines.length < pageSize) return sumDays(pages);
    behind = last.entry;
  }
}

function kindOf({ kind }: EntryStream<StoredLogLine>): 'paid' | 'free' {
  return kind === 'paid' ? 'paid' : 'free';
}
