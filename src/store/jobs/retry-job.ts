import type { Job } from '../../model/job.ts';
import { fairShare, fairShareKeyNames, queueScore } from '../lua/fair-share.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { type Early, earlyOf, refuseEarly } from './end-job.ts';
import { ledJobKeyNames, readLedJob } from './read-open-job.ts';
import { workShift } from './work-ranges.ts';

/**
 * Ends an attempt that another one follows: frees its slot and delays the job until its time, or puts it at the head of its
 * account's queue at once. Counts a failure or an interruption (D74), once an attempt.
 * One that ends at its deadline does not before TIME of this moment has reached it.
 * Answers {'waiting'}, {'early', now}, {'stale'}, {'already_ended'}, {'not_found'} or {'not_leading'}.
 */
const retryJobScript = script(
  'retry-job',
  'always',
  [...fairShareKeyNames, ...ledJobKeyNames, 'openWork'],
  [
    'term',
    'accountId',
    'jobId',
    'attempt',
    'counts',
    'code',
    'reason',
    'notBefore',
    'dueAt',
    'jobChannel',
    'workChannel',
  ],
)`${fairShare}${readLedJob('account stages')}
if fields.account ~= accountId then return { 'not_found' } end
local score = redis.call('ZSCORE', openWork, jobId)
local has_slot = tonumber(score or 0) < 0
if fields.attempt ~= attempt or is_counted(fields) or not has_slot then return { 'stale' } end
${refuseEarly}
local owner = redis.call('HMGET', account, 'concurrency', 'tag', 'running')
local running = tonumber(owner[3])
undos[1] = function()
  redis.pcall('HSET', account, 'running', owner[3])
  redis.pcall('ZADD', openWork, score, jobId)
  redis.pcall('ZREM', queue, jobId)
  update_ready(accountId, running, owner[1], owner[2])
end
if tonumber(notBefore) > now then redis.call('ZADD', openWork, string.format('%d', notBefore + ${workShift}), jobId)
else
  redis.call('ZADD', openWork, fields.created_at, jobId)
  redis.call('ZADD', queue, ${queueScore.ofReturned('fields.created_at')}, jobId)
end
redis.call('HSET', account, 'running', string.format('%d', running - 1))
update_ready(accountId, running - 1, owner[1], owner[2])
local counter = counts == 'failure' and 'failures' or 'interruptions'
redis.call('HSET', job, counter, fields[counter] + 1, 'not_before', notBefore, 'deadline', '', 'stage', '',
  'speed_bytes', '', 'eta_seconds', '', 'storing_since', '', 'verdict', '', 'metadata', '', 'delivered', '',
  'stages', '', 'revision', next_revision(fields), 'attempts', mark(fields, attempt, code, counts, reason))
tell_watchers(fields)
redis.call('PUBLISH', workChannel, '')
return { 'waiting' }
`;

export const maxReasonChars = 300;

export async function retryJob(
  store: RecordStore,
  term: string,
  job: Pick<Job, 'id' | 'account' | 'attempt'>,
  why: { counts: 'failure' | 'interruption'; code: string; text?: string | null; notBefore: number; dueAt?: number },
): Promise<Change<'stale' | 'already_ended' | 'not_found' | 'not_leading'> | Early> {
  const reply = await run(store, retryJobScript, {
    term,
    accountId: job.account,
    jobId: job.id,
    attempt: job.attempt,
    counts: why.counts,
    code: why.code,
    reason: (why.text ?? '').slice(0, maxReasonChars),
    notBefore: why.notBefore,
    dueAt: why.dueAt ?? '',
  });
  return earlyOf(reply) ?? changeOf(reply, 'waiting');
}
