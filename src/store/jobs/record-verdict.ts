import { msOf, type StageTime, writeStages } from '../../model/attempt-stages.ts';
import type { Outcome } from '../../model/outcome.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { openJobKeyNames, readOpenJob } from './read-open-job.ts';

/**
 * Keeps the verdict of the open attempt's worker, with its stages, for whichever controller leads; the last one counts. Refused once the
 * attempt is counted or the job has ended. Answers {'told'}, {'stale'}, {'already_ended'} or {'not_found'}.
 */
const recordVerdictScript = script('record-verdict', 'always', openJobKeyNames, [
  'jobId',
  'attempt',
  'verdict',
  'stages',
  'stagesMs',
  'workChannel',
])`${readOpenJob()}
local fields, refused = read_open_job()
if refused then return refused end
if fields.attempt ~= attempt or is_counted(fields) then return { 'stale' } end
if stages == '' then redis.call('HSET', job, 'verdict', verdict)
else
  local began = math.max(0, now - fields.created_at - stagesMs)
  redis.call('HSET', job, 'verdict', verdict, 'stages', string.format('%d', began) .. stages)
end
redis.call('PUBLISH', workChannel, jobId)
return 'told'
`;

export async function recordVerdict(
  store: RecordStore,
  jobId: string,
  attempt: number,
  verdict: Outcome,
  stages: readonly StageTime[] = [],
): Promise<Change<'stale' | 'already_ended' | 'not_found'>> {
  const reply = await run(store, recordVerdictScript, {
    ...{ jobId, attempt, verdict: JSON.stringify(verdict) },
    ...{ stages: writeStages(stages), stagesMs: msOf(stages) },
  });
  return changeOf(reply, 'told');
}
