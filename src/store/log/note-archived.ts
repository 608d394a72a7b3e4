import { keys } from '../keys.ts';
import { ageArgNames, ageValues, beforeAge } from '../lua/age.ts';
import { indexedStream } from '../lua/indexed-stream.ts';
import { type RecordStore, run, script } from '../script.ts';
import { type ArchivedPart, archivedPartName, type EntryStream, type StreamEntry } from './archived-parts.ts';

/**
 * Removes the oldest entries of a stream and notes, in the same step, the object that holds them. `from` is the last entry
 * that was archived before: when another one has been archived since, nothing changes. Only days that ended before an age
 * are moved. Answers {'moved'}, {'early'} or {'stale'}.
 */
const noteArchivedScript = script(
  'note-archived',
  'always',
  ['stream', 'index', 'list', 'expiring'],
  ['from', 'after', 'json', 'member', 'at', ...ageArgNames],
)`${indexedStream}${beforeAge}
if tonumber(at) >= before - before % 86400000 then return { 'early' } end
local newest = redis.call('LINDEX', list, -1)
if (newest and cjson.decode(newest).last or '0-0') ~= from then return { 'stale' } end
-- Entries that are gone, and those of the index, need no undoing.
local is_trimmed = false
undos[1] = function()
  if is_trimmed then return end
  if redis.call('LINDEX', list, -1) == json then redis.call('RPOP', list) end
  redis.pcall('ZREM', expiring, member)
end
redis.call('RPUSH', list, json)
if member ~= '' then redis.call('ZADD', expiring, at, member) end
redis.call('XTRIM', stream, 'MINID', after)
is_trimmed = true
note_oldest(stream, index)
return { 'moved' }
`;

interface ArchivedEntries {
  /** Id of the newest entry that was archived before these. */
  readonly from: string;
  readonly newest: StreamEntry;
  readonly part: Omit<ArchivedPart, 'last'>;
}

/** Returns false when another process has archived entries since, or these are younger than they were thought to be. */
export async function noteArchived(
  store: RecordStore,
  origin: EntryStream<StreamEntry>,
  { from, newest, part }: ArchivedEntries,
  ageMs: number,
): Promise<boolean> {
  const [milliseconds, number] = newest.entry.split('-');
  const [word] = await run(store, noteArchivedScript, {
    stream: origin.stream,
    index: origin.index,
    list: origin.list,
    from,
    after: `${milliseconds}-${Number(number) + 1}`,
    json: JSON.stringify({ ...part, last: newest.entry }),
    // Without a member nothing is added, so the key that stands for it is not written.
    expiring: origin.expiring ?? keys.days,
    member: origin.expiring === undefined ? '' : archivedPartName(part.object),
    at: newest.at,
    ...ageValues(store, ageMs),
  });
  return word === 'moved';
}
