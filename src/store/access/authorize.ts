import { isRefusalCode, type RefusalCode } from '../../base/errors.ts';
import { slidingWindow } from '../lua/sliding-window.ts';
import { number, type RecordStore, run, type ScriptReply, script, text } from '../script.ts';

/** The account named in the text of an API key, and the hash of that text. */
export interface Caller {
  readonly accountId: string;
  readonly hash: string;
}

/** One of the plan's rate windows after this call. */
interface Rate {
  readonly limit: number;
  readonly left: number;
}

export interface Rates {
  readonly perSecond: Rate | null;
  readonly perMinute: Rate | null;
}

/** A refusal in the record's words; detail names the limit that was reached, or the case of a refusal that has several. */
export interface RefusedCall {
  readonly refused: RefusalCode;
  readonly detail: string;
  readonly retryAfterSeconds: number | null;
  readonly rates: Rates;
}

/** Keys and arguments of every script that authorizes a call. */
export const authorizeKeyNames = ['account', 'key', 'rate', 'plans'] as const;
export const authorizeArgNames = ['accountId'] as const;

/** Fields that a script reads besides those that authorize a call, with spaces between. */
interface AuthorizedFields {
  readonly key?: string;
  readonly account?: string;
}

/**
 * Lua that reads fields of a hash into locals: `key_id` is the field `id` of the hash `key`. Locals, because a call pays for
 * every table, function and number that a script makes.
 */
function readFields(hash: string, names: string): string {
  const fields = names.trim().split(/\s+/);
  const locals = fields.map((field) => `${hash}_${field}`).join(', ');
  return `local ${locals} = unpack(redis.call('HMGET', ${hash}, '${fields.join("', '")}'))`;
}

/**
 * Lua that checks key, account and plan of a call, and the plan's rate (D10); it ends the script with the refusal. Replies are
 * {word, detail, wait in milliseconds, rates, …}; rates are the per-second limit, calls left, the per-minute limit and calls
 * left, with commas between, each '' without one. With `rolls` the script answers {'roll'} when the billing period has ended. Afterwards the named
 * fields are locals such as `key_id` and `account_held`, `plan` is nil without one, and `stamp` is `now` as text.
 *
 * check_rate(calls) → nil, or the refusal where the rate has no room for so many calls, one when nil. Writes nothing.
 * counted_rate(calls) → the new text of the account's field `rate`. Both windows count while the plan limits one, so that a
 *   limit set later finds them true.
 */
export function authorizeLua({ key = '', account = '' }: AuthorizedFields, rolls = false): string {
  return /* lua */ `${slidingWindow}
-- Redis formats a Lua number slowly: what is sent with each call is text.
local stamp = string.format('%d', now)
local rates = ',,,'

local function answer(word, detail, wait) return { word, detail or '', wait or '', rates } end

local function turn_away(word)
  redis.call('HSET', key, 'last_used_at', stamp)
  return answer(word)
end

${readFields('key', `account active expires ${key}`)}
if key_account ~= accountId then return answer('invalid_api_key') end
if key_active ~= '1' then return turn_away('inactive_api_key') end
if key_expires ~= '' and now > tonumber(key_expires) then return turn_away('expired_api_key') end
${readFields('account', `plan suspended removed_at period_end rate ${account}`)}
if account_removed_at ~= '' then return turn_away('invalid_api_key') end
${rolls ? "if account_period_end ~= '' and now >= tonumber(account_period_end) then return { 'roll' } end" : ''}
local plan_json = account_plan ~= '' and redis.call('HGET', plans, account_plan)
local is_whole, plan = true, nil
if plan_json then is_whole, plan = pcall(cjson.decode, plan_json) end
is_whole = is_whole and (not plan or type(plan) == 'table' and type(plan.quota) == 'number')
-- Nothing is known of a damaged plan but what the account has booked of it: its callers go on.
if not is_whole then plan = { quota = tonumber(redis.call('HGET', account, 'quota')) } end
local per_second = plan and type(plan.per_second) == 'number' and plan.per_second
local per_minute = plan and type(plan.per_minute) == 'number' and plan.per_minute
local second, minute

local function check_rate(calls)
  if not per_second and not per_minute then return nil end
  calls = calls or 1
  local a, b, c, d, e, f = string.match(account_rate or '', '(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)')
  second, minute = read_window(rate, 0, 10, 100, a, b, c), read_window(rate, 44, 10, 6000, d, e, f)
  local of_second = per_second and math.max(0, per_second - second.sum) or math.huge
  local of_minute = per_minute and math.max(0, per_minute - minute.sum) or math.huge
  local counted = math.min(of_second, of_minute) < calls and 0 or calls
  rates = (per_second and string.format('%d,%d,', per_second, of_second - counted) or ',,')
    .. (per_minute and string.format('%d,%d', per_minute, of_minute - counted) or ',')
  local second_wait = of_second < calls and wait_of(second, per_second - calls + 1) or 0
  local minute_wait = of_minute < calls and wait_of(minute, per_minute - calls + 1) or 0
  -- Of both the one that lasts longer: its caller would be refused again at the end of the other.
  if minute_wait > second_wait then return answer('rate_limited', 'per-minute', minute_wait) end
  if of_second < calls then return answer('rate_limited', 'per-second', second_wait) end
  return nil
end

local function counted_rate(calls)
  if not second then return account_rate or '' end
  return count_in(second, calls) .. ' ' .. count_in(minute, calls)
end
`;
}

/**
 * Lua that does all of it for a call that costs nothing: marks the key as used (D40) and counts the call, also when the account
 * is suspended (D78). `refusesSuspended` is Lua that is true where a suspended account is refused at once.
 */
export function authorizeFreeLua(fields: AuthorizedFields, rolls = false, refusesSuspended = 'true'): string {
  return /* lua */ `${authorizeLua(fields, rolls)}
redis.call('HSET', key, 'last_used_at', stamp)
local over_rate = check_rate()
if over_rate then return over_rate end
if second then redis.call('HSET', account, 'rate', counted_rate()) end
if account_suspended == '1' and ${refusesSuspended} then return answer('forbidden') end
`;
}

/** Authorizes a free call that reads nothing else. Answers {'entered', '', '', rates, may read statistics} or a refusal. */
const authorizeScript = script('authorize', 'light', authorizeKeyNames, [
  ...authorizeArgNames,
  'mayRepeat',
])`${authorizeFreeLua({ account: 'stats' }, false, "mayRepeat == ''")}
return { 'entered', '', '', rates, account_stats }
`;

/** Authorizes a call that reads nothing else of the record. The admission of one that may be a repeat judges its permission (D10). */
export async function authorize(store: RecordStore, caller: Caller, mayRepeat = false) {
  const reply = await run(store, authorizeScript, { ...caller, mayRepeat });
  return readAuthorized(reply, ([stats]) => ({ mayReadStats: stats === '1' }));
}

/** Judges key and account as they are now, for an answer that goes on; that is no call. Answers {'entered'} or a refusal. */
const keyLastsScript = script('key-lasts', 'light', authorizeKeyNames, authorizeArgNames)`${authorizeLua({})}
return answer(account_suspended == '1' and 'forbidden' or 'entered')
`;

/** Returns true while a call of this key would be let in, however high the rate. */
export async function keyLasts(store: RecordStore, caller: Caller): Promise<boolean> {
  return readRefused(await run(store, keyLastsScript, caller)) === null;
}

/** Reads the reply about a free call: the refusal, or what the script answered behind the rates. */
export function readAuthorized<T extends object>(
  reply: ScriptReply,
  read: (values: ScriptReply) => T,
): (T & { readonly rates: Rates }) | RefusedCall {
  return readRefused(reply) ?? { ...read(reply.slice(4)), rates: readRates(reply) };
}

/** Returns the refusal in a reply, or `null` when the call was let through. */
export function readRefused(reply: ScriptReply): RefusedCall | null {
  const word = text(reply[0]);
  if (!isRefusalCode(word)) return null;
  const wait = number(reply[2]);
  return {
    refused: word,
    detail: text(reply[1]),
    retryAfterSeconds: wait === null ? null : Math.max(1, Math.ceil(wait / 1000)),
    rates: readRates(reply),
  };
}

/** Returns the plan's rate windows, the fourth element of a reply. */
export function readRates([, , , rates]: ScriptReply): Rates {
  const [perSecond, leftOfSecond, perMinute, leftOfMinute] = text(rates).split(',');
  return { perSecond: rateOf(perSecond, leftOfSecond), perMinute: rateOf(perMinute, leftOfMinute) };
}

function rateOf(limit: unknown, left: unknown): Rate | null {
  const max = number(limit);
  return max === null ? null : { limit: max, left: number(left) ?? 0 };
}
