import type { Job } from '../../model/job.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { fairShare, fairShareKeyNames } from '../lua/fair-share.ts';
import { statistics } from '../lua/statistics.ts';
import { readOpenJob } from './read-open-job.ts';

export const endJobKeyNames = [
  'job',
  'open',
  'active',
  'delayed',
  'ended',
  'files',
  'attempts',
  'paidLines',
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
  'mayUpload',
  'workChannel',
  'webhooksChannel',
  'jobChannel',
] as const;

export function endJobIds(job: Pick<Job, 'id' | 'account' | 'key' | 'endpoint'>) {
  const { id, account, key, endpoint } = job;
  return { accountId: account, jobId: id, keyId: key, endpoint, mayUpload: endpoint === 'metadata' ? '' : '1' };
}

/**
 * Lua of the end of a job, and the only place that writes a final status: charge or release of its hold, ledger, request-log
 * line, statistics and webhook, at once.
 *
 * read_job() → nil, or the reply that refuses ({'not_found'}, {'already_ended', status}). Afterwards `j` has its fields.
 * end_job(end) → the balance that was charged, or ''. end: status, code, error, log, metadata, delivered.
 */
export const endJob = /* lua */ `${readOpenJob}${balances}${fairShare}${statistics}
local j

local function read_job()
  local fields, refused = read_open_job({ 'account', 'created_at', 'progress', 'line', 'ip', 'receiver' })
  if refused then return refused end
  if fields.account ~= accountId then return { 'not_found' } end
  j = fields
end

local function leave()
  local was_active = redis.call('ZREM', active, jobId) == 1
  redis.call('ZREM', open, jobId)
  if was_active then
    b.running = redis.call('HINCRBY', account, 'running', '-1')
  else
    redis.call('ZREM', queue, jobId)
    redis.call('ZREM', delayed, jobId)
  end
  update_ready(accountId, tonumber(b.running), b.concurrency, b.tag)
end

-- The worker of a job that ends without a result may have uploaded something, too.
local function keep_file(at, is_delivered)
  if j.attempt == '0' or mayUpload == '' then return end
  redis.call('ZADD', files, is_delivered and at or 0, accountId .. '/' .. jobId)
end

local function make_webhook_due(at)
  if j.receiver == '' then return end
  redis.call('HSET', webhook, 'state', 'due', 'attempts', 0, 'last_status', '', 'next_at', at, 'created_at', at)
  redis.call('ZADD', webhooks, at, j.receiver .. '/' .. jobId)
  redis.call('ZADD', deliveries, at, jobId)
  redis.call('PUBLISH', webhooksChannel, '')
end

local function end_job(e)
  local took = math.max(0, now - tonumber(j.created_at))
  local at = string.format('%d', now)
  local completed = e.status == 'CompletedJob'
  local progress = completed and '100' or tonumber(j.progress) or 0
  redis.call('HSET', job, 'status', e.status, 'ended_at', at, 'error_code', e.code, 'error', e.error,
    'verdict', '', 'metadata', e.metadata, 'delivered', e.delivered, 'progress', progress)
  redis.call('HINCRBY', job, 'revision', '1')
  if not is_counted(j) then
    redis.call('RPUSH', attempts, cjson.encode({ attempt = tonumber(j.attempt), ended_at = now, code = completed and 'completed' or e.code,
      reason = e.reason ~= '' and e.reason or nil }))
  end
  redis.call('ZADD', ended, at, accountId .. '/' .. jobId)
  keep_file(at, e.delivered ~= '')
  leave()
  set_field('held', b.held - 1)
  local balance = completed and draw(jobId) or ''
  redis.call('XADD', paidLines, '*', 'at', at, 'endpoint', j.line, 'status', e.log, 'duration_ms', took,
    'ip', j.ip, 'credits', completed and '1' or '0')
  count_answer(e.log, took)
  make_webhook_due(at)
  redis.call('PUBLISH', jobChannel, jobId)
  -- A controller that settles a job stops its worker itself; that of a cancelled job must be told.
  if e.code == 'cancelled' then redis.call('PUBLISH', workChannel, jobId)
  elseif redis.call('EXISTS', ready) == 1 then redis.call('PUBLISH', workChannel, '') end
  return balance
end
`;
