import type { AttemptProgress } from '../../model/attempt-protocol.ts';
import { msOf, recordingStage, writeStages } from '../../model/attempt-stages.ts';
import type { Job } from '../../model/job.ts';
import { shortId } from '../keys.ts';
import { scoreOf } from '../lua/job-index.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { openJobKeyNames, readOpenFields } from './read-open-job.ts';

/**
 * Notes that the open attempt runs, its stage, speed and remaining seconds, and its progress, which never falls and is at most 99 (D20), the
 * stages of the attempt so far, and for good since when it records a live source, which the controller is told of. The first note that it
 * runs sets its deadline.
 * Answers {'noted'}, {'stale'} for another attempt and for one that is counted, {'already_ended'} or {'not_found'}.
 */
const noteProgressScript = script(
  'note-progress',
  'light',
  [...openJobKeyNames, 'jobs', 'account'],
  [
    ...['jobId', 'shortId', 'attempt', 'running', 'progress', 'stage', 'speed', 'eta', 'stages'],
    ...['stagesMs', 'lasts', 'jobChannel', 'workChannel'],
  ],
)`${readOpenFields('attempt failures interruptions revision created_at progress watched recorded verdict deadline')}
local is_counted = tonumber(attempt) <= (job_failures or 0) + (job_interruptions or 0)
if job_attempt ~= attempt or is_counted then return { 'stale' } end
local raised = math.max(tonumber(job_progress or 0), math.min(99, math.floor(tonumber(progress))))
local written = { 'progress', string.format('%d', raised), 'stage', stage, 'speed_bytes', speed, 'eta_seconds', eta,
  'revision', string.format('%d', job_revision + 1) }
local function write(name, value) written[#written + 1], written[#written + 2] = name, value end
local begins = job_status == 'QueuedJob' and running == '1'
local records = stage == '${recordingStage}' and (job_recorded or '') == ''
if records and (redis.call('HGET', job, 'preempted') or '') == '' then
  local bound = redis.call('HGET', account, 'bound') or '0'
  undos[1] = function() redis.pcall('HSET', account, 'bound', bound) end
  redis.call('HSET', account, 'bound', string.format('%d', bound + 1))
end
if begins then
  write('status', 'Running')
  write('started_at', string.format('%d', now))
  redis.call('ZADD', jobs, ${scoreOf('job_created_at', 'Running')}, shortId)
end
if running == '1' and lasts ~= '' and (job_deadline or '') == '' then
  write('deadline', string.format('%d', now + lasts))
end
-- A report that waited must not take the place of the stages that came with the verdict.
if stages ~= '' and (job_verdict or '') == '' then
  write('stages', string.format('%d', math.max(0, now - job_created_at - stagesMs)) .. stages)
end
if records then write('recorded', string.format('%d', now)) end
redis.call('HSET', job, unpack(written))
if records then redis.call('PUBLISH', workChannel, jobId) end
if job_watched then redis.call('PUBLISH', jobChannel, jobId) end
return 'noted'
`;

export interface NotedProgress extends AttemptProgress {
  /** False while the worker only waits; the stage then says for what. */
  readonly running?: boolean;
  /** Longest run of the attempt, counted from the first note that it runs. */
  readonly lastsMs?: number;
}

export async function noteProgress(
  store: RecordStore,
  { id, account }: Pick<Job, 'id' | 'account'>,
  attempt: number,
  { running = true, lastsMs, progress, stage, speed_bytes, eta_seconds, stages = [] }: NotedProgress,
): Promise<Change<'stale' | 'already_ended' | 'not_found'>> {
  const reply = await run(store, noteProgressScript, {
    ...{ jobId: id, accountId: account, shortId: shortId(id) },
    ...{ attempt, running, progress, stage, speed: speed_bytes, eta: eta_seconds },
    ...{ stages: writeStages(stages), stagesMs: msOf(stages), lasts: lastsMs },
  });
  return changeOf(reply, 'noted');
}
