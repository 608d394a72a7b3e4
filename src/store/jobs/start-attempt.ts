import type { Job } from '../../model/job.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { ledJobKeyNames, readLedJob } from './read-open-job.ts';

/**
 * Records that an attempt begins, before anything is started. Only the next attempt of a job that was taken begins, once.
 * It has no deadline before its worker runs.
 * Answers {'started'}, {'already_started'}, {'stale'}, {'already_ended'}, {'not_found'} or {'not_leading'}.
 */
const startAttemptScript = script(
  'start-attempt',
  'always',
  [...ledJobKeyNames, 'openWork'],
  ['term', 'jobId', 'attempt', 'jobChannel'],
)`${readLedJob()}
if fields.attempt == attempt then return { 'already_started' } end
local has_slot = tonumber(redis.call('ZSCORE', openWork, jobId) or 0) < 0
if fields.attempt + 1 ~= tonumber(attempt) or not has_slot then return { 'stale' } end
redis.call('HSET', job, 'attempt', attempt, 'deadline', '', 'storing_since', '',
  'revision', next_revision(fields), 'attempts', mark(fields, attempt))
tell_watchers(fields)
return 'started'
`;

/** Records that an attempt begins; its worker may be started when that is done, also by an earlier call. */
export async function startAttempt(
  store: RecordStore,
  term: string,
  job: Pick<Job, 'id'>,
  attempt: number,
): Promise<Change<'stale' | 'already_ended' | 'not_found' | 'not_leading'>> {
  const reply = await run(store, startAttemptScript, { term, jobId: job.id, attempt });
  return changeOf(reply, ['started', 'already_started']);
}
