import { books, booksKeys } from './books.ts';
import { count } from './count.ts';
import { fair, fairKeys } from './fair.ts';

/** Keys of the steps that end a job. */
export const finishKeys = [
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
  ...booksKeys,
  ...fairKeys.filter((key) => key !== 'account'),
] as const;
export const finishArgs = ['accountId', 'jobId', 'mayUpload', 'workChannel', 'webhooksChannel', 'jobChannel'] as const;

/**
 * The end of a job, and the only place that writes a final status: charge or release of its hold, ledger, request-log
 * line, statistics and webhook, at once.
 *
 * read_job() → nil, or the reply that refuses ({'not_found'}, {'already_ended', status}). Afterwards j (fields that it had).
 * is_attempt_open() → whether its last attempt is not counted yet as a failure or an interruption.
 * finish(end) → the balance that was charged, or ''. end: status, code, error, log, metadata, delivered.
 */
export const finish = `${books}${fair}${count}
local j

local function read_job()
  local f = redis.call('HMGET', job, 'account', 'status', 'attempt', 'created_at', 'progress', 'line', 'ip', 'receiver',
    'failures', 'interruptions')
  j = { account = f[1], status = f[2], attempt = f[3] or '0', created_at = f[4], progress = f[5] or '0', line = f[6],
    ip = f[7], receiver = f[8], failures = f[9] or 0, interruptions = f[10] or 0 }
  if j.account ~= accountId then return { 'not_found' } end
  if j.status ~= 'QueuedJob' and j.status ~= 'Running' then return { 'already_ended', j.status } end
  return nil
end

local function is_attempt_open() return tonumber(j.attempt) > j.failures + j.interruptions end

local function leave()
  local was_active = redis.call('ZREM', active, jobId) == 1
  redis.call('ZREM', open, jobId)
  if was_active then
    b.running = redis.call('HINCRBY', account, 'running', '-1')
  else
    redis.call('ZREM', queue, jobId)
    redis.call('ZREM', delayed, jobId)
  end
  stand(accountId, tonumber(b.running), b.concurrency, b.tag)
end

-- Also a worker whose job ends otherwise may have uploaded something.
local function keep_file(at, is_delivered)
  if j.attempt == '0' or mayUpload == '' then return end
  redis.call('ZADD', files, is_delivered and at or 0, accountId .. '/' .. jobId)
end

local function send_webhook(at)
  if not j.receiver then return end
  redis.call('HSET', webhook, 'state', 'due', 'attempts', 0, 'last_status', '', 'next_at', at, 'created_at', at)
  redis.call('ZADD', webhooks, at, j.receiver .. '/' .. jobId)
  redis.call('ZADD', deliveries, at, jobId)
  redis.call('PUBLISH', webhooksChannel, '')
end

local function finish(e)
  local took = math.max(0, now - tonumber(j.created_at))
  local at = string.format('%d', now)
  local completed = e.status == 'CompletedJob'
  redis.call('HSET', job, 'status', e.status, 'ended_at', at, 'error_code', e.code, 'error', e.error,
    'verdict', '', 'metadata', e.metadata, 'delivered', e.delivered, 'progress', completed and '100' or j.progress)
  redis.call('HINCRBY', job, 'revision', '1')
  if is_attempt_open() then
    redis.call('RPUSH', attempts, cjson.encode({ attempt = tonumber(j.attempt), ended_at = now, code = completed and 'completed' or e.code }))
  end
  redis.call('ZADD', ended, at, accountId .. '/' .. jobId)
  keep_file(at, e.delivered ~= '')
  leave()
  keep('held', b.held - 1)
  local balance = completed and draw(jobId) or ''
  redis.call('XADD', paidLines, '*', 'at', at, 'endpoint', j.line, 'status', e.log, 'duration_ms', took,
    'ip', j.ip, 'credits', completed and '1' or '0')
  count(e.log, took)
  send_webhook(at)
  redis.call('PUBLISH', jobChannel, jobId)
  -- Who settles a job has its worker in hand; that of a cancelled one must be looked for.
  if e.code == 'cancelled' then redis.call('PUBLISH', workChannel, jobId)
  elseif redis.call('EXISTS', ready) == 1 then redis.call('PUBLISH', workChannel, '') end
  return balance
end
`;
