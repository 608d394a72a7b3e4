/** Stripe repeats an event for three days by itself; its dashboard and its CLI send one again for 30 days. */
const keptMs = 30 * 86_400_000;

/**
 * Lua that carries out an event of the payment provider once, by its id. '' is the id of an answer, which is no event.
 *
 * is_repeated_event() → whether an event of this id was carried out in the last 30 days.
 * with_event(reply) notes the event, forgets those of more than 30 days, and returns the reply: the last writes of a script.
 */
export const paymentEventOnce = /* lua */ `
local function is_repeated_event()
  return eventId ~= '' and redis.call('ZSCORE', paymentEvents, eventId) ~= false
end

local function with_event(reply)
  if eventId == '' then return reply end
  redis.call('ZREMRANGEBYSCORE', paymentEvents, '-inf', string.format('%d', now - ${keptMs}))
  redis.call('ZADD', paymentEvents, string.format('%d', now), eventId)
  return reply
end
`;
