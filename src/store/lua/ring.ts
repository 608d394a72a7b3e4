/** Where the buckets of a window lie in its string, how many full ones it has and how many milliseconds wide they are. */
type Span = readonly [at: number, buckets: number, width: number];

/** The windows of a plan's rate: a second and a minute. */
export const rateSpans = { second: [0, 10, 100], minute: [44, 10, 6_000] } as const;
/** The windows of a key's quotas: a month, a week and a day. */
export const quotaSpans = {
  monthly: [1832, 180, 14_400_000],
  weekly: [1156, 168, 3_600_000],
  daily: [0, 288, 300_000],
} as const;
type Spans = Readonly<Record<string, Span>>;

/**
 * Rolling windows. A window has n full buckets and the running one, so a call leaves it at most one bucket late and never
 * early. Its head is text that is kept beside other fields: cursor, sum of all buckets, count of the running one. The
 * full buckets are 32 bits each in a string, from byte `at`; it is touched only when the running bucket has passed.
 */
export const ring = /* lua */ `
-- The clock has left a window's bucket → its cursor, present bucket and sum, and what is to be written when it counts.
local function move(name, at, n, cursor, bucket, sum, run)
  -- A clock that went back counts in the newest bucket; by more than the window, and nothing that was counted can be of use.
  if cursor - bucket > n then cursor = 0 end
  if bucket <= cursor then return cursor, cursor, sum, nil end
  if bucket - cursor > n then return cursor, bucket, 0, {} end
  local function bit(b) return string.format('%d', (at + b % (n + 1) * 4) * 8) end
  local ask, set = {}, { 'SET', 'u32', bit(cursor), string.format('%d', run) }
  for b = cursor + 1, bucket do
    local place, asks, sets = bit(b), #ask, #set
    ask[asks + 1], ask[asks + 2], ask[asks + 3] = 'GET', 'u32', place
    set[sets + 1], set[sets + 2], set[sets + 3], set[sets + 4] = 'SET', 'u32', place, '0'
  end
  for _, count in ipairs(redis.call('BITFIELD', name, unpack(ask))) do sum = sum - count end
  return cursor, bucket, sum, set
end

-- Writes the buckets that have passed.
local function turn_over(name, at, n, set)
  if #set == 0 then redis.call('SETRANGE', name, at, string.rep('\\0', (n + 1) * 4))
  else redis.call('BITFIELD', name, unpack(set)) end
end

-- Milliseconds until what is used of a window falls below the limit.
local function wait(name, at, n, width, cursor, bucket, used, run, limit, now)
  if limit <= 0 then return (n + 1) * width end
  local left, raw = used, redis.call('GETRANGE', name, at, at + (n + 1) * 4 - 1)
  for b = bucket - n, bucket do
    local from = b % (n + 1) * 4
    if b == cursor then
      left = left - run
    elseif b < cursor and #raw >= from + 4 then
      left = left - struct.unpack('>I4', raw, from + 1)
    end
    if left < limit then return (b + n + 1) * width - now end
  end
  -- The rest was counted by this step, in the present bucket.
  return (bucket + n + 1) * width - now
end
`;

/** Lua that reads windows, from the text of their heads, into locals such as `daily_sum`. It writes nothing. */
export function look(key: string, heads: string, spans: Spans): string {
  const names = Object.keys(spans);
  const heading = names.map((name) => `${name}_cursor, ${name}_sum, ${name}_run`).join(', ');
  const pattern = names.map(() => '(%d+) (%d+) (%d+)').join(' ');
  const windows = Object.entries(spans).map(([name, [at, n, width]]) => {
    const [cursor, bucket, sum, run] = ['cursor', 'bucket', 'sum', 'run'].map((word) => `${name}_${word}`);
    return /* lua */ `
${cursor}, ${sum}, ${run} = tonumber(${cursor} or 0), tonumber(${sum} or 0), tonumber(${run} or 0)
local ${bucket}, ${name}_passed = math.floor(now / ${width}), nil
if ${bucket} ~= ${cursor} then
  ${cursor}, ${bucket}, ${sum}, ${name}_passed = move(${key}, ${at}, ${n}, ${cursor}, ${bucket}, ${sum}, ${run})
end`;
  });
  return `local ${heading} = string.match(${heads} or '', '${pattern}')${windows.join('')}\n`;
}

/** Lua that counts calls in windows and keeps the new text of their heads in a local. */
export function spend(key: string, local: string, spans: Spans, counted: string): string {
  const names = Object.keys(spans);
  const turns = Object.entries(spans).map(
    ([name, [at, n]]) => `if ${name}_passed then turn_over(${key}, ${at}, ${n}, ${name}_passed) ${name}_run = 0 end\n`,
  );
  const format = names.map(() => '%d %d %d').join(' ');
  const heads = names.map((name) => `${name}_bucket, ${name}_sum + ${counted}, ${name}_run + ${counted}`).join(', ');
  return `${turns.join('')}${local} = string.format('${format}', ${heads})\n`;
}

/** Lua for the milliseconds until a window of which so much is used lets another call through. */
export function waitFor(key: string, name: string, [at, n, width]: Span, used: string, limit: string): string {
  return `wait(${key}, ${at}, ${n}, ${width}, ${name}_cursor, ${name}_bucket, ${used}, ${name}_run, ${limit}, now)`;
}
