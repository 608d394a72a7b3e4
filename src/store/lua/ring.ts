/** Where the buckets of a window lie in its string, how many full ones it has and how many milliseconds wide they are. */
type Span = readonly [at: number, buckets: number, width: number];

/** The windows of a plan's rate: a second and a minute. */
export const rateSpans: readonly Span[] = [
  [0, 10, 100],
  [44, 10, 6_000],
];
/** The windows of a key's quotas: a month, a week and a day. */
export const quotaSpans: readonly Span[] = [
  [1832, 180, 14_400_000],
  [1156, 168, 3_600_000],
  [0, 288, 300_000],
];

/** Lua for a list of the windows as they stand now, from the text of their heads. It writes nothing. */
export function look(name: string, heads: string, spans: readonly Span[]): string {
  const numbers = spans.map((_, n) => `h${n}, c${n}, s${n}, r${n}`);
  const windows = spans.map((span, n) => `window(${name}, ${span.join(', ')}, h${n}, c${n}, s${n}, r${n})`);
  const pattern = spans.map(() => '((%d+) (%d+) (%d+))').join(' ');
  return `(function(${numbers.join(', ')}) return { ${windows.join(', ')} } end)(string.match(${heads} or '', '${pattern}'))`;
}

/**
 * Rolling windows. A window has n full buckets and the running one, so a call leaves it at most one bucket late and never
 * early. Its head is text that is kept beside other fields: cursor, sum of all buckets, count of the running one. The
 * full buckets are 32 bits each in a string, from byte `at`; it is touched only when the running bucket has passed.
 *
 * spend(windows) counts one call in each window that counts → the text of their heads, which the caller writes.
 * wait(window, limit) → milliseconds until the sum falls below the limit.
 */
export const ring = /* lua */ `
local function count_bit(w, bucket) return string.format('%d', (w.at + bucket % (w.n + 1) * 4) * 8) end

local function window(name, at, n, width, head, cursor, sum, run)
  cursor, sum, run = tonumber(cursor or 0), tonumber(sum or 0), tonumber(run or 0)
  local w = { name = name, at = at, n = n, width = width, cursor = cursor, sum = sum, run = run, counts = true,
    head = head or '0 0 0' }
  local bucket = math.floor(now / width)
  -- A clock that went back counts in the newest bucket; by more than the window, and nothing that was counted can be of use.
  if cursor - bucket > n then w.cursor = 0 end
  w.bucket = math.max(bucket, w.cursor)
  if w.bucket - w.cursor > n then
    w.sum, w.empty = 0, true
  elseif w.bucket > w.cursor then
    local ask = {}
    w.passed = {}
    for b = w.cursor + 1, w.bucket do
      local place = count_bit(w, b)
      w.passed[#w.passed + 1] = place
      ask[#ask + 1], ask[#ask + 2], ask[#ask + 3] = 'GET', 'u32', place
    end
    for _, count in ipairs(redis.call('BITFIELD', name, unpack(ask))) do w.sum = w.sum - count end
  end
  return w
end

local function turn_over(w)
  if w.empty then
    redis.call('SETRANGE', w.name, w.at, string.rep('\\0', (w.n + 1) * 4))
    return
  end
  local set = { 'SET', 'u32', count_bit(w, w.cursor), string.format('%d', w.run) }
  for _, place in ipairs(w.passed) do
    local n = #set
    set[n + 1], set[n + 2], set[n + 3], set[n + 4] = 'SET', 'u32', place, '0'
  end
  redis.call('BITFIELD', w.name, unpack(set))
end

local function spend(windows)
  local heads = {}
  for n, w in ipairs(windows) do
    heads[n] = w.head
    if w.counts then
      local has_passed = w.bucket > w.cursor
      if has_passed then turn_over(w) end
      heads[n] = string.format('%d %d %d', w.bucket, w.sum + 1, has_passed and 1 or w.run + 1)
    end
  end
  return table.concat(heads, ' ')
end

local function wait(w, limit)
  if limit <= 0 then return (w.n + 1) * w.width end
  local left, raw = w.sum, redis.call('GETRANGE', w.name, w.at, w.at + (w.n + 1) * 4 - 1)
  for b = w.bucket - w.n, w.bucket do
    local from = b % (w.n + 1) * 4
    if b == w.cursor then
      left = left - w.run
    elseif b < w.cursor and #raw >= from + 4 then
      left = left - struct.unpack('>I4', raw, from + 1)
    end
    if left < limit then return (b + w.n + 1) * w.width - now end
  end
  return w.width
end
`;
