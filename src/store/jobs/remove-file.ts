import type { Job } from '../../model/job.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';

/**
 * Marks the file of an ended job as removed and asks for its removal from the object store, once.
 * Answers {'removed'}, {'already_removed'} or {'not_found'}.
 */
const removeFileScript = script(
  'remove-file',
  'always',
  ['job', 'files'] as const,
  ['accountId', 'jobId', 'workChannel'] as const,
  /* lua */ `
local seen = redis.call('HMGET', job, 'account', 'removed_at', 'delivered', 'ended_at')
if seen[1] ~= accountId or (seen[4] or '') == '' or (seen[3] or '') == '' then return { 'not_found' } end
if (seen[2] or '') ~= '' then return { 'already_removed' } end
redis.call('HSET', job, 'removed_at', now)
redis.call('HINCRBY', job, 'revision', 1)
redis.call('ZADD', files, 0, accountId .. '/' .. jobId)
redis.call('PUBLISH', workChannel, jobId)
return { 'removed' }
`,
);

export async function removeFile(
  store: RecordStore,
  job: Pick<Job, 'id' | 'account'>,
): Promise<Change<'already_removed' | 'not_found'>> {
  const reply = await run(store, removeFileScript, { accountId: job.account, jobId: job.id });
  return changeOf(reply, 'removed');
}
