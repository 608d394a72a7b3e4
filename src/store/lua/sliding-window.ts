/**
 * Sliding windows that count calls. A window has `size` full buckets and the running one, so a call leaves it at most one
 * bucket late and never early. Its head is text kept beside other fields: cursor (the newest bucket), sum of all buckets,
 * count of the running one. The full buckets are 32 bits each in a string, from byte `at`; it is touched only when the
 * running bucket has passed.
 *
 * read_windows(name, heads, spans) → the windows of the string `name`, each moved on to `now`. Writes nothing.
 *   spans: a list of { at, size, width in milliseconds }
 * count_in_windows(windows) → the new text of their heads, with one call more. Writes buckets that have passed.
 * wait_of(window, limit) → milliseconds until what was counted falls below the limit.
 */
export const slidingWindow = /* lua */ `
local function bit_of(window, bucket)
  return string.format('%d', (window.at + bucket % (window.size + 1) * 4) * 8)
end

-- Moves a window from its newest bucket to the present one. \`passed\` is what must be written once a call is counted:
-- a BITFIELD command, or an empty one when all buckets are to be cleared.
local function move_on(window, present)
  -- A clock that went back counts in the newest bucket; when it went back by more than the window, all counts are dropped.
  if window.cursor - present > window.size then window.cursor = 0 end
  window.bucket = math.max(window.cursor, present)
  if window.bucket == window.cursor then return end
  if window.bucket - window.cursor > window.size then
    window.sum, window.passed = 0, {}
    return
  end
  local ask, set = {}, { 'SET', 'u32', bit_of(window, window.cursor), string.format('%d', window.run) }
  for bucket = window.cursor + 1, window.bucket do
    for _, word in ipairs({ 'GET', 'u32', bit_of(window, bucket) }) do ask[#ask + 1] = word end
    for _, word in ipairs({ 'SET', 'u32', bit_of(window, bucket), '0' }) do set[#set + 1] = word end
  end
  for _, count in ipairs(redis.call('BITFIELD', window.name, unpack(ask))) do window.sum = window.sum - count end
  window.passed = set
end

local function read_windows(name, heads, spans)
  local windows, number = {}, string.gmatch(heads or '', '%d+')
  for n, span in ipairs(spans) do
    local window = { name = name, at = span[1], size = span[2], width = span[3] }
    window.cursor, window.sum, window.run = tonumber(number() or 0), tonumber(number() or 0), tonumber(number() or 0)
    move_on(window, math.floor(now / window.width))
    windows[n] = window
  end
  return windows
end

local function write_passed(window)
  if #window.passed > 0 then redis.call('BITFIELD', window.name, unpack(window.passed))
  else redis.call('SETRANGE', window.name, window.at, string.rep('\\0', (window.size + 1) * 4)) end
  window.run = 0
end

local function count_in_windows(windows)
  local heads = {}
  for n, window in ipairs(windows) do
    if window.passed then write_passed(window) end
    heads[n] = string.format('%d %d %d', window.bucket, window.sum + 1, window.run + 1)
  end
  return table.concat(heads, ' ')
end

local function wait_of(window, limit)
  local size, width, left = window.size, window.width, window.sum
  if limit <= 0 then return (size + 1) * width end
  local counts = redis.call('GETRANGE', window.name, window.at, window.at + (size + 1) * 4 - 1)
  for bucket = window.bucket - size, window.bucket do
    local from = bucket % (size + 1) * 4
    if bucket == window.cursor then
      left = left - window.run
    elseif bucket < window.cursor and #counts >= from + 4 then
      left = left - struct.unpack('>I4', counts, from + 1)
    end
    if left < limit then return (bucket + size + 1) * width - now end
  end
  return (window.bucket + size + 1) * width - now
end
`;
