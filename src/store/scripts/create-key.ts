import { script } from '../script.ts';

/** Creates an API key under an alias that is free. Answers {'created'}, {'already_exists'} or {'not_found'}. */
export const createKey = script(
  'create-key',
  'needs room',
  ['account', 'keyring', 'key'] as const,
  ['accountId', 'alias', 'hash', 'fields'] as const,
  /* lua */ `
if redis.call('HGET', account, 'removed_at') ~= '' then return { 'not_found' } end
if redis.call('HEXISTS', keyring, alias) == 1 or redis.call('EXISTS', key) == 1 then return { 'already_exists' } end
local flat = { 'account', accountId, 'alias', alias, 'created_at', now, 'last_used_at', '', 'total', 0 }
for name, value in pairs(cjson.decode(fields)) do flat[#flat + 1], flat[#flat + 2] = name, value end
redis.call('HSET', key, unpack(flat))
redis.call('HSET', keyring, alias, hash)
return { 'created' }
`,
);
