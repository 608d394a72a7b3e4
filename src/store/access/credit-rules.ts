import { fairShareKeyNames } from '../lua/fair-share.ts';
import { countOpenJobs } from '../lua/job-index.ts';
import { quotaHeads, quotaRanges, readQuotaHeads } from '../lua/sliding-window.ts';
import { authorizeKeyNames } from './authorize.ts';

/** Fields that the admission of credits reads besides those that authorize a call. */
export const creditFields = {
  key: 'id total quota_total quota_monthly quota_weekly quota_daily windows',
  account: 'invoice used packs_left credits_given credits_consumed held running concurrency max_open tag',
} as const;

export const admissionKeyNames = [
  ...authorizeKeyNames,
  ...fairShareKeyNames.filter((key) => key !== 'account'),
  ...(['quota', 'drain', 'jobs', 'openWork', 'repeats'] as const),
] as const;

/** Arguments that `creditRules` judges a call or a batch by; `judgedValues` in `admit-call.ts` returns them. */
export const judgedArgNames = ['valid', 'isOpen', 'repeatKey', 'request', 'otherwise'] as const;

/** Time after which one of many open jobs has usually ended. */
const openJobsWaitMs = 5000;

/** The rolling quotas of the key, as arguments of `read_window`. */
const month = `quota, ${quotaRanges.month}, ${quotaHeads.month}`;
const week = `quota, ${quotaRanges.week}, ${quotaHeads.week}`;
const day = `quota, ${quotaRanges.day}, ${quotaHeads.day}`;

/** Lua of the new text of the key's field `windows`, with the wanted credits. */
export const countedWindows = [month, week, day].map((window) => `counted_in(${window}, wanted)`).join(" .. ' ' .. ");

/**
 * Lua that judges whether an authorized call may hold `wanted` credits. It needs the keys `quota` and `repeats` and what is named
 * in `judgedArgNames`.
 *
 * repeat_of() → the answer to an earlier call with the same Idempotency-Key, or nil (D12).
 * refusal(opened) → the refusal of a call that would open so many jobs, in the order of D10, or nil. One that is not refused has set
 *   `last_turn` for `update_ready`: it is read with the drain.
 */
export const creditRules = /* lua */ `
local held = tonumber(account_held)
local keptMs = 86400000
${readQuotaHeads('key_windows')}

local function repeat_of()
  if repeatKey == '' then return nil end
  local old = redis.call('HMGET', repeats, 'id', 'until', 'request', 'answer')
  if not old[1] or now >= tonumber(old[2]) then return nil end
  if old[3] ~= request and old[3] ~= otherwise then return answer('idempotency_conflict', 'request') end
  if old[4] == 'running' then return answer('idempotency_conflict', 'running') end
  return answer('repeated', old[1], old[4])
end

local function wait_for(window, limit)
  if window.sum + wanted <= limit then return nil end
  -- A batch above the limit never fits, however long its caller waits.
  return (wanted == 1 or wanted <= limit) and wait_of(window, limit - wanted + 1) or math.huge
end

local function quota_refusal()
  if key_quota_total ~= '' and tonumber(key_total) + wanted > tonumber(key_quota_total) then
    return answer('key_quota_exceeded', 'total')
  end
  local monthly = key_quota_monthly ~= '' and wait_for(read_window(${month}), tonumber(key_quota_monthly))
  local weekly = key_quota_weekly ~= '' and wait_for(read_window(${week}), tonumber(key_quota_weekly))
  local daily = key_quota_daily ~= '' and wait_for(read_window(${day}), tonumber(key_quota_daily))
  local name = monthly and 'monthly' or weekly and 'weekly' or daily and 'daily'
  if not name then return nil end
  local longest = math.max(monthly or 0, weekly or 0, daily or 0)
  return answer('key_quota_exceeded', name, longest < math.huge and longest or nil)
end

local function credits_left()
  return math.max(0, (plan and plan.quota or 0) - tonumber(account_used)) + tonumber(account_packs_left)
    + tonumber(account_credits_given) - tonumber(account_credits_consumed) - held
end

local last_turn
local function is_draining()
  local seen = redis.call('MGET', drain, turn)
  last_turn = seen[2] or '0'
  return seen[1]
end

local function refusal(opened)
  if account_suspended == '1' then return answer('forbidden') end
  local over_quota = quota_refusal()
  if over_quota then return over_quota end
  if valid ~= '1' then return answer('bad_request') end
  if account_invoice ~= 'paid' or credits_left() < wanted then return answer('payment_required') end
  -- Each open job holds a credit, so there are never more open jobs than holds.
  local max_open = tonumber(account_max_open)
  if opened > 0 and held + opened > max_open and ${countOpenJobs} + opened > max_open then
    -- More than the limit at once never fit, however long the caller waits.
    return answer('rate_limited', 'open-jobs', opened <= max_open and ${openJobsWaitMs} or nil)
  end
  if is_draining() then return answer('draining') end
  if isOpen ~= '1' then return answer('unavailable') end
end
`;
