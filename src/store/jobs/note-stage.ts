import { type RecordStore, run, script } from '../script.ts';
import { openJobKeyNames, readOpenFields } from './read-open-job.ts';

/**
 * Notes when an attempt of a traced job reached a stage, once a stage. Jobs that are not traced never come here.
 * Answers {'noted'}, {'known'}, {'stale'}, {'already_ended'} or {'not_found'}.
 */
const noteStageScript = script(
  'note-stage',
  'light',
  openJobKeyNames,
  ['jobId', 'attempt', 'stage'] as const,
  /* lua */ `${readOpenFields('attempt created_at stages')}
if job_attempt ~= attempt then return { 'stale' } end
local marks = job_stages or ''
local of_attempt = '[' .. attempt .. ','
for from, name in string.gmatch(marks, '(%[%d+,)%d+,"([^"]*)"%]') do
  if from == of_attempt and name == stage then return { 'known' } end
end
local one = of_attempt .. string.format('%d', math.max(0, now - job_created_at)) .. ',"' .. stage .. '"]'
redis.call('HSET', job, 'stages', marks == '' and one or marks .. ',' .. one)
return { 'noted' }
`,
);

/** The stage must be one of a closed set: every other name would make the record grow. */
export async function noteStage(store: RecordStore, jobId: string, attempt: number, stage: string): Promise<void> {
  await run(store, noteStageScript, { jobId, attempt, stage });
}
