/** Where a window lies in its string, how many full buckets it has and how many milliseconds wide they are. */
type Span = readonly [at: number, buckets: number, width: number];

/** The windows of a plan's rate: a second and a minute. */
export const rateSpans: readonly Span[] = [
  [0, 10, 100],
  [64, 10, 6_000],
];
/** The windows of a key's quotas: a month, a week and a day. */
export const quotaSpans: readonly Span[] = [
  [1872, 180, 14_400_000],
  [1176, 168, 3_600_000],
  [0, 288, 300_000],
];

/** Lua for a list of the windows of a string as they stand now. It asks for all in one command, and writes nothing. */
export function look(name: string, spans: readonly Span[]): string {
  const heads = spans.flatMap(([at]) => [at * 8, at * 8 + 64]).map((bit) => `'GET', 'i64', '${bit}'`);
  const windows = spans.map(
    (span, n) => `window(${name}, ${span.join(', ')}, heads[${2 * n + 1}], heads[${2 * n + 2}])`,
  );
  return `(function(heads) return { ${windows.join(', ')} } end)(redis.call('BITFIELD', ${name}, ${heads.join(', ')}))`;
}

/**
 * Rolling windows in one string. A window has n full buckets and the running one, so a call leaves it at most one
 * bucket late and never early. Its sum is kept beside the buckets: looking costs the same however full it is.
 * Layout at byte `at`: cursor (64 bits), sum (64 bits), n + 1 counts (32 bits each).
 *
 * spend(name, windows) counts one call in each of them.
 * wait(window, limit) → milliseconds until the sum falls below the limit.
 */
export const ring = /* lua */ `
-- Redis writes a number of Lua in its slowest format: what is sent with each call is text.
local function bit(byte) return string.format('%d', byte * 8) end

local function count_bit(w, bucket) return bit(w.at + 16 + bucket % (w.n + 1) * 4) end

local function window(name, at, n, width, cursor, sum)
  local w = { name = name, at = at, n = n, width = width, cursor = cursor, sum = sum, passed = {} }
  local bucket = math.floor(now / width)
  -- A clock that went back counts in the newest bucket; by more than the window, and nothing that was counted can be of use.
  if cursor - bucket > n then w.cursor = 0 end
  w.bucket = math.max(bucket, w.cursor)
  if w.bucket - w.cursor > n then
    w.sum, w.empty = 0, true
  elseif w.bucket > w.cursor then
    local ask = {}
    for b = w.cursor + 1, w.bucket do
      local place = count_bit(w, b)
      w.passed[#w.passed + 1] = place
      ask[#ask + 1], ask[#ask + 2], ask[#ask + 3] = 'GET', 'u32', place
    end
    for _, count in ipairs(redis.call('BITFIELD', name, unpack(ask))) do w.sum = w.sum - count end
  end
  return w
end

local function spend(name, windows)
  local set, n = {}, 0
  local function add(verb, type, place, value)
    set[n + 1], set[n + 2], set[n + 3], set[n + 4] = verb, type, place, value
    n = n + 4
  end
  for _, w in ipairs(windows) do
    if w.empty then redis.call('SETRANGE', name, w.at + 16, string.rep('\\0', (w.n + 1) * 4)) end
    for _, place in ipairs(w.passed) do add('SET', 'u32', place, '0') end
    if w.bucket == w.cursor then
      add('INCRBY', 'i64', bit(w.at + 8), '1')
    else
      add('SET', 'i64', bit(w.at), w.bucket)
      add('SET', 'i64', bit(w.at + 8), w.sum + 1)
    end
    add('INCRBY', 'u32', count_bit(w, w.bucket), '1')
  end
  if n > 0 then redis.call('BITFIELD', name, unpack(set)) end
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
