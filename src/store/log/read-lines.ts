import { listKeys } from '../accounts/read-keys.ts';
import { keys } from '../keys.ts';
import type { RecordStore } from '../script.ts';
import { type EntryStream, type ReadArchivedPart, readNewestEntries, type StreamEntry } from './archived-parts.ts';
import type { LogLine } from './write-lines.ts';

export type StoredLogLine = LogLine & StreamEntry;

/** Lines that carry money. */
export function paidLineStream(id: string): EntryStream<StoredLogLine> {
  return { ...ofLines, kind: 'paid', id, stream: keys.paidLines(id), list: keys.paidDays(id) };
}

export function freeLineStream(id: string): EntryStream<StoredLogLine> {
  return { ...ofLines, kind: 'free', id, stream: keys.freeLines(id), list: keys.freeDays(id) };
}

const ofLines = { index: keys.lineStreams, expiring: keys.days, read: lineOf };

/** Returns request-log lines of an account or of one key, newest first; archived ones only where `open` is given. */
export async function readLines(
  store: RecordStore,
  accountId: string,
  limit: number,
  { alias, open }: { readonly alias?: string | undefined; readonly open?: ReadArchivedPart } = {},
): Promise<(LogLine & { key: string })[]> {
  const wanted = (await listKeys(store, accountId)).filter((key) => alias === undefined || key.alias === alias);
  const found = await Promise.all(
    wanted.flatMap((key) =>
      [freeLineStream(key.id), paidLineStream(key.id)].map(async (origin) => {
        const lines = await readNewestEntries(store, origin, limit, open);
        return lines.map(({ entry: _, ...line }) => ({ ...line, key: key.alias }));
      }),
    ),
  );
  return found
    .flat()
    .sort((a, b) => b.at - a.at)
    .slice(0, limit);
}

function lineOf(entry: string, fields: Readonly<Record<string, string>>): StoredLogLine {
  return {
    entry,
    at: Number(fields.at),
    endpoint: fields.endpoint ?? '',
    status: Number(fields.status),
    duration_ms: Number(fields.duration_ms),
    ip: fields.ip ?? '',
    credits: Number(fields.credits),
  };
}
