import { script } from '../script.ts';

/**
 * Deletes a key that no request was ever made with (D40). With force, for a removed account, whatever its history.
 * Answers {'deleted'}, {'not_found'} or {'key_has_history'}.
 */
export const deleteKey = script(
  'delete-key',
  'always',
  ['keyring', 'key', 'quota', 'freeLines', 'paidLines', 'freeDays', 'paidDays'] as const,
  ['alias', 'hash', 'force'] as const,
  /* lua */ `
if redis.call('HGET', keyring, alias) ~= hash then return { 'not_found' } end
if force ~= '1' and redis.call('HGET', key, 'last_used_at') ~= '' then return { 'key_has_history' } end
redis.call('DEL', key, quota, freeLines, paidLines, freeDays, paidDays)
redis.call('HDEL', keyring, alias)
return { 'deleted' }
`,
);
