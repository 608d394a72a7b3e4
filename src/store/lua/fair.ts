/** Keys that every step needs that lets an account begin to wait, or gives its slot back. */
export const fairKeys = ['account', 'queue', 'ready', 'turn'] as const;

/**
 * Fair share: each account that waits and is below its own concurrency stands in \`ready\` with the turn it is due at.
 * A start moves its turn on by 1 / weight, so shares follow the weights, and whoever was idle begins at the present turn:
 * it neither saved up turns nor waits behind a long queue.
 *
 * stand(accountId, running, concurrency, tag) puts the account in its place, or takes it out.
 */
export const fair = /* lua */ `
local function stand(accountId, running, concurrency, tag)
  local waits = redis.call('ZCARD', queue) > 0
  if not waits or (concurrency ~= '' and running >= tonumber(concurrency)) then
    redis.call('ZREM', ready, accountId)
    return
  end
  local present = tonumber(redis.call('GET', turn) or '0')
  redis.call('ZADD', ready, math.max(present, tonumber(tag)), accountId)
end
`;
