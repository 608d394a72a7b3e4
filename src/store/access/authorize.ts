import { isRefusalCode, type RefusalCode } from '../../base/errors.ts';
import { keys } from '../keys.ts';
import { slidingWindow } from '../lua/sliding-window.ts';
import { number, type RecordStore, run, type ScriptReply, script, text } from '../script.ts';

/** The account named in the text of an API key, and the hash of that text. */
export interface Caller {
  readonly accountId: string;
  readonly hash: string;
}

/** One of the plan's rate windows after this call. */
export interface Rate {
  readonly limit: number;
  readonly left: number;
}

export interface Rates {
  readonly perSecond: Rate | null;
  readonly perMinute: Rate | null;
}

/** A refusal in the record's words; detail names the quota or the rate that was reached. */
export interface RefusedCall {
  readonly refused: RefusalCode;
  readonly detail: string;
  readonly retryAfterSeconds: number | null;
  readonly rates: Rates;
}

/** Keys and arguments of every script that authorizes a call. */
export const authorizeKeyNames = ['account', 'key', 'rate', 'plans'] as const;
export const authorizeArgNames = ['accountId'] as const;

export function authorizeKeys(caller: Caller) {
  return {
    account: keys.account(caller.accountId),
    key: keys.key(caller.hash),
    rate: keys.rate(caller.accountId),
    plans: keys.plans,
  };
}

/**
 * Lua that checks key, account and plan of a call, and the plan's rate (D10). Replies are {word, detail, wait in
 * milliseconds, rates, …}; rates are the per-second limit, calls left, the per-minute limit, calls left, each '' without one.
 *
 * authenticate(key_fields, account_fields, rolls) → nil, or the refusal; with `rolls` {'roll'} when the billing period has
 *   ended. Afterwards `api_key` and `owner` have the named fields, and `plan` is nil without one.
 * check_rate() → nil, or the refusal of a call whose rate is used up. Writes nothing.
 * count_rate() counts the call; both windows count while the plan limits one, so that a limit set later finds them true.
 * mark_used() marks the key as used (D40).
 * authorize_free_call(…) does all of it for a call that costs nothing: → nil, or the refusal. It counts in the rate also when
 *   the account is suspended (D78).
 */
export const authorizeLua = /* lua */ `${slidingWindow}
-- Redis formats a Lua number slowly: what is sent with each call is text.
local stamp = string.format('%d', now)
local rates = { '', '', '', '' }
local api_key, owner, plan, plan_json, rate_windows

local function answer(word, detail, wait) return { word, detail or '', wait or '', rates } end

local function mark_used() redis.call('HSET', key, 'last_used_at', stamp) end

local function turn_away(word)
  mark_used()
  return answer(word)
end

local function read_fields(hash, ...)
  local fields, names = {}, { ... }
  for n, value in ipairs(redis.call('HMGET', hash, ...)) do fields[names[n]] = value end
  return fields
end

local function authenticate(key_fields, account_fields, rolls)
  api_key = read_fields(key, 'account', 'active', 'expires', unpack(key_fields))
  if api_key.account ~= accountId then return answer('invalid_api_key') end
  if api_key.active ~= '1' then return turn_away('inactive_api_key') end
  if api_key.expires ~= '' and now > tonumber(api_key.expires) then return turn_away('expired_api_key') end
  owner = read_fields(account, 'plan', 'suspended', 'removed_at', 'period_end', 'rate', unpack(account_fields))
  if owner.removed_at ~= '' then return turn_away('invalid_api_key') end
  if rolls and owner.period_end ~= '' and now >= tonumber(owner.period_end) then return { 'roll' } end
  plan_json = owner.plan ~= '' and redis.call('HGET', plans, owner.plan)
  plan = plan_json and cjson.decode(plan_json) or nil
  return nil
end

local function check_rate()
  local limits = plan and { plan.per_second, plan.per_minute } or {}
  for n = 1, 2 do if type(limits[n]) ~= 'number' then limits[n] = nil end end
  if not limits[1] and not limits[2] then return nil end
  rate_windows = read_windows(rate, owner.rate, { { 0, 10, 100 }, { 44, 10, 6000 } })
  for n, window in ipairs(rate_windows) do
    if limits[n] then rates[2 * n - 1], rates[2 * n] = limits[n], math.max(0, limits[n] - window.sum) end
  end
  for n, name in ipairs({ 'per-second', 'per-minute' }) do
    if rates[2 * n] == 0 then return answer('rate_limited', name, wait_of(rate_windows[n], limits[n])) end
  end
  for n = 1, 2 do if limits[n] then rates[2 * n] = rates[2 * n] - 1 end end
  return nil
end

local function count_rate()
  if rate_windows then redis.call('HSET', account, 'rate', count_in_windows(rate_windows)) end
end

local function authorize_free_call(key_fields, account_fields, rolls)
  local refused = authenticate(key_fields, account_fields, rolls)
  if refused then return refused end
  mark_used()
  refused = check_rate()
  if refused then return refused end
  count_rate()
  if owner.suspended == '1' then return answer('forbidden') end
  return nil
end
`;

/** Authorizes a free call that reads nothing else. Answers {'entered', '', '', rates, may read statistics} or a refusal. */
const enterScript = script(
  'enter',
  'always',
  authorizeKeyNames,
  authorizeArgNames,
  /* lua */ `${authorizeLua}
local refused = authorize_free_call({}, { 'stats' })
if refused then return refused end
return { 'entered', '', '', rates, owner.stats }
`,
);

/** Authorizes a free call that reads nothing else of the record. */
export async function authorize(
  store: RecordStore,
  caller: Caller,
): Promise<{ rates: Rates; mayReadStats: boolean } | RefusedCall> {
  const reply = await run(store, enterScript, authorizeKeys(caller), { accountId: caller.accountId });
  return readRefused(reply) ?? { rates: readRates(reply), mayReadStats: reply[4] === '1' };
}

/** Returns the refusal in a reply, or `null` when the call was let through. */
export function readRefused(reply: ScriptReply): RefusedCall | null {
  const [word, detail, waitMs] = reply.map(text);
  if (!isRefusalCode(word)) return null;
  const wait = number(waitMs);
  return {
    refused: word,
    detail: detail ?? '',
    retryAfterSeconds: wait === null ? null : Math.max(1, Math.ceil(wait / 1000)),
    rates: readRates(reply),
  };
}

/** Returns the plan's rate windows, the fourth element of a reply. */
export function readRates([, , , rates]: ScriptReply): Rates {
  const [perSecond, leftOfSecond, perMinute, leftOfMinute] = rates as readonly unknown[];
  return { perSecond: rateOf(perSecond, leftOfSecond), perMinute: rateOf(perMinute, leftOfMinute) };
}

function rateOf(limit: unknown, left: unknown): Rate | null {
  const most = number(limit);
  return most === null ? null : { limit: most, left: number(left) ?? 0 };
}
