import type { Job } from '../../model/job.ts';
import { shortId } from '../keys.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { fairShare, fairShareKeyNames } from '../lua/fair-share.ts';
import { scoreOfStatus } from '../lua/job-index.ts';
import { statistics } from '../lua/statistics.ts';
import { writeEnd } from './ended-job.ts';
import { fileScore } from './kept-files.ts';
import { openJobKeyNames, readOpenJob } from './read-open-job.ts';
import { workShift } from './work-ranges.ts';

export const endJobKeyNames = [
  ...openJobKeyNames,
  'jobs',
  'openWork',
  'ended',
  'paidLines',
  'lineStreams',
  'webhooks',
  'webhook',
  'deliveries',
  'stats',
  ...balanceKeyNames,
  ...fairShareKeyNames.filter((key) => key !== 'account'),
] as const;
export const endJobArgNames = [
  'accountId',
  'jobId',
  'shortId',
  'mayUpload',
  'workChannel',
  'webhooksChannel',
  'jobChannel',
  'texts',
] as const;

/** Fields of a job that its end needs: none of them ever changes. */
export type EndingJob = Pick<
  Job,
  'id' | 'account' | 'key' | 'endpoint' | 'path' | 'args' | 'webhook_url' | 'webhook_authorization' | 'trace'
>;

/** Returns the values of these keys and arguments; `texts` of the job are deflated. */
export function endJobValues({ id, account, key, endpoint }: EndingJob, texts: Buffer) {
  const mayUpload = endpoint === 'metadata' ? '' : '1';
  return { accountId: account, jobId: id, shortId: shortId(id), keyId: key, endpoint, mayUpload, texts };
}

/**
 * Lua of the end of a job, and the only place that writes a final status: charge or release of its hold, ledger, request-log
 * line, statistics and webhook, at once. Its hash gives way to one string.
 *
 * read_job() → nil, or the reply that refuses ({'not_found'}, {'already_ended'}). Afterwards `j` has its fields.
 * end_job(end) → the balance that was charged, or ''. end: status, code, log, is_delivered, reason.
 */
export const endJob = /* lua */ `${readOpenJob('account started_at progress storing_since line ip receiver preempted recorded stages')}${writeEnd}${fileScore}${balances}${fairShare}${statistics}
local j

local function read_job()
  local fields, refused = read_open_job()
  if refused then return refused end
  if fields.account ~= accountId then return { 'not_found' } end
  j = fields
end

-- Where the job stands in the open work, and its place in the queue. One with an open attempt has a slot, and has had it about since it began.
local place, queued_at, has_slot

local function find_place()
  if not is_counted(j) then
    place, has_slot = string.format('%d', (j.started_at ~= '' and j.started_at or j.created_at) - ${workShift}), true
    return
  end
  place, queued_at = redis.call('ZSCORE', openWork, jobId), redis.call('ZSCORE', queue, jobId)
  has_slot = tonumber(place or 0) < 0
end

local function leave()
  redis.call('ZREM', openWork, jobId)
  if queued_at then redis.call('ZREM', queue, jobId) end
  -- An account without a job that waits was not ready, as long as this one was not what waited. What waits holds a credit.
  local waits = b.held > 0 and redis.call('ZCARD', queue) > 0
  if waits or not has_slot then update_ready(accountId, b.running, b.concurrency, b.tag, waits) end
end

local function undo_leave()
  if place then redis.pcall('ZADD', openWork, place, jobId) end
  if queued_at then redis.pcall('ZADD', queue, queued_at, jobId) end
  update_ready(accountId, tonumber(values[9]), b.concurrency, b.tag)
end

-- The worker of a job that ends without a result may have uploaded something, too.
local function score_of_end(at, is_delivered)
  if j.attempt == '0' or mayUpload == '' then return at end
  return file_score(is_delivered and at or 0)
end

local function make_webhook_due(at)
  if j.receiver == '' then return end
  redis.call('HSET', webhook, 'state', 'due', 'attempts', 0, 'last_status', '', 'next_at', at, 'created_at', at)
  redis.call('ZADD', webhooks, at, j.receiver .. '/' .. jobId)
  redis.call('ZADD', deliveries, at, shortId)
  redis.call('PUBLISH', webhooksChannel, '')
end

local function write_job(e, at)
  local marks = j.attempts
  if not is_counted(j) then
    local code = e.status == 'CompletedJob' and 'completed' or e.code
    if e.reason ~= '' then marks = mark(j, j.attempt, code, '', e.reason) else marks = mark(j, j.attempt, code) end
  end
  write_end({ account = accountId, status = e.status, revision = next_revision(j), created_at = j.created_at,
    started_at = j.started_at, ended_at = at, progress = e.status == 'CompletedJob' and '100' or tonumber(j.progress) or 0,
    attempt = j.attempt, failures = j.failures, interruptions = j.interruptions, storing_since = j.storing_since,
    error_code = e.code, receiver = j.receiver }, marks, texts)
  redis.call('ZADD', jobs, ${scoreOfStatus('j.created_at', 'e.status')}, shortId)
  redis.call('ZADD', ended, score_of_end(at, e.is_delivered), shortId)
  -- The last write: it cannot be undone.
  redis.call('DEL', job)
end

-- Undoes everything but the balances and the statistics, which undo themselves.
local function undo_end(line)
  redis.pcall('DEL', endedJob)
  redis.pcall('ZREM', ended, shortId)
  redis.pcall('ZADD', jobs, ${scoreOfStatus('j.created_at', 'j.status')}, shortId)
  if j.receiver ~= '' then
    redis.pcall('DEL', webhook)
    redis.pcall('ZREM', webhooks, j.receiver .. '/' .. jobId)
    redis.pcall('ZREM', deliveries, shortId)
  end
  if line then redis.pcall('XDEL', paidLines, line) end
  undo_leave()
end

local function end_job(e)
  local took = math.max(0, now - tonumber(j.created_at))
  local at = string.format('%d', now)
  local completed = e.status == 'CompletedJob'
  local line
  find_place()
  if has_slot then set_field('running', b.running - 1) end
  local is_bound = j.preempted ~= '' or j.recorded ~= ''
  if is_bound then set_field('bound', math.max(0, (redis.call('HGET', account, 'bound') or 0) - 1)) end
  end_hold(completed)
  local balance = completed and draw(shortId) or ''
  undos[#undos + 1] = function() undo_end(line) end
  write_balances()
  line = append(paidLines, lineStreams, at, 'endpoint', j.line, 'status', e.log, 'duration_ms', took, 'ip', j.ip,
    'credits', completed and '1' or '0')
  count_answer(e.log, took)
  make_webhook_due(at)
  leave()
  write_job(e, at)
  tell_watchers(j)
  -- A controller that settles a job stops its worker itself; that of a cancelled job must be told.
  if e.code == 'cancelled' then redis.call('PUBLISH', workChannel, jobId)
  elseif redis.call('EXISTS', ready) == 1 then redis.call('PUBLISH', workChannel, '') end
  return balance
end
`;
