import { look, rateSpans, ring, spend, waitFor } from './ring.ts';

/** Keys and arguments that every step with the door needs. */
export const doorKeys = ['account', 'key', 'rate', 'plans'] as const;
export const doorArgs = ['accountId'] as const;

/** What a step takes from the hashes of the key and the account, beyond what the door itself reads. */
interface Wanted {
  readonly key?: string;
  readonly account?: string;
  /** Whether a billing period that is over is rolled first, before anything is counted: the step then answers {'roll'}. */
  readonly rolls?: boolean;
}

/**
 * Lua that reads fields of a hash into locals with its name: `key_id` is the field id of the hash key. Locals, text in
 * place of functions and no tables: a step makes all of its functions and tables anew at every call.
 */
function read(hash: string, words: string): string {
  const fields = words.trim().split(/\s+/);
  const locals = fields.map((field) => `${hash}_${field}`).join(', ');
  return `local ${locals} = unpack(redis.call('HMGET', ${hash}, '${fields.join("', '")}'))\n`;
}

/**
 * Who asks (D10 before 429): key, account and plan. A call that is refused ends there, and marks its key as used when that
 * is known (D40). Afterwards: plan (nil without one), is_limited (whether it limits the rate), the
 * rate's windows, stamp (now, as text), limits (per-second limit, left, per-minute limit, left; '' where there is none), and
 * answer(word, detail, wait) for a reply with these. From then on the step marks the key itself.
 */
export function who({ key = '', account = '', rolls = false }: Wanted): string {
  return /* lua */ `${ring}
local limits = { '', '', '', '' }
-- Redis writes a number of Lua in its slowest format: what is sent with each call is text.
local stamp = string.format('%d', now)
local function answer(word, detail, wait) return { word, detail or '', wait or '', unpack(limits) } end
local function turn_away(word)
  redis.call('HSET', key, 'last_used_at', stamp)
  return answer(word)
end
${read('key', `account active expires ${key}`)}
if key_account ~= accountId then return { 'invalid_api_key' } end
if key_active ~= '1' then return turn_away('inactive_api_key') end
if key_expires ~= '' and now > tonumber(key_expires) then return turn_away('expired_api_key') end
${read('account', `plan suspended removed_at period_end rate ${account}`)}
if account_removed_at ~= '' then return turn_away('invalid_api_key') end
${rolls ? "if account_period_end ~= '' and now >= tonumber(account_period_end) then return { 'roll' } end" : ''}
local plan_json = account_plan ~= '' and redis.call('HGET', plans, account_plan)
local plan = plan_json and cjson.decode(plan_json) or nil
local is_limited = plan and (type(plan.per_second) == 'number' or type(plan.per_minute) == 'number')
${look('rate', 'account_rate', rateSpans)}
`;
}

/**
 * Lua that refuses a call whose rate is used up, by the calls before it and those that this step has counted. Both windows
 * are told of, and both are counted while the plan limits one of them: a limit that is set later finds them true.
 */
export function passRate(counted: string): string {
  const windows = [
    ['second', 1],
    ['minute', 3],
  ] as const;
  const look = windows.map(
    ([name, n]) => `if type(plan.per_${name}) == 'number' then
    limits[${n}], limits[${n + 1}] = plan.per_${name}, math.max(0, plan.per_${name} - ${name}_sum - ${counted})
  end
`,
  );
  const pass = windows.map(
    ([name, n]) => `if limits[${n + 1}] == 0 then
    local used = ${name}_sum + ${counted}
    return answer('rate_limited', 'per-${name}', ${waitFor('rate', name, rateSpans[name], 'used', `limits[${n}]`)})
  end
`,
  );
  const leave = windows.map(([, n]) => `if limits[${n}] ~= '' then limits[${n + 1}] = limits[${n + 1}] - 1 end\n`);
  return `if is_limited then\n${look.join('')}${pass.join('')}${leave.join('')}end\n`;
}

/** The door of a call that costs nothing: a call that passes uses up the rate (D78), and a suspended account is refused. */
export function freeDoor(wanted: Wanted): string {
  return /* lua */ `${who(wanted)}
redis.call('HSET', key, 'last_used_at', stamp)
${passRate('0')}
if is_limited then
  local rate_heads
  ${spend('rate', 'rate_heads', rateSpans, '1')}
  redis.call('HSET', account, 'rate', rate_heads)
end
if account_suspended == '1' then return answer('forbidden') end
`;
}
