import { recordLimits } from '../../model/record-limits.ts';
import { ageArgNames, ageValues, beforeAge } from '../lua/age.ts';
import { type RecordStore, run, script } from '../script.ts';

/**
 * Counts a failed authentication of an address, and blocks the address at `max` failures in the window (D38). A block resets
 * the count; each further block lasts twice as long, up to a day; after a day without a failure the first length holds again.
 * Answers {'counted', failures in the window} or {'blocked', failures in the window, until}.
 */
const countAuthFailureScript = script(
  'count-auth-failure',
  'needs memory',
  ['failures', 'failing', 'blocks'],
  ['address', 'max', 'window', 'block', 'maxFailing', 'maxBlocked', 'blocksChannel'],
)`
local day = 86400000
local known = redis.call('HGET', failures, address)
local seen, last, old = string.match(known or '', '^(%d+) (%d+)(.*)$')
-- A time in the future is of one before the clock went back.
local function is_within(at, span)
  local age = now - tonumber(at)
  return age >= 0 and age < span
end
local level = last and is_within(last, day) and tonumber(seen) or 0
local times = {}
for at in string.gmatch(old or '', '%d+') do
  if is_within(at, tonumber(window)) then times[#times + 1] = at end
end
local stamp = string.format('%d', now)
times[#times + 1] = stamp
local answer = { 'counted', #times }
undos[1] = function()
  if known then redis.pcall('HSET', failures, address, known) else redis.pcall('HDEL', failures, address) end
end
if #times >= tonumber(max) then
  local until_at = now + math.min(day, tonumber(block) * 2 ^ level)
  redis.call('ZADD', blocks, until_at, address)
  if redis.call('ZCARD', blocks) > tonumber(maxBlocked) then redis.call('ZPOPMIN', blocks) end
  redis.call('PUBLISH', blocksChannel, address)
  answer = { 'blocked', #times, until_at }
  times, level = {}, level + 1
end
redis.call('HSET', failures, address, string.format('%d %s ', level, stamp) .. table.concat(times, ' '))
redis.call('ZADD', failing, stamp, address)
if redis.call('ZCARD', failing) > tonumber(maxFailing) then
  redis.call('HDEL', failures, redis.call('ZPOPMIN', failing)[1])
end
return answer
`;

const pageSize = 100;

/** Forgets up to 100 addresses whose last failure has reached an age. Answers {'forgotten', how many}. */
const forgetFailuresScript = script('forget-failures', 'always', ['failures', 'failing'], ageArgNames)`${beforeAge}
local old = redis.call('ZRANGEBYSCORE', failing, '-inf', string.format('%.0f', before), 'LIMIT', 0, ${pageSize})
if #old == 0 then return { 'forgotten', 0 } end
redis.call('HDEL', failures, unpack(old))
redis.call('ZREM', failing, unpack(old))
return { 'forgotten', #old }
`;

/** Limit of failed authentications of an address (D38), and the length of its first block. */
export interface BlockRule {
  readonly maxFailures: number;
  readonly windowMs: number;
  readonly blockMs: number;
}

/** Counts a failed authentication; returns how many the window has, and the end of the block that it caused, or `null`. */
export async function countAuthFailure(
  store: RecordStore,
  address: string,
  rule: BlockRule,
  {
    failingAddresses,
    blockedAddresses,
  }: Readonly<Record<'failingAddresses' | 'blockedAddresses', number>> = recordLimits,
): Promise<{ failures: number; until: number | null }> {
  const reply = await run(store, countAuthFailureScript, {
    address,
    max: rule.maxFailures,
    window: rule.windowMs,
    block: rule.blockMs,
    maxFailing: failingAddresses,
    maxBlocked: blockedAddresses,
  });
  return { failures: Number(reply[1]), until: reply[0] === 'blocked' ? Number(reply[2]) : null };
}

/** Forgets the addresses whose last failure has reached an age; returns how many. */
export async function forgetFailures(store: RecordStore, ageMs: number): Promise<number> {
  for (let done = 0; ; ) {
    const [, forgotten] = await run(store, forgetFailuresScript, ageValues(store, ageMs));
    done += Number(forgotten);
    if (Number(forgotten) < pageSize) return done;
  }
}

/** Forgets blocks that have ended. Answers {'forgotten', how many}. */
const forgetBlocksScript = script('forget-blocks', 'always', ['blocks'], ageArgNames)`${beforeAge}
return { 'forgotten', redis.call('ZREMRANGEBYSCORE', blocks, '-inf', string.format('%.0f', before)) }
`;

/** Forgets the blocks of addresses that have ended; returns how many. */
export async function forgetBlocks(store: RecordStore): Promise<number> {
  return Number((await run(store, forgetBlocksScript, ageValues(store, 0)))[1]);
}
