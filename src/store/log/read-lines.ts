import { listKeys } from '../accounts/read-keys.ts';
import { keys } from '../keys.ts';
import type { RecordStore } from '../script.ts';
import { type OpenDays, type Origin, type Placed, readNewest } from './archived-parts.ts';
import type { Line } from './write-lines.ts';

/** A line with its place in the record. */
type PlacedLine = Line & Placed;

/** Lines of a key that carry money, as what is moved to the object store when their days have ended. */
export function paidLinesOf(keyId: string): Origin<PlacedLine> {
  return { kind: 'paid', id: keyId, stream: keys.paidLines(keyId), list: keys.paidDays(keyId), read: lineOf };
}

/** The other lines of a key, likewise. */
export function freeLinesOf(keyId: string): Origin<PlacedLine> {
  return { kind: 'free', id: keyId, stream: keys.freeLines(keyId), list: keys.freeDays(keyId), read: lineOf };
}

/** Newest lines first, of all keys of an account or of one alias; those that were moved too, where they can be opened. */
export async function readLines(
  store: RecordStore,
  account: string,
  limit: number,
  { alias, open }: { readonly alias?: string | undefined; readonly open?: OpenDays } = {},
): Promise<(Line & { key: string })[]> {
  const wanted = (await listKeys(store, account)).filter((key) => alias === undefined || key.alias === alias);
  const found = await Promise.all(
    wanted.flatMap((key) =>
      [freeLinesOf(key.id), paidLinesOf(key.id)].map(async (origin) => {
        const lines = await readNewest(store, origin, limit, open);
        return lines.map(({ entry: _, ...line }) => ({ ...line, key: key.alias }));
      }),
    ),
  );
  return found
    .flat()
    .sort((a, b) => b.at - a.at)
    .slice(0, limit);
}

function lineOf(entry: string, fields: Readonly<Record<string, string>>): PlacedLine {
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
