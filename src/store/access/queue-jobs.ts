import { shortId } from '../keys.ts';
import { fairShare, queueScore } from '../lua/fair-share.ts';
import { scoreOf } from '../lua/job-index.ts';
import { type NewJob, recordedTexts, recordJob, tellOfWork } from './admit-call.ts';
import { countedWindows, creditRules } from './credit-rules.ts';

/** Number of texts of one job in ARGV; the second one is its short id. */
export const textsOfJob = 6;

export function jobTexts(jobId: string, work: NewJob): string[] {
  const { asked, receiver } = recordedTexts(work);
  return [jobId, shortId(jobId), asked, `${work.method} ${work.path}`, work.ip, receiver];
}

/** Lua of the rules for `wanted` jobs, and of what `queueJobs` needs. */
export const jobRules = `${fairShare}${creditRules}`;

/**
 * Lua that holds a credit for each of `wanted` jobs, counts them against the quotas of the key, and queues them. The texts of
 * the jobs stand in ARGV behind the first `skipped` ones, their keys at the end of KEYS. A failure is undone.
 */
export function queueJobs(skipped: number): string {
  return /* lua */ `
local firstKey = #KEYS - wanted
-- A job that waits holds a credit.
local waits = held > 0 and redis.call('ZCARD', queue) > 0
local indexed, opened, queued, ids, shortIds = {}, {}, {}, {}, {}
for n = 1, wanted do
  local at = ${skipped} + (n - 1) * ${textsOfJob}
  ids[n], shortIds[n] = ARGV[at + 1], ARGV[at + 2]
  indexed[2 * n - 1], indexed[2 * n] = ${scoreOf('now', 'QueuedJob')}, shortIds[n]
  opened[2 * n - 1], opened[2 * n] = stamp, ids[n]
  -- A microsecond apart, so that jobs start in their order.
  queued[2 * n - 1], queued[2 * n] = ${queueScore.ofNew(' + n - 1')}, ids[n]
end
undos[#undos + 1] = function()
  redis.pcall('HSET', account, 'held', account_held, 'rate', account_rate or '')
  redis.pcall('HSET', key, 'total', key_total, 'windows', key_windows or '')
  for n = 1, wanted do redis.pcall('DEL', KEYS[firstKey + n]) end
  redis.pcall('ZREM', jobs, unpack(shortIds))
  redis.pcall('ZREM', openWork, unpack(ids))
  redis.pcall('ZREM', queue, unpack(ids))
  update_ready(accountId, tonumber(account_running), account_concurrency, account_tag)
end
redis.call('HSET', account, 'held', string.format('%d', held + wanted), 'rate', counted_rate(wanted))
redis.call('HSET', key, 'total', string.format('%d', key_total + wanted), 'last_used_at', stamp,
  'windows', ${countedWindows})
for n = 1, wanted do
  local at = ${skipped} + (n - 1) * ${textsOfJob}
  ${recordJob('KEYS[firstKey + n]', 'ids[n]', 'ARGV[at + 3]', 'ARGV[at + 4]', 'ARGV[at + 5]', 'ARGV[at + 6]')}
end
redis.call('ZADD', jobs, unpack(indexed))
redis.call('ZADD', openWork, unpack(opened))
redis.call('ZADD', queue, unpack(queued))
${tellOfWork}
`;
}
