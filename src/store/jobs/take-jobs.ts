import type { WorkerShares } from '../../model/preemption.ts';
import { fairShare, fairShareKeyNames, firstUnserved, queueScore, unservedFrom } from '../lua/fair-share.ts';
import { type RecordStore, run, script, text } from '../script.ts';
import { countActive, workShift } from './work-ranges.ts';

/** Jobs at the head of a queue among which one is looked for that has not run: those that have are rarely more. */
const maxExamined = 100;

/**
 * Takes the oldest waiting job of the account whose turn it is. The job keeps a slot of the account and of the whole
 * system until it is settled or waits for another attempt. The last `kept` slots, or without these any slot after a wait of
 * `maxWait`, go to the account that waits longest without one. Then an account may hold every slot only while it has fewer
 * open jobs that cannot be interrupted than slots, so that one of those that run can be; with the last one it takes the oldest
 * job that has not run otherwise. All of that holds while there is another account.
 * Answers {'taken', job, whose turn is next or ''}, {'full'}, {'again', whose turn it is or ''}, {'not_leading'}.
 */
const takeJobsScript = script(
  'take-jobs',
  'always',
  [...fairShareKeyNames, 'openWork', 'lead', 'slugs'],
  ['term', 'accountId', 'slots', 'kept', 'maxWait'],
)`${fairShare}
-- A job is interrupted once, so a new one can be.
local function oldest_new()
  local jobs = redis.call('ZRANGE', queue, 0, ${maxExamined - 1}, 'WITHSCORES')
  for n = 1, #jobs, 2 do
    if ${queueScore.isOfNew('jobs[n + 1]')} then return jobs[n], jobs[n + 1] end
  end
end
local function next_ready() return redis.call('ZRANGEBYSCORE', ready, '-inf', '(${unservedFrom}', 'LIMIT', 0, 1)[1] or '' end
if redis.call('GET', lead) ~= term then return { 'not_leading' } end
local free = tonumber(slots) - ${countActive}
if free <= 0 then return { 'full' } end
-- The account whose turn it is, and the one after it.
local turns = redis.call('ZRANGE', ready, 0, 1, 'WITHSCORES')
for n = 3, 1, -2 do
  if turns[n] and tonumber(turns[n + 1]) >= ${unservedFrom} then turns[n] = nil end
end
local next_turn = turns[1]
local whose, is_kept = next_turn, free <= tonumber(kept)
-- Without a slot to keep, and while others are free, nobody asks who waits longest.
local first_unserved = (is_kept or kept == '0') and ${firstUnserved} or {}
if is_kept and not first_unserved[1] then return { 'full' } end
local is_due = first_unserved[1] and (is_kept or now - tonumber(first_unserved[2]) >= tonumber(maxWait))
if is_due then whose = string.sub(first_unserved[1], 2) end
if whose ~= accountId then return { 'again', whose or '' } end
local waiting = redis.call('ZRANGE', queue, 0, 1, 'WITHSCORES')
local id, queued_at = waiting[1], waiting[2]
local taken_turn = whose == next_turn and turns[2] or redis.call('ZSCORE', ready, accountId)
if not id or not taken_turn then
  -- No script leaves an account without a waiting job in this set. One that got there all the same would keep others from their turns.
  redis.call('ZREM', ready, accountId, '@' .. accountId)
  return { 'again', next_ready() }
end
local owner = redis.call('HMGET', account, 'weight', 'concurrency', 'running', 'bound', 'tag')
local running = tonumber(owner[3]) + 1
local has_all = kept == '0' and running >= math.max(2, slots)
if has_all and running <= tonumber(owner[4] or 0) and redis.call('HLEN', slugs) > 1 then
  id, queued_at = oldest_new()
  if not id then
    redis.call('ZREM', ready, accountId)
    return { 'again', next_ready() }
  end
end
local is_turn, is_turn_set, last_turn = whose == next_turn, false, nil
undos[1] = function()
  redis.pcall('ZADD', queue, queued_at, id)
  redis.pcall('ZADD', openWork, ${queueScore.toMs('queued_at')}, id)
  if last_turn then redis.pcall('SET', turn, last_turn) elseif is_turn_set then redis.pcall('DEL', turn) end
  redis.pcall('HSET', account, 'tag', owner[5], 'running', owner[3])
  redis.pcall('ZADD', ready, taken_turn, accountId)
  -- It waited at most since then.
  if running == 1 then redis.pcall('ZADD', ready, 'NX', ${queueScore.toMs('queued_at')}, '@' .. accountId) end
end
local tag = tonumber(taken_turn) + 1 / tonumber(owner[1])
redis.call('HSET', account, 'tag', string.format('%.17g', tag), 'running', string.format('%d', running))
redis.call('ZREM', queue, id)
redis.call('ZADD', openWork, string.format('%d', now - ${workShift}), id)
if is_turn then last_turn, is_turn_set = redis.call('SET', turn, taken_turn, 'GET'), true end
local due = update_ready(accountId, running, owner[2], tag, waiting[3] ~= nil, is_turn and taken_turn or nil)
local other, due_of_other = turns[1], turns[2]
if other == accountId then other, due_of_other = turns[3], turns[4] end
if due and (not other or due < tonumber(due_of_other)) then other = accountId end
return 'taken' .. ' ' .. id .. ' ' .. (other or '')
`;

/** Another controller that takes jobs can make every guess of the next account wrong: then the next pass goes on. */
const maxMisses = 100;

/**
 * Returns a generator of jobs in fair order. Each is taken when it is asked for; it ends when no account may start one.
 */
export function makeTake(
  store: RecordStore,
  term: string,
  { slots, kept, maxWaitMs }: WorkerShares,
): () => AsyncGenerator<string, void> {
  // A script names its keys before it runs, so the account is a guess: Redis answers whose turn it is.
  let accountId = '';
  return async function* () {
    for (let misses = 0; misses < maxMisses; ) {
      const [word, ...rest] = await run(store, takeJobsScript, { term, accountId, slots, kept, maxWait: maxWaitMs });
      if (word !== 'taken' && word !== 'again') return;
      const jobId = word === 'taken' ? text(rest.shift()) : null;
      const next = text(rest[0]);
      accountId = next || accountId;
      misses = jobId === null ? misses + 1 : 0;
      if (jobId !== null) yield jobId;
      if (next === '') return;
    }
  };
}
