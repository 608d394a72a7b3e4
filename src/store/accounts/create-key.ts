import { randomBytes } from 'node:crypto';
import { refuse } from '../../base/errors.ts';
import { quotaWindows } from '../../model/account.ts';
import { makeKey, readKey } from '../../model/api-key.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { notedScript, type RecordStore, runNoted } from '../script.ts';
import { expiryMember, watchExpiry } from './key-expiry.ts';
import { type KeyChange, keyFields } from './set-key.ts';

/** Answers {'created'}, {'already_exists'}, {'too_many'} or {'not_found'}. */
const createKeyScript = notedScript(
  'create-key',
  'needs memory',
  ['account', 'keyring', 'key', 'expiringKeys'],
  ['accountId', 'alias', 'hash', 'fields', 'member'],
)`${watchExpiry}
if redis.call('HGET', account, 'removed_at') ~= '' then return { 'not_found' } end
if redis.call('HEXISTS', keyring, alias) == 1 or redis.call('EXISTS', key) == 1 then return { 'already_exists' } end
if redis.call('HLEN', keyring) >= ${recordLimits.keysOfAccount} then return { 'too_many' } end
if note_change() then return { 'audit_full' } end
local flat = { 'account', accountId, 'alias', alias, 'created_at', now, 'last_used_at', '', 'total', 0 }
for name, value in pairs(cjson.decode(fields)) do flat[#flat + 1], flat[#flat + 2] = name, value end
undos[#undos + 1] = function() redis.pcall('DEL', key) end
redis.call('HSET', key, unpack(flat))
watch_expiry(member, cjson.decode(fields).expires)
redis.call('HSET', keyring, alias, hash)
return { 'created' }
`;

/** Makes the text of a new key of an account, with its id and its hash. */
export function newKey(accountId: string): { readonly key: string; readonly id: string; readonly hash: string } {
  const key = makeKey(accountId, randomBytes(32));
  const { keyId: id, hash } = readKey(key)!;
  return { key, id, hash };
}

const defaults: Required<Omit<KeyChange, 'quotas'>> = { category: '', active: true, expires: null };
const noQuotas = Object.fromEntries(quotaWindows.map((window) => [window, null]));

/** Creates a key; the record keeps the hash of its text alone. Throws `already_exists` for an alias that is taken, or `too_many`. */
export async function createKey(
  store: RecordStore,
  accountId: string,
  made: KeyChange & { id: string; alias: string; hash: string },
): Promise<void> {
  const { id, alias, hash, category, active, expires, quotas } = made;
  // Named one by one: a caller that spreads what `newKey` returns would have the text of the key kept.
  const change = { category, active, expires, quotas } satisfies Record<keyof KeyChange, unknown>;
  const fields = { ...keyFields({ ...defaults, quotas: noQuotas }), ...keyFields(change) };
  const values = {
    ...{ accountId, alias, hash, member: expiryMember(accountId, hash) },
    fields: JSON.stringify({ id, ...fields }),
  };
  const note = { accountId, action: 'key.create', target: alias, change } as const;
  const [word] = await runNoted(store, createKeyScript, values, note);
  if (word === 'already_exists') throw refuse('already_exists', `The account has a key ${alias} already`);
  if (word === 'too_many') {
    const most = `An account has at most ${recordLimits.keysOfAccount} keys`;
    throw refuse('too_many', `${most}: delete one that was never used, or make another account`);
  }
  if (word === 'not_found') throw refuse('not_found', 'There is no such account');
}
