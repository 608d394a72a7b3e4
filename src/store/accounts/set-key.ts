import { refuse } from '../../base/errors.ts';
import type { Key, Quotas } from '../../model/account.ts';
import { hashTexts, notedScript, type RecordStore, runNoted } from '../script.ts';
import { expiryMember, watchExpiry } from './key-expiry.ts';
import { findKeyHash, readKeyByHash } from './read-keys.ts';

/** Changes fields of a key from the next request on. Answers {'set'} or {'not_found'}. */
const setKeyScript = notedScript(
  'set-key',
  'always',
  ['keyring', 'key', 'expiringKeys'],
  ['alias', 'hash', 'fields', 'member'],
)`${watchExpiry}
if redis.call('HGET', keyring, alias) ~= hash then return { 'not_found' } end
if note_change() then return { 'audit_full' } end
for name, value in pairs(cjson.decode(fields)) do redis.call('HSET', key, name, value) end
watch_expiry(member, redis.call('HGET', key, 'expires'))
return { 'set' }
`;

/** Fields of a key that an operator may change; an absent field keeps its value. */
export interface KeyChange extends Partial<Omit<Key, FixedField | 'quotas'>> {
  readonly quotas?: Partial<Quotas>;
}

type FixedField = 'id' | 'account' | 'alias' | 'created_at' | 'last_used_at';

/** Throws `not_found` for an unknown key. A change without a field leaves no entry in the audit log. */
export async function setKey(store: RecordStore, accountId: string, alias: string, change: KeyChange): Promise<Key> {
  const hash = await findKeyHash(store, accountId, alias);
  const fields = keyFields(change);
  if (Object.keys(fields).length === 0) return readKeyByHash(store, hash);
  const values = { accountId, alias, hash, fields: JSON.stringify(fields), member: expiryMember(accountId, hash) };
  const note = { accountId, action: 'key.change', target: alias, change } as const;
  const [word] = await runNoted(store, setKeyScript, values, note);
  if (word !== 'set') throw refuse('not_found', `The account has no key ${alias}`);
  return readKeyByHash(store, hash);
}

export function keyFields({ category, active, expires, quotas = {} }: KeyChange): Record<string, string> {
  const fields = { category, active, expires } satisfies Record<Exclude<keyof KeyChange, 'quotas'>, unknown>;
  const windows = Object.entries(quotas).map(([window, max]) => [`quota_${window}`, max]);
  return hashTexts({ ...fields, ...Object.fromEntries(windows) });
}
