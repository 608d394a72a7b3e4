import { script } from '../script.ts';

/**
 * Reads the money of one account at one moment. Answers {'read', fields of the account, fields of the packs, how many of
 * its jobs and synchronous calls are open, the newest of its ledger's moved days or ''}.
 */
export const readBooks = script(
  'read-books',
  'always',
  ['account', 'packs', 'open', 'calls', 'days'] as const,
  ['accountId'] as const,
  /* lua */ `
local in_hand = redis.call('ZCARD', open)
for _, member in ipairs(redis.call('ZRANGE', calls, 0, -1)) do
  if string.sub(member, 1, #accountId + 1) == accountId .. '/' then in_hand = in_hand + 1 end
end
return { 'read', redis.call('HGETALL', account), redis.call('HGETALL', packs), in_hand,
  redis.call('LINDEX', days, -1) or '' }
`,
);
