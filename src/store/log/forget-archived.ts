import { keys } from '../keys.ts';
import { type RecordStore, readDue, run, script } from '../script.ts';
import { archivedPartKey } from './archived-parts.ts';

/** Answers {'dropped'}. */
const dropDaysScript = script(
  'drop-days',
  'always',
  ['list', 'days'] as const,
  ['member', 'object'] as const,
  /* lua */ `
for _, json in ipairs(redis.call('LRANGE', list, 0, -1)) do
  if cjson.decode(json).object == object then redis.call('LREM', list, 1, json) end
end
redis.call('ZREM', days, member)
return { 'dropped' }
`,
);

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
  await run(store, dropDaysScript, { list, member, object });
}
