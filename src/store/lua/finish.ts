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
export const finishArgs = ['accountId', 'jobId', 'workChannel', 'jobChannel'] as const;

/**
 * The end of a job, and the only place that writes a final status: charge or release of its hold, ledger, request-log
 * line, statistics and webhook, at once.
 *
 * read_job() → nil, or the reply that refuses ({'not_found'}, {'already_ended', status}). Afterwards j (its fields).
 * finish(end) → the balance that was charged, or ''. end: status, code, error, log, metadata, delivered.
 */
export const finish = `${books}${fair}${count}
local j

local function read_job()
  local flat = redis.call('HGETALL', job)
  if #flat == 0 then return { 'not_found' } end
  j = {}
  for n = 1, #flat, 2 do j[flat[n]] = flat[n + 1] end
  if j.account ~= accountId then return { 'not_found' } end
  if j.status ~= 'QueuedJob' and j.status ~= 'Running' then return { 'already_ended', j.status } end
  return nil
end

local function leave()
  local was_active = redis.call('ZREM', active, jobId) == 1
  redis.call('ZREM', queue, jobId)
  redis.call('ZREM', delayed, jobId)
  redis.call('ZREM', open, jobId)
  if was_active then b.running = redis.call('HINCRBY', account, 'running', -1) end
  stand(accountId, tonumber(b.running), b.concurrency, b.tag)
end

local function send_webhook()
  if j.webhook_url == '' then return end
  redis.call('HSET', webhook, 'state', 'due', 'attempts', 0, 'last_status', '', 'next_at', now, 'created_at', now)
  redis.call('ZADD', webhooks, now, j.receiver .. '/' .. jobId)
  redis.call('ZADD', deliveries, now, jobId)
end

local function finish(e)
  local took = now - tonumber(j.created_at)
  local completed = e.status == 'CompletedJob'
  redis.call('HSET', job, 'status', e.status, 'ended_at', now, 'error_code', e.code, 'error', e.error,
    'metadata', e.metadata, 'delivered', e.delivered, 'progress', completed and 100 or j.progress)
  redis.call('HINCRBY', job, 'revision', 1)
  if tonumber(j.attempt) > 0 then
    redis.call('RPUSH', attempts, cjson.encode({ attempt = tonumber(j.attempt), ended_at = now, code = completed and 'completed' or e.code }))
  end
  redis.call('ZADD', ended, now, accountId .. '/' .. jobId)
  if e.delivered ~= '' then redis.call('ZADD', files, now, accountId .. '/' .. jobId) end
  leave()
  keep('held', b.held - 1)
  local balance = completed and draw(jobId) or ''
  redis.call('XADD', paidLines, '*', 'at', now, 'endpoint', j.method .. ' ' .. j.path, 'status', e.log, 'duration_ms', took,
    'ip', j.ip, 'credits', completed and 1 or 0)
  count(e.log, took)
  send_webhook()
  redis.call('PUBLISH', jobChannel, jobId)
  redis.call('PUBLISH', workChannel, jobId)
  return balance
end
`;
