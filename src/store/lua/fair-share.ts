/** Keys of every script in which an account begins to wait, or gives a slot back. */
export const fairShareKeyNames = ['account', 'queue', 'ready', 'unserved', 'turn'] as const;

/**
 * Fair share: each account with a waiting job and a free slot of its own stands in `ready` with the turn at which it is due.
 * A start moves that turn on by 1 / weight, so shares follow the weights. An account that was idle begins at the present
 * turn: it neither saved up turns nor waits behind a long queue. As long as none of its jobs has a slot it also stands in
 * `unserved` with the time since when it waits.
 *
 * update_ready(accountId, running, concurrency, tag) puts the account into both, moves it there or takes it out.
 */
export const fairShare = /* lua */ `
local function update_ready(accountId, running, concurrency, tag)
  local waits = redis.call('ZCARD', queue) > 0
  if not waits or (concurrency ~= '' and running >= tonumber(concurrency)) then
    redis.call('ZREM', ready, accountId)
    redis.call('ZREM', unserved, accountId)
    return
  end
  local present = tonumber(redis.call('GET', turn) or '0')
  redis.call('ZADD', ready, math.max(present, tonumber(tag)), accountId)
  if running == 0 then redis.call('ZADD', unserved, 'NX', now, accountId)
  else redis.call('ZREM', unserved, accountId) end
end
`;
