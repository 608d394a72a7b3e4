import { type RecordStore, run, script } from '../script.ts';

/** Removes the record of a job that ended before a moment. Answers {'removed'}, {'kept'} or {'not_found'}. */
const removeJobScript = script(
  'remove-job',
  'always',
  ['job', 'attempts', 'jobs', 'ended', 'webhook', 'webhooks', 'deliveries'] as const,
  ['accountId', 'jobId', 'before'] as const,
  /* lua */ `
local seen = redis.call('HMGET', job, 'ended_at', 'receiver', 'status')
if not seen[3] then
  redis.call('ZREM', ended, accountId .. '/' .. jobId)
  return { 'not_found' }
end
if (seen[1] or '') == '' or tonumber(seen[1]) >= tonumber(before) then return { 'kept' } end
redis.call('DEL', job, attempts, webhook)
redis.call('ZREM', jobs, jobId)
redis.call('ZREM', deliveries, jobId)
redis.call('ZREM', ended, accountId .. '/' .. jobId)
redis.call('ZREM', webhooks, (seen[2] or '') .. '/' .. jobId)
return { 'removed' }
`,
);

/** Removes the record of an ended job with its attempts and its webhook; false when it ended later, or has not ended. */
export async function removeJob(
  store: RecordStore,
  accountId: string,
  jobId: string,
  before: number,
): Promise<boolean> {
  const [word] = await run(store, removeJobScript, { accountId, jobId, before });
  return word !== 'kept';
}
