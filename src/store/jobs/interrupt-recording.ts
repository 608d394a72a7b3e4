import { type ActiveJob, maxLostRecordingMs, type WorkerShares } from '../../model/preemption.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { ledJobKeyNames, readLedJob } from './read-open-job.ts';

/**
 * Marks the open attempt of a job to be interrupted that has only just begun to record a live source, once a job, while its
 * account holds every slot and is not the only account.
 * Answers {'preempted'}, {'unneeded'}, {'stale'}, {'already_ended'}, {'not_found'} or {'not_leading'}.
 */
const interruptRecordingScript = script(
  'interrupt-recording',
  'always',
  [...ledJobKeyNames, 'account', 'slugs'],
  ['term', 'accountId', 'attempt', 'slots', 'maxLostMs'],
)`${readLedJob('account preempted recorded verdict storing_since')}
if fields.account ~= accountId then return { 'not_found' } end
local is_done = fields.verdict ~= '' or fields.storing_since ~= '' or fields.recorded == ''
if fields.attempt ~= attempt or is_counted(fields) or is_done or fields.preempted ~= '' then return { 'stale' } end
if now - tonumber(fields.recorded) >= tonumber(maxLostMs) then return { 'stale' } end
local running = tonumber(redis.call('HGET', account, 'running'))
if running < tonumber(slots) or redis.call('HLEN', slugs) < 2 then return { 'unneeded' } end
redis.call('HSET', job, 'preempted', attempt)
return { 'preempted' }
`;

/** Marks a recording to be interrupted that leaves no worker to other accounts; the controller that advances the job next carries it out. */
export async function interruptRecording(
  store: RecordStore,
  term: string,
  { id, account, attempt }: ActiveJob,
  { slots }: WorkerShares,
): Promise<Change<'unneeded' | 'stale' | 'already_ended' | 'not_found' | 'not_leading'>> {
  const ids = { accountId: account, jobId: id };
  const reply = await run(store, interruptRecordingScript, {
    term,
    ...ids,
    attempt,
    slots,
    maxLostMs: maxLostRecordingMs,
  });
  return changeOf(reply, 'preempted');
}
