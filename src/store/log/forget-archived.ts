import { keys } from '../keys.ts';
import { findOld } from '../old-entries.ts';
import { type RecordStore, run, script } from '../script.ts';
import { type ArchivedPart, archivedPartKey } from './archived-parts.ts';

/**
 * Forgets a part. `json` is its element of the list, '' when the list has none; it is looked for from the oldest on, where an
 * expired one stands unless a clock went back. Answers {'dropped'}.
 */
const forgetArchivedScript = script('forget-archived', 'always', ['list', 'expiring'], ['member', 'json'])`
if json ~= '' then redis.call('LREM', list, 1, json) end
redis.call('ZREM', expiring, member)
return { 'dropped' }
`;

const pageSize = 20;

interface ExpiredPart {
  readonly member: string;
  readonly object: string;
  readonly list: string;
  readonly expiring: string;
}

/** Returns an archived part whose entries have all reached an age, or none: the pages of `findPart` do not bear that another one is forgotten. */
export async function findExpiredPart(store: RecordStore, expiring: string, ageMs: number): Promise<ExpiredPart[]> {
  const [member] = await findOld(store, expiring, ageMs);
  if (member === undefined) return [];
  const [kindText = '', id = '', from = ''] = member.split('/');
  const kind = kindText === 'paid' || kindText === 'audit' ? kindText : 'free';
  const list = { paid: keys.paidDays, free: keys.freeDays, audit: keys.auditDays }[kind](id);
  return [{ member, list, expiring, object: archivedPartKey({ kind, id }, from) }];
}

/** Forgets an archived part whose object is removed. */
export async function forgetArchived(
  store: RecordStore,
  { member, list, expiring, object }: ExpiredPart,
): Promise<void> {
  await run(store, forgetArchivedScript, { list, expiring, member, json: (await findPart(store, list, object)) ?? '' });
}

/** Has an archived part, whose object cannot be removed, expire as one of another time. */
export async function postponeArchived(
  { connection }: RecordStore,
  { member, expiring }: ExpiredPart,
  at: number,
): Promise<void> {
  await connection.send(['ZADD', expiring, 'XX', String(at), member]);
}

/** Returns the element of a list of parts that names an object; it is one of the oldest, so the first page has it. */
async function findPart({ connection }: RecordStore, list: string, object: string): Promise<string | undefined> {
  for (let start = 0; ; start += pageSize) {
    const page = await connection.read(['LRANGE', list, String(start), String(start + pageSize - 1)]);
    const found = page.find((json) => (JSON.parse(json) as ArchivedPart).object === object);
    if (found !== undefined || page.length < pageSize) return found;
  }
}
