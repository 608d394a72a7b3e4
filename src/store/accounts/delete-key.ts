import { refuse } from '../../base/errors.ts';
import { notedScript, type RecordStore, runNoted } from '../script.ts';
import { findKeyHash, readKeyByHash } from './read-keys.ts';

/**
 * Deletes a key that was never used (D40), or with force, for a removed account, any key.
 * Answers {'deleted'}, {'not_found'} or {'key_has_history'}.
 */
const deleteKeyScript = notedScript(
  'delete-key',
  'always',
  ['keyring', 'key', 'quota', 'freeLines', 'paidLines', 'lineStreams', 'freeDays', 'paidDays'],
  ['alias', 'hash', 'force'],
)`
if redis.call('HGET', keyring, alias) ~= hash then return { 'not_found' } end
if force ~= '1' and redis.call('HGET', key, 'last_used_at') ~= '' then return { 'key_has_history' } end
if note_change() then return { 'audit_full' } end
undos[#undos + 1] = function() redis.pcall('HSET', keyring, alias, hash) end
redis.call('ZREM', lineStreams, freeLines, paidLines)
redis.call('HDEL', keyring, alias)
redis.call('DEL', key, quota, freeLines, paidLines, freeDays, paidDays)
return { 'deleted' }
`;

/** Throws `key_has_history` for a used key unless forced. */
export async function deleteKey(store: RecordStore, accountId: string, alias: string, force = false): Promise<void> {
  const hash = await findKeyHash(store, accountId, alias);
  const { id } = await readKeyByHash(store, hash);
  const values = { accountId, keyId: id, alias, hash, force };
  const [word] = await runNoted(store, deleteKeyScript, values, { accountId, action: 'key.delete', target: alias });
  if (word !== 'deleted') throw refuse(word === 'key_has_history' ? 'key_has_history' : 'not_found');
}
