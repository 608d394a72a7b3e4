/**
 * Streams whose oldest entries leave Redis with time. `index` has the name of each one that has entries, by the time of its
 * oldest, so that the sweep and the archive find those that are due and look at no other. An empty stream does not exist.
 *
 * append(stream, index, at, …) → id of the new entry, whose first field is `at`. The index changes only with the first entry.
 * note_oldest(stream, index) → the time of the oldest entry, or '' when none is left. Called after entries were removed.
 */
export const indexedStream = /* lua */ `
local function append(stream, index, at, ...)
  local id = redis.call('XADD', stream, 'NOMKSTREAM', '*', 'at', at, ...)
  if id then return id end
  redis.call('ZADD', index, at, stream)
  return redis.call('XADD', stream, '*', 'at', at, ...)
end

local function note_oldest(stream, index)
  local oldest = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  if oldest then
    redis.call('ZADD', index, oldest[2][2], stream)
    return oldest[2][2]
  end
  redis.call('DEL', stream)
  redis.call('ZREM', index, stream)
  return ''
end
`;
