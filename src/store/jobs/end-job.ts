import type { Job } from '../../model/job.ts';
import { shortId } from '../keys.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { fairShare, fairShareKeyNames } from '../lua/fair-share.ts';
import { statistics } from '../lua/statistics.ts';
import { writeEnd } from './ended-job.ts';
import { jobIndex } from './job-index.ts';
import { fileScore } from './kept-files.ts';
import { openJobKeyNames, readOpenJob } from './read-open-job.ts';

export const endJobKeyNames = [
  ...openJobKeyNames,
  'jobs',
  'open',
  'active',
  'delayed',
  'ended',
  'paidLines',
  'lineStreams',
  'queued',
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
  'id' | 'account' | 'key' | 'endpoint' | 'path' | 'args' | 'webhook_url' | 'webhook_authorization'
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
export const endJob = /* lua */ `${readOpenJob('account started_at progress storing_since line ip receiver preempted recorded')}${writeEnd}${fileScore}${jobIndex}${balances}${fairShare}${statistics}
local j

local function read_job()
  local fields, refused = read_open_job()
  if refused then return refused end
  if fields.account ~= accountId then return { 'not_found' } end
  j = fields
end

-- Where the job stands: among those that have a slot, wait, or are delayed.
local function find_places()
  local active_since = redis.call('ZSCORE', active, jobId)
  if active_since then return { [active] = active_since } end
  local queued_at = redis.call('ZSCORE', queue, jobId)
  if queued_at then return { [queue] = queued_at, [queued] = redis.call('ZSCORE', queued, jobId) } end
  return { [delayed] = redis.call('ZSCORE', delayed, jobId) or nil }
end

local function leave(places)
  redis.call('ZREM', open, jobId)
  for place in pairs(places) do redis.call('ZREM', place, jobId) end
  -- An account without a job that waits was not ready, as long as this one was not what waited. What waits holds a credit.
  local waits = b.held > 0 and redis.call('ZCARD', queue) > 0
  if waits or not places[active] then update_ready(accountId, b.running, b.concurrency, b.tag, waits) end
end

local function undo_leave(places)
  redis.pcall('ZADD', open, j.created_at, jobId)
  for place, at in pairs(places) do redis.pcall('ZADD', place, at, jobId) end
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
  redis.call('ZADD', jobs, score_of(j.created_at, e.status), shortId)
  redis.call('ZADD', ended, score_of_end(at, e.is_delivered), shortId)
  -- The last write: it cannot be undone.
  redis.call('DEL', job)
end

-- Undoes everything but the balances and the statistics, which undo themselves.
local function undo_end(places, line)
  redis.pcall('DEL', endedJob)
  redis.pcall('ZREM', ended, shortId)
  redis.pcall('ZADD', jobs, score_of(j.created_at, j.status), shortId)
  if j.receiver ~= '' then
    redis.pcall('DEL', webhook)
    redis.pcall('ZREM', webhooks, j.receiver .. '/' .. jobId)
    redis.pcall('ZREM', deliveries, shortId)
  end
  if line then redis.pcall('XDEL', paidLines, line) end
  undo_leave(places)
end

local function end_job(e)
  local took = math.max(0, now - tonumber(j.created_at))
  local at = string.format('%d', now)
  local completed = e.status == 'CompletedJob'
  local places, line = find_places(), nil
  if places[active] then set_field('running', b.running - 1) end
  local is_bound = j.preempted ~= '' or j.recorded ~= ''
  if is_bound then set_field('bound', math.max(0, (redis.call('HGET', account, 'bound') or 0) - 1)) end
  end_hold(completed)
  local balance = completed and draw(shortId) or ''
  undos[#undos + 1] = function() undo_end(places, line) end
  write_balances()
  line = append(paidLines, lineStreams, at, 'endpoint', j.line, 'status', e.log, 'duration_ms', took, 'ip', j.ip,
    'credits', completed and '1' or '0')
  count_answer(e.log, took)
  make_webhook_due(at)
  leave(places)
  write_job(e, at)
  tell_watchers(j)
  -- A controller that settles a job stops its worker itself; that of a cancelled job must be told.
  if e.code == 'cancelled' then redis.call('PUBLISH', workChannel, jobId)
  elseif redis.call('EXISTS', ready) == 1 then redis.call('PUBLISH', workChannel, '') end
  return balance
end
`;
