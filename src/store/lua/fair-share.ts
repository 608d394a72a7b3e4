/** Keys of every script in which an account begins to wait, or gives a slot back. */
export const fairShareKeyNames = ['account', 'queue', 'ready', 'turn'] as const;

/**
 * Lua of scores in the queue of an account, which are microseconds: a new job has the time of its admission and half of one, and
 * `more` as one of several; one that comes back has the whole millisecond of its creation, so that it goes before younger ones.
 */
export const queueScore = {
  ofNew: (more = '') => `string.format('%d.5', now * 1000 + clock[2] % 1000${more})`,
  ofReturned: (created_at: string) => `${created_at} .. '000'`,
  isOfNew: (score: string) => `${score} % 1000 ~= 0`,
  toMs: (score: string) => `string.format('%d', ${score} / 1000)`,
} as const;

/**
 * An account that may start a job and has none that runs stands in `ready` once more, behind an `@`, with the time since when it
 * waits. Times are above this, and turns, which grow by at most 1 a job, are below.
 */
export const unservedFrom = 1_000_000_000_000;

/** Lua of the account that waits longest for a first job: a list of its name behind an `@` and the time since when, or an empty one. */
export const firstUnserved = `redis.call('ZRANGEBYSCORE', ready, '${unservedFrom}', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)`;

/**
 * Fair share: each account with a waiting job and a free slot of its own stands in `ready` with the turn at which it is due.
 * A start moves that turn on by 1 / weight, so shares follow the weights. An account that was idle begins at the present
 * turn: it neither saved up turns nor waits behind a long queue.
 *
 * update_ready(accountId, running, concurrency, tag, waits, present) puts the account into `ready`, moves it there or takes it
 *   out; returns its turn, or nil when none of its jobs may start. `waits`: one of its jobs waits, `present`: the turn that was
 *   taken last; both are read where they are nil.
 */
export const fairShare = /* lua */ `
local function update_ready(accountId, running, concurrency, tag, waits, present)
  if waits == nil then waits = redis.call('ZCARD', queue) > 0 end
  if not waits or (concurrency ~= '' and running >= tonumber(concurrency)) then
    redis.call('ZREM', ready, accountId, '@' .. accountId)
    return nil
  end
  local due = math.max(tonumber(present or redis.call('GET', turn) or '0'), tonumber(tag))
  -- One that stands there keeps its turn and the time of its wait until it starts a job.
  if running == 0 then redis.call('ZADD', ready, 'NX', due, accountId, string.format('%d', now), '@' .. accountId)
  else redis.call('ZADD', ready, due, accountId) end
  -- The account waits no longer for its first job; with more than one running it had no such entry.
  if running == 1 then redis.call('ZREM', ready, '@' .. accountId) end
  return due
end
`;
