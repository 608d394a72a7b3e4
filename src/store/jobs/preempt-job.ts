import type { ActiveJob, WorkerShares } from '../../model/preemption.ts';
import { keys } from '../keys.ts';
import { firstUnserved } from '../lua/fair-share.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { ledJobKeyNames, readLedJob } from './read-open-job.ts';
import { countActive } from './work-ranges.ts';

/**
 * Marks the open attempt of a job to be interrupted for the account that waits longest without a worker, once a job, and never
 * one that records a live source. Until its end the job is counted as one that cannot be interrupted. An account that waits
 * for nothing is forgotten: no script leaves one, but it would keep others from being found.
 * Answers {'preempted'}, {'unneeded'}, {'stale'}, {'already_ended'}, {'not_found'} or {'not_leading'}.
 */
const preemptScript = script(
  'preempt-job',
  'always',
  [...ledJobKeyNames, 'account', 'openWork', 'ready', 'waitingQueue'],
  ['term', 'accountId', 'attempt', 'slots', 'maxWait', 'waiting'],
)`${readLedJob('account preempted recorded verdict storing_since')}
if fields.account ~= accountId then return { 'not_found' } end
local is_done = fields.verdict ~= '' or fields.storing_since ~= '' or fields.recorded ~= ''
if fields.attempt ~= attempt or is_counted(fields) or is_done or fields.preempted ~= '' then return { 'stale' } end
local first_unserved = ${firstUnserved}
local is_longest = first_unserved[1] == '@' .. waiting
if is_longest and redis.call('ZCARD', waitingQueue) == 0 then
  redis.call('ZREM', ready, waiting, first_unserved[1])
  return { 'unneeded' }
end
local is_due = is_longest and now - tonumber(first_unserved[2]) >= tonumber(maxWait)
if not is_due or ${countActive} < tonumber(slots) then return { 'unneeded' } end
undos[1] = function() redis.pcall('HSET', job, 'preempted', '') end
redis.call('HSET', job, 'preempted', attempt)
redis.call('HINCRBY', account, 'bound', 1)
return { 'preempted' }
`;

/** Marks an attempt to be interrupted for the account that waits; the controller that advances the job next carries it out. */
export async function preemptJob(
  store: RecordStore,
  term: string,
  { id, account, attempt }: ActiveJob,
  { slots, maxWaitMs }: WorkerShares,
  waiting: string,
): Promise<Change<'unneeded' | 'stale' | 'already_ended' | 'not_found' | 'not_leading'>> {
  const reply = await run(store, preemptScript, {
    ...{ term, accountId: account, jobId: id },
    ...{ attempt, slots, maxWait: maxWaitMs, waiting, waitingQueue: keys.queue(waiting) },
  });
  return changeOf(reply, 'preempted');
}
