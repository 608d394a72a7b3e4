import { keys, shortId } from '../keys.ts';
import { ageArgNames, ageValues, beforeAge } from '../lua/age.ts';
import { type RecordStore, run, script } from '../script.ts';
import { readEnd } from './ended-job.ts';

/** Removes the record of a job whose end has reached an age. Answers {'removed'}, {'kept'} or {'not_found'}. */
const removeJobScript = script(
  'remove-job',
  'always',
  ['job', 'endedJob', 'jobs', 'ended', 'webhook', 'webhooks', 'deliveries'],
  ['accountId', 'jobId', 'shortId', ...ageArgNames],
)`${readEnd}${beforeAge}
local words = read_end()
if not words then
  redis.call('ZREM', ended, shortId)
  return { redis.call('EXISTS', job) == 1 and 'kept' or 'not_found' }
end
if words.account ~= accountId or tonumber(words.ended_at) >= before then return { 'kept' } end
redis.call('ZREM', webhooks, words.receiver .. '/' .. jobId)
redis.call('ZREM', deliveries, shortId)
redis.call('ZREM', jobs, shortId)
redis.call('DEL', endedJob, webhook)
redis.call('ZREM', ended, shortId)
return { 'removed' }
`;

/** Removes the record of an ended job with its webhook; false when its end is younger, or it has not ended. */
export async function removeJob(store: RecordStore, jobId: string, ageMs: number): Promise<boolean> {
  const line = await store.connection.read(['GETRANGE', keys.endedJob(jobId), '0', '63']);
  const [accountId = ''] = (line ?? '').split(' ');
  const ids = { accountId, jobId, shortId: shortId(jobId) };
  const [word] = await run(store, removeJobScript, { ...ids, ...ageValues(store, ageMs) });
  return word !== 'kept';
}
