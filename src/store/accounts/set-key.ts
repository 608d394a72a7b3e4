import { refuse } from '../../base/errors.ts';
import type { Key, Quotas } from '../../model/account.ts';
import { noteArgNames, noteChange, noteKeyNames, noteOf, requireNoted } from '../lua/note-change.ts';
import { hashTexts, type RecordStore, run, script } from '../script.ts';
import { expiryMember, watchExpiry } from './key-expiry.ts';
import { findKeyHash, readKeyByHash } from './read-keys.ts';

/** Changes fields of a key from the next request on. Answers {'set'} or {'not_found'}. */
const setKeyScript = script(
  'set-key',
  'always',
  ['keyring', 'key', 'expiringKeys', ...noteKeyNames] as const,
  ['alias', 'hash', 'fields', 'member', ...noteArgNames] as const,
  /* lua */ `${noteChange}${watchExpiry}
if redis.call('HGET', keyring, alias) ~= hash then return { 'not_found' } end
if note_change() then return { 'audit_full' } end
for name, value in pairs(cjson.decode(fields)) do redis.call('HSET', key, name, value) end
watch_expiry(member, redis.call('HGET', key, 'expires'))
return { 'set' }
`,
);

/** Fields of a key that an operator may change; an absent field keeps its value. */
export interface KeyChange extends Partial<Pick<Key, 'category' | 'active' | 'expires'>> {
  readonly quotas?: Partial<Quotas>;
}

export async function setKey(store: RecordStore, accountId: string, alias: string, change: KeyChange): Promise<Key> {
  const hash = await findKeyHash(store, accountId, alias);
  const noted = noteOf(store, accountId, { action: 'key.change', target: alias, change });
  const fields = JSON.stringify(keyFields(change));
  const reply = await run(store, setKeyScript, {
    accountId,
    alias,
    hash,
    fields,
    member: expiryMember(accountId, hash),
    ...noted,
  });
  requireNoted(reply);
  if (reply[0] !== 'set') throw refuse('not_found', `The account has no key ${alias}`);
  return readKeyByHash(store, hash);
}

export function keyFields({ category, active, expires, quotas = {} }: KeyChange): Record<string, string> {
  const windows = Object.entries(quotas).map(([window, max]) => [`quota_${window}`, max]);
  return hashTexts({ category, active, expires, ...Object.fromEntries(windows) });
}
