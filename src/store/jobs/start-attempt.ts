import type { Job } from '../../model/job.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { openJobKeyNames, readOpenJob } from './read-open-job.ts';

/**
 * Records that an attempt begins, before anything is started. Only the next attempt of a job that was taken begins, once.
 * Answers {'started', its deadline, milliseconds until then}, {'already_started', the same}, {'stale'}, {'already_ended'}, {'not_found'} or {'not_leading'}.
 */
const startAttemptScript = script(
  'start-attempt',
  'always',
  ['lead', ...openJobKeyNames, 'openWork'] as const,
  ['term', 'jobId', 'attempt', 'lasts', 'jobChannel'] as const,
  /* lua */ `${readOpenJob()}
if redis.call('GET', lead) ~= term then return { 'not_leading' } end
local fields, refused = read_open_job()
if refused then return refused end
if fields.attempt == attempt then
  local known = redis.call('HGET', job, 'deadline') or ''
  return { 'already_started', known, string.format('%d', (tonumber(known) or now) - now) }
end
local has_slot = tonumber(redis.call('ZSCORE', openWork, jobId) or 0) < 0
if fields.attempt + 1 ~= tonumber(attempt) or not has_slot then return { 'stale' } end
local deadline = string.format('%d', now + lasts)
redis.call('HSET', job, 'attempt', attempt, 'deadline', deadline, 'storing_since', '',
  'revision', next_revision(fields), 'attempts', mark(fields, attempt))
tell_watchers(fields)
return 'started ' .. deadline .. ' ' .. lasts
`,
);

/** Deadline of an attempt in the record, and the time that is left until then whatever its caller takes for the time. */
interface BegunAttempt {
  readonly deadline: number;
  readonly leftMs: number;
}

/** Records that an attempt begins, which may last so long; its worker may be started when that is done, also by an earlier call. */
export async function startAttempt(
  store: RecordStore,
  term: string,
  job: Pick<Job, 'id'>,
  attempt: number,
  lastsMs: number,
): Promise<Change<'stale' | 'already_ended' | 'not_found' | 'not_leading', BegunAttempt>> {
  const reply = await run(store, startAttemptScript, { term, jobId: job.id, attempt, lasts: lastsMs });
  const [deadline, leftMs] = [Number(reply[1]), Number(reply[2])];
  return changeOf(reply, ['started', 'already_started'], { deadline, leftMs });
}
