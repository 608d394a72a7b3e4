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

/** Lua that refuses a call whose rate is used up. */
function passRate(name: keyof typeof rateSpans, from: number): string {
  const [limit, left] = [`plan.per_${name}`, `limits[${from + 1}]`];
  return /* lua */ `if type(${limit}) == 'number' then
  limits[${from}], ${left} = ${limit}, math.max(0, ${limit} - ${name}_sum - 1)
  if ${name}_sum >= ${limit} then
    ${left} = 0
    return refuse('rate_limited', 'per-${name}', ${waitFor('rate', name, rateSpans[name], limit)})
  end
end
`;
}

/**
 * The door: who asks, and how often (D10 up to 429). A key that is known is marked as used, whatever is answered (D40);
 * a call that passes the rate uses it up (D78).
 *
 * A call that is refused ends there. Afterwards: plan (nil without one), stamp (now, as text), limits ({per-second limit,
 * left, per-minute limit, left}, '' where there is none), refuse(word, detail, wait) for further refusals, and what \`mark\`
 * is to write: a step that writes the same hashes itself does that in its place, with rate_heads (nil when no rate counts).
 */
export function door({ key = '', account = '', rolls = false }: Wanted): string {
  return /* lua */ `${ring}
local limits = { '', '', '', '' }
-- Redis writes a number of Lua in its slowest format: what is sent with each call is text.
local stamp = string.format('%d', now)
local rate_heads
local function mark()
  redis.call('HSET', key, 'last_used_at', stamp)
  if rate_heads then redis.call('HSET', account, 'rate', rate_heads) end
end
local function refuse(word, detail, wait)
  mark()
  return { word, detail or '', wait or '', unpack(limits) }
end
${read('key', `account active expires ${key}`)}
if key_account ~= accountId then return { 'invalid_api_key' } end
if key_active ~= '1' then return refuse('inactive_api_key') end
if key_expires ~= '' and now > tonumber(key_expires) then return refuse('expired_api_key') end
${read('account', `plan suspended removed_at period_end rate ${account}`)}
if account_removed_at ~= '' then return refuse('invalid_api_key') end
${rolls ? "if account_period_end ~= '' and now >= tonumber(account_period_end) then return { 'roll' } end" : ''}
local plan_json = account_plan ~= '' and redis.call('HGET', plans, account_plan)
local plan = plan_json and cjson.decode(plan_json) or nil
if plan and (type(plan.per_second) == 'number' or type(plan.per_minute) == 'number') then
  ${look('rate', 'account_rate', rateSpans)}
  ${passRate('second', 1)}
  ${passRate('minute', 3)}
  ${spend('rate', 'rate_heads', rateSpans)}
end
`;
}

/** The door of a call that costs nothing: also refuses a suspended account, and writes its marks. */
export function freeDoor(wanted: Wanted): string {
  return /* lua */ `${door(wanted)}
if account_suspended == '1' then return refuse('forbidden') end
mark()
`;
}
