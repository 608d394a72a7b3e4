import { type RecordStore, run, script } from '../script.ts';

/**
 * Counts a failed authentication of an address, and blocks the address at `max` failures in the window (D38). A block resets
 * the count; each further block lasts twice as long, up to a day; after a day without a failure the first length holds again.
 * Answers {'counted', failures in the window} or {'blocked', until}.
 */
const failAuthScript = script(
  'fail-auth',
  'needs memory',
  ['failures', 'blocks'] as const,
  ['address', 'max', 'window', 'block', 'blocksChannel'] as const,
  /* lua */ `
local day = 86400000
local seen = redis.call('HMGET', failures, 'times', 'level', 'last')
local level = seen[3] and now - tonumber(seen[3]) < day and tonumber(seen[2]) or 0
local times = {}
for at in string.gmatch(seen[1] or '', '%d+') do
  if now - tonumber(at) < tonumber(window) then times[#times + 1] = at end
end
times[#times + 1] = string.format('%d', now)
local answer = { 'counted', #times }
if #times >= tonumber(max) then
  local until_at = now + math.min(day, tonumber(block) * 2 ^ level)
  redis.call('ZADD', blocks, until_at, address)
  redis.call('PUBLISH', blocksChannel, address)
  times, level = {}, level + 1
  answer = { 'blocked', until_at }
end
redis.call('HSET', failures, 'times', table.concat(times, ' '), 'level', level, 'last', now)
redis.call('PEXPIRE', failures, 2 * day)
return answer
`,
);

/** Limit of failed authentications of an address (D38), and the length of its first block. */
export interface BlockRule {
  readonly maxFailures: number;
  readonly windowMs: number;
  readonly blockMs: number;
}

/** Counts a failed authentication; returns the end of the block that it caused, or `null`. */
export async function countAuthFailure(store: RecordStore, address: string, rule: BlockRule): Promise<number | null> {
  const reply = await run(store, failAuthScript, {
    address,
    max: rule.maxFailures,
    window: rule.windowMs,
    block: rule.blockMs,
  });
  return reply[0] === 'blocked' ? Number(reply[1]) : null;
}
