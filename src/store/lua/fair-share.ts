/** Keys of every script in which an account begins to wait, or gives a slot back. */
export const fairShareKeyNames = ['account', 'queue', 'ready', 'unserved', 'turn'] as const;

/**
 * Fair share: each account with a waiting job and a free slot of its own stands in `ready` with the turn at which it is due.
 * A start moves that turn on by 1 / weight, so shares follow the weights. An account that was idle begins at the present
 * turn: it neither saved up turns nor waits behind a long queue. As long as none of its jobs has a slot it also stands in
 * `unserved` with the time since when it waits.
 *
 * update_ready(accountId, running, concurrency, tag, waits, present) puts the account into both, moves it there or takes it
 *   out; returns its turn, or nil when none of its jobs may start. `waits`: one of its jobs waits, `present`: the turn that was
 *   taken last; both are read where they are nil.
 */
export const fairShare = /* lua */ `
local function update_ready(accountId, running, concurrency, tag, waits, present)
  if waits == nil then waits = redis.call('ZCARD', queue) > 0 end
  -- An account leaves \`unserved\` when its first job gets a slot, so with more of them it is not there.
  if not waits or (concurrency ~= '' and running >= tonumber(concurrency)) then
    redis.call('ZREM', ready, accountId)
    if running <= 1 then redis.call('ZREM', unserved, accountId) end
    return nil
  end
  local due = math.max(tonumber(present or redis.call('GET', turn) or '0'), tonumber(tag))
  redis.call('ZADD', ready, due, accountId)
  if running == 0 then redis.call('ZADD', unserved, 'NX', now, accountId)
  elseif running == 1 then redis.call('ZREM', unserved, accountId) end
  return due
end
`;
