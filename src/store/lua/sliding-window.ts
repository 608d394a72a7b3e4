/** Byte ranges of the rolling quotas of a key in its string of counters, as arguments of `read_window`: byte, size, width. */
export const quotaRanges = {
  month: '1832, 180, 4 * 3600000',
  week: '1156, 168, 3600000',
  day: '0, 288, 300000',
} as const;

/** Locals of the heads of the rolling quotas, as the next arguments of `read_window`: cursor, sum and running bucket. */
export const quotaHeads = {
  month: 'month_cursor, month_sum, month_run',
  week: 'week_cursor, week_sum, week_run',
  day: 'day_cursor, day_sum, day_run',
} as const;

/** Lua that reads the field `windows` of a key into these locals; they are nil for a key that was never counted. */
export function readQuotaHeads(windows: string): string {
  return `local ${quotaHeads.month}, ${quotaHeads.week}, ${quotaHeads.day} =
  string.match(${windows} or '', '(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)')`;
}

/**
 * Sliding windows that count calls. A window has `size` full buckets and the running one, so a call leaves it at most one
 * bucket late and never early. Its head is text kept beside other fields: cursor (the newest bucket), sum of all buckets,
 * count of the running one. The full buckets are 32 bits each in a string, from byte `at`; it is touched only when the
 * running bucket has passed.
 *
 * read_window(name, at, size, width in milliseconds, cursor, sum, run) → the window of the string `name`, from the three
 *   texts of its head (nil for a new one), moved on to `now`. Writes nothing.
 * count_in(window, calls) → the new text of its head, with so many calls more, one when nil. Writes buckets that have passed.
 * counted_in(name, at, size, width, cursor, sum, run, calls) → the same of a window that is not read otherwise.
 * take_back(name, at, size, width, counted, cursor, sum, run) → the new text of its head without a call counted at that time.
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
  -- -1: counts are dropped, and the buckets must be cleared; 0: the window is new and has no buckets.
  if window.cursor - present > window.size then window.cursor = -1 end
  window.bucket = math.max(window.cursor, present)
  if window.bucket == window.cursor then return end
  if window.bucket - window.cursor > window.size then
    window.sum, window.passed = 0, {}
    return
  end
  local ask, set = {}, { 'SET', 'u32', bit_of(window, window.cursor), string.format('%d', window.run) }
  for bucket = window.cursor + 1, window.bucket do
    local bit, asked, written = bit_of(window, bucket), #ask, #set
    ask[asked + 1], ask[asked + 2], ask[asked + 3] = 'GET', 'u32', bit
    set[written + 1], set[written + 2], set[written + 3], set[written + 4] = 'SET', 'u32', bit, '0'
  end
  window.old, window.passed = redis.call('BITFIELD', window.name, unpack(ask)), set
  for _, count in ipairs(window.old) do window.sum = window.sum - count end
end

local function read_window(name, at, size, width, cursor, sum, run)
  local newest, present = tonumber(cursor or 0), math.floor(now / width)
  local window = { name = name, at = at, size = size, width = width, cursor = newest, bucket = newest,
    sum = tonumber(sum or 0), run = tonumber(run or 0) }
  if present ~= newest then move_on(window, present) end
  return window
end

local function count_in(window, calls)
  local run, more = window.run, calls or 1
  if window.passed then
    if #window.passed > 0 then
      undos[#undos + 1] = function()
        for n, count in ipairs(window.old) do
          redis.call('BITFIELD', window.name, 'SET', 'u32', bit_of(window, window.cursor + n), count)
        end
      end
      redis.call('BITFIELD', window.name, unpack(window.passed))
    -- 0: the window is new and has no buckets to clear.
    elseif window.cursor ~= 0 then redis.call('SETRANGE', window.name, window.at, string.rep('\\0', (window.size + 1) * 4)) end
    run = 0
  end
  return string.format('%d %d %d', window.bucket, window.sum + more, run + more)
end

local function counted_in(name, at, size, width, cursor, sum, run, calls)
  -- Mostly its bucket is still the running one: that needs no table.
  if cursor and math.floor(now / width) == tonumber(cursor) then
    return string.format('%s %d %d', cursor, sum + calls, run + calls)
  end
  return count_in(read_window(name, at, size, width, cursor, sum, run), calls)
end

local function take_back(name, at, size, width, counted, cursor, sum, run)
  local bucket = math.floor(counted / width)
  cursor, sum, run = tonumber(cursor), tonumber(sum), tonumber(run)
  if bucket >= cursor then
    if run > 0 then sum, run = sum - 1, run - 1 end
  elseif bucket >= cursor - size then
    local bit = bit_of({ at = at, size = size }, bucket)
    -- 0 where the clock went back meanwhile: the call was then counted in another bucket.
    local seen = redis.call('BITFIELD', name, 'GET', 'u32', bit)[1]
    if seen > 0 then
      undos[#undos + 1] = function() redis.pcall('BITFIELD', name, 'SET', 'u32', bit, seen) end
      redis.call('BITFIELD', name, 'INCRBY', 'u32', bit, '-1')
      sum = sum - 1
    end
  end
  return string.format('%d %d %d', cursor, sum, run)
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
