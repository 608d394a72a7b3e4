import { keys } from '../keys.ts';
import { type RecordStore, run, script } from '../script.ts';
import { archivedPartKey } from './archived-parts.ts';

/** Forgets an archived part of a stream, whose object is removed. Answers {'dropped'}. */
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

/** Archived request-log lines that are all past their lifetime. */
interface ExpiredPart {
  readonly member: string;
  readonly object: string;
  readonly list: string;
}

/** Returns up to 100 archived parts whose lines are all older than `before`. */
export async function listExpiredParts(store: RecordStore, before: number): Promise<ExpiredPart[]> {
  const members = (await store.connection.read([
    'ZRANGEBYSCORE',
    keys.days,
    '-inf',
    `(${before}`,
    'LIMIT',
    '0',
    '100',
  ])) as string[];
  return members.map((member) => {
    const [kind = '', id = '', from = ''] = member.split('/');
    const list = kind === 'paid' ? keys.paidDays(id) : keys.freeDays(id);
    return { member, list, object: archivedPartKey({ kind: kind === 'paid' ? 'paid' : 'free', id }, from) };
  });
}

/** Forgets an archived part whose object is removed. */
export async function forgetArchived(store: RecordStore, { member, list, object }: ExpiredPart): Promise<void> {
  await run(store, dropDaysScript, { list, days: keys.days }, { member, object });
}
