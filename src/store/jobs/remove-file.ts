import type { Job } from '../../model/job.ts';
import { shortId } from '../keys.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { readEnd, writeEnd } from './ended-job.ts';
import { fileScore } from './kept-files.ts';

/**
 * Marks the file of an ended job as removed and asks for its removal from the object store, once.
 * Answers {'removed'}, {'already_removed'} or {'not_found'}.
 */
const removeFileScript = script(
  'remove-file',
  'always',
  ['endedJob', 'ended'],
  ['accountId', 'jobId', 'shortId', 'workChannel'],
)`${readEnd}
local words, marks, texts = read_end()
if not words or words.account ~= accountId or words.status ~= 'C' then return { 'not_found' } end
if words.removed_at ~= '' then return { 'already_removed' } end
words.removed_at, words.revision = string.format('%d', now), string.format('%d', words.revision + 1)
redis.call('ZADD', ended, ${fileScore('0')}, shortId)
${writeEnd((name) => `words.${name}`, 'marks', 'texts')}
redis.call('PUBLISH', workChannel, jobId)
return { 'removed' }
`;

/** The caller has seen that the job has a file: a completed one without any is a job for metadata. */
export async function removeFile(
  store: RecordStore,
  job: Pick<Job, 'id' | 'account'>,
): Promise<Change<'already_removed' | 'not_found'>> {
  const reply = await run(store, removeFileScript, { accountId: job.account, jobId: job.id, shortId: shortId(job.id) });
  return changeOf(reply, 'removed');
}
