import { outboxKeyNames, outboxLua } from '../lua/outbox.ts';
import { type RecordStore, run, script } from '../script.ts';

/** Owners are told so long before a key expires. */
const aheadMs = 7 * 86_400_000;

/**
 * watch_expiry(member, expires): notes when owners are to be told that a key expires; one that expires sooner than in a week was given that
 * end on purpose. Repeatable.
 */
export const watchExpiry = /* lua */ `
local function watch_expiry(member, expires)
  local at = (tonumber(expires or '') or 0) - ${aheadMs}
  if at > now then redis.call('ZADD', expiringKeys, string.format('%d', at), member) else redis.call('ZREM', expiringKeys, member) end
end
`;

/**
 * Leaves the mail about a key that expires in a week. A key that is gone, inactive or without an end is forgotten, and one whose end has
 * moved is told of later. Answers {'told'}, {'dropped'}, {'moved'} or {'early'}.
 */
const tellExpiryScript = script(
  'tell-expiry',
  'always',
  ['expiringKeys', 'key', ...outboxKeyNames],
  ['accountId', 'member'],
)`${outboxLua}${watchExpiry}
local due = redis.call('ZSCORE', expiringKeys, member)
if not due or now < tonumber(due) then return { 'early' } end
undos[#undos + 1] = function() redis.pcall('ZADD', expiringKeys, due, member) end
local known = redis.call('HMGET', key, 'expires', 'active', 'alias')
local ends = tonumber(known[1] or '')
if not ends or known[2] ~= '1' or ends <= now then
  redis.call('ZREM', expiringKeys, member)
  return { 'dropped' }
end
if ends - ${aheadMs} > now then
  watch_expiry(member, known[1])
  return { 'moved' }
end
put_mail('key-' .. member, { kind = 'key', account = accountId, alias = known[3], expires = ends })
redis.call('ZREM', expiringKeys, member)
return { 'told' }
`;

export function expiryMember(accountId: string, hash: string): string {
  return `${accountId}/${hash}`;
}

/** Tells the owners of an account that a key expires; returns false when it is too early. */
export async function tellExpiry(store: RecordStore, member: string): Promise<boolean> {
  const [accountId = '', hash = ''] = member.split('/');
  const [word] = await run(store, tellExpiryScript, { accountId, hash, member });
  return word !== 'early';
}
