import { keys } from '../keys.ts';
import { type RecordStore, run, script } from '../script.ts';
import type { ArchivedPart, EntryStream, StreamEntry } from './archived-parts.ts';

/**
 * Removes the oldest entries of a stream, up to one of them, and notes in the same step where they were moved to.
 * `from` is the last entry that was moved before: when another has been moved since, nothing is changed.
 * Answers {'moved'} or {'stale'}.
 */
const moveDaysScript = script(
  'move-days',
  'always',
  ['stream', 'list', 'days'] as const,
  ['from', 'after', 'json', 'member', 'at'] as const,
  /* lua */ `
local newest = redis.call('LINDEX', list, -1)
if (newest and cjson.decode(newest).last or '0-0') ~= from then return { 'stale' } end
redis.call('RPUSH', list, json)
if member ~= '' then redis.call('ZADD', days, at, member) end
redis.call('XTRIM', stream, 'MINID', after)
return { 'moved' }
`,
);

/**
 * Removes from the record what an object holds, up to its newest entry; `from` is the newest that was moved before.
 * Answers false when somebody else has moved entries since.
 */
export async function noteArchived(
  store: RecordStore,
  origin: EntryStream<StreamEntry>,
  from: string,
  newest: StreamEntry,
  days: Omit<ArchivedPart, 'last'>,
): Promise<boolean> {
  const [milliseconds, number] = newest.entry.split('-');
  const [word] = await run(
    store,
    moveDaysScript,
    { stream: origin.stream, list: origin.list, days: keys.days },
    {
      from,
      after: `${milliseconds}-${Number(number) + 1}`,
      json: JSON.stringify({ ...days, last: newest.entry }),
      // A ledger stays for ever.
      member: origin.kind === 'ledger' ? '' : `${origin.kind}/${origin.id}/${from}`,
      at: newest.at,
    },
  );
  return word === 'moved';
}
