/**
 * Rolling windows in one string. A window has n full buckets and the running one, so a call leaves it at most one
 * bucket late and never early. Its sum is kept beside the buckets: looking costs the same however full it is.
 * Layout at byte `at`: cursor (64 bits), sum (64 bits), n + 1 counts (32 bits each).
 *
 * look(name, at, n, width) → the window as it stands now; writes nothing.
 * spend(name, windows) counts one call in each of them.
 * wait(window, limit) → milliseconds until the sum falls below the limit.
 */
export const ring = /* lua */ `
local function look(name, at, n, width)
  local head = redis.call('BITFIELD', name, 'GET', 'i64', at * 8, 'GET', 'i64', at * 8 + 64)
  local w = { name = name, at = at, n = n, width = width, cursor = head[1], sum = head[2], passed = {} }
  -- A clock that went back counts in the newest bucket.
  w.bucket = math.max(math.floor(now / width), w.cursor)
  if w.bucket - w.cursor > n then
    w.sum, w.empty = 0, true
  elseif w.bucket > w.cursor then
    local ask = {}
    for b = w.cursor + 1, w.bucket do
      local bit = (at + 16 + b % (n + 1) * 4) * 8
      w.passed[#w.passed + 1] = bit
      ask[#ask + 1], ask[#ask + 2], ask[#ask + 3] = 'GET', 'u32', bit
    end
    for _, count in ipairs(redis.call('BITFIELD', name, unpack(ask))) do w.sum = w.sum - count end
  end
  return w
end

local function spend(name, windows)
  local set = {}
  local function add(...) for _, word in ipairs({...}) do set[#set + 1] = word end end
  for _, w in ipairs(windows) do
    if w.empty then redis.call('SETRANGE', name, w.at + 16, string.rep('\\0', (w.n + 1) * 4)) end
    for _, bit in ipairs(w.passed) do add('SET', 'u32', bit, 0) end
    add('SET', 'i64', w.at * 8, w.bucket, 'SET', 'i64', w.at * 8 + 64, w.sum + 1)
    add('INCRBY', 'u32', (w.at + 16 + w.bucket % (w.n + 1) * 4) * 8, 1)
  end
  if #set > 0 then redis.call('BITFIELD', name, unpack(set)) end
end

local function wait(w, limit)
  if limit <= 0 then return (w.n + 1) * w.width end
  local left, raw = w.sum, redis.call('GETRANGE', w.name, w.at + 16, w.at + 16 + (w.n + 1) * 4 - 1)
  for b = w.bucket - w.n, w.bucket do
    local from = b % (w.n + 1) * 4
    if b <= w.cursor and #raw >= from + 4 then left = left - struct.unpack('>I4', raw, from + 1) end
    if left < limit then return (b + w.n + 1) * w.width - now end
  end
  return w.width
end
`;
