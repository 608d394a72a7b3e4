import { keys } from '../keys.ts';
import { type RecordStore, readDue, run, script } from '../script.ts';
import { type ArchivedPart, archivedPartKey } from './archived-parts.ts';

/**
 * Forgets a part. `json` is its element of the list, '' when the list has none; it is looked for from the oldest on, where an
 * expired one stands unless a clock went back. Answers {'dropped'}.
 */
const dropDaysScript = script(
  'drop-days',
  'always',
  ['list', 'days'] as const,
  ['member', 'json'] as const,
  /* lua */ `
if json ~= '' then redis.call('LREM', list, 1, json) end
redis.call('ZREM', days, member)
return { 'dropped' }
`,
);

const pageSize = 20;

interface ExpiredPart {
  readonly member: string;
  readonly object: string;
  readonly list: string;
}

/** Returns up to 100 archived parts whose lines are all older than `before`. */
export async function listExpiredParts(store: RecordStore, before: number): Promise<ExpiredPart[]> {
  return (await readDue(store, keys.days, `(${before}`)).map((member) => {
    const [kind = '', id = '', from = ''] = member.split('/');
    const list = kind === 'paid' ? keys.paidDays(id) : keys.freeDays(id);
    return { member, list, object: archivedPartKey({ kind: kind === 'paid' ? 'paid' : 'free', id }, from) };
  });
}

/** Forgets an archived part whose object is removed. */
export async function forgetArchived(store: RecordStore, { member, list, object }: ExpiredPart): Promise<void> {
  await run(store, dropDaysScript, { list, member, json: (await findPart(store, list, object)) ?? '' });
}

/** Returns the element of a list of parts that names an object; it is one of the oldest, so the first page has it. */
async function findPart({ connection }: RecordStore, list: string, object: string): Promise<string | undefined> {
  for (let start = 0; ; start += pageSize) {
    const page = await connection.read(['LRANGE', list, String(start), String(start + pageSize - 1)]);
    const found = page.find((json) => (JSON.parse(json) as ArchivedPart).object === object);
    if (found !== undefined || page.length < pageSize) return found;
  }
}
