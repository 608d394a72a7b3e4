import type { AttemptProgress } from '../../model/attempt-protocol.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { readOpenJob } from './read-open-job.ts';

/**
 * Notes that the open attempt runs, its stage, speed and remaining seconds, and its progress, which never falls and is at
 * most 99 (D20). Answers {'noted'}, {'stale'}, {'already_ended'} or {'not_found'}.
 */
const noteScript = script(
  'note',
  'always',
  ['job'] as const,
  ['jobId', 'attempt', 'running', 'progress', 'stage', 'speed', 'eta', 'jobChannel'] as const,
  /* lua */ `${readOpenJob}
local fields, refused = read_open_job({ 'progress' })
if refused then return refused end
if fields.attempt ~= attempt then return { 'stale' } end
if fields.status == 'QueuedJob' and running == '1' then redis.call('HSET', job, 'status', 'Running', 'started_at', now) end
local raised = math.max(tonumber(fields.progress) or 0, math.min(99, math.floor(tonumber(progress))))
redis.call('HSET', job, 'progress', raised, 'stage', stage, 'speed_bytes', speed, 'eta_seconds', eta)
redis.call('HINCRBY', job, 'revision', 1)
redis.call('PUBLISH', jobChannel, jobId)
return { 'noted' }
`,
);

export interface NotedProgress extends AttemptProgress {
  /** False while the worker only waits; the stage then says for what. */
  readonly running?: boolean;
}

export async function noteProgress(
  store: RecordStore,
  jobId: string,
  attempt: number,
  { running, progress, stage, speed_bytes, eta_seconds }: NotedProgress,
): Promise<Change<'stale' | 'already_ended' | 'not_found'>> {
  const reply = await run(store, noteScript, {
    jobId,
    attempt,
    running: running === false ? '' : '1',
    progress,
    stage,
    speed: speed_bytes ?? '',
    eta: eta_seconds ?? '',
  });
  return changeOf(reply, 'noted');
}
