import type { Job } from '../../model/job.ts';
import { fairShare, fairShareKeyNames } from '../lua/fair-share.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { readOpenJob } from './read-open-job.ts';

/**
 * Ends an attempt that another one follows: frees its slot and delays the job until its time, or puts it at the head of its
 * account's queue at once. Counts a failure or an interruption (D74), once an attempt.
 * Answers {'waiting'}, {'stale'}, {'already_ended'}, {'not_found'} or {'not_leading'}.
 */
const retryScript = script(
  'retry',
  'always',
  [...fairShareKeyNames, 'lead', 'job', 'active', 'delayed', 'attempts'] as const,
  [
    'holder',
    'accountId',
    'jobId',
    'attempt',
    'counts',
    'code',
    'reason',
    'notBefore',
    'jobChannel',
    'workChannel',
  ] as const,
  /* lua */ `${readOpenJob}${fairShare}
if redis.call('GET', lead) ~= holder then return { 'not_leading' } end
local fields, refused = read_open_job({ 'account', 'created_at' })
if refused then return refused end
if fields.account ~= accountId then return { 'not_found' } end
if fields.attempt ~= attempt or is_counted(fields) or not redis.call('ZSCORE', active, jobId) then return { 'stale' } end
redis.call('ZREM', active, jobId)
redis.call('HINCRBY', job, counts == 'failure' and 'failures' or 'interruptions', 1)
redis.call('HSET', job, 'not_before', notBefore, 'deadline', '', 'stage', '', 'speed_bytes', '', 'eta_seconds', '',
  'storing_since', '', 'verdict', '', 'metadata', '', 'delivered', '')
redis.call('HINCRBY', job, 'revision', 1)
redis.call('RPUSH', attempts, cjson.encode({ attempt = tonumber(attempt), ended_at = now, code = code, counts = counts,
  reason = reason ~= '' and reason or nil }))
if tonumber(notBefore) > now then redis.call('ZADD', delayed, notBefore, jobId)
else redis.call('ZADD', queue, fields.created_at, jobId) end
local owner = redis.call('HMGET', account, 'concurrency', 'tag')
update_ready(accountId, redis.call('HINCRBY', account, 'running', -1), owner[1], owner[2])
redis.call('PUBLISH', jobChannel, jobId)
redis.call('PUBLISH', workChannel, '')
return { 'waiting' }
`,
);

export const maxReasonChars = 300;

export async function retryJob(
  store: RecordStore,
  holder: string,
  job: Pick<Job, 'id' | 'account' | 'attempt'>,
  why: { counts: 'failure' | 'interruption'; code: string; text?: string | null; notBefore: number },
): Promise<Change<'stale' | 'already_ended' | 'not_found' | 'not_leading'>> {
  const reply = await run(store, retryScript, {
    holder,
    accountId: job.account,
    jobId: job.id,
    attempt: job.attempt,
    counts: why.counts,
    code: why.code,
    reason: (why.text ?? '').slice(0, maxReasonChars),
    notBefore: why.notBefore,
  });
  return changeOf(reply, 'waiting');
}
