import { refuse } from '../../base/errors.ts';
import type { Key, Quotas } from '../../model/account.ts';
import { keys } from '../keys.ts';
import { type RecordStore, run, script } from '../script.ts';
import { findKeyHash, readKeyByHash } from './read-keys.ts';

/** Changes fields of a key; they hold for the next request. Answers {'set'} or {'not_found'}. */
const setKeyScript = script(
  'set-key',
  'always',
  ['keyring', 'key'] as const,
  ['alias', 'hash', 'fields'] as const,
  /* lua */ `
if redis.call('HGET', keyring, alias) ~= hash then return { 'not_found' } end
for name, value in pairs(cjson.decode(fields)) do redis.call('HSET', key, name, value) end
return { 'set' }
`,
);

/** What may be changed of a key; what is not named stays. */
export interface KeyChange {
  readonly category?: string;
  readonly active?: boolean;
  readonly expires?: number | null;
  readonly quotas?: Partial<Quotas>;
}

/** Changes what is named of a key; it holds for the next request. */
export async function setKey(store: RecordStore, account: string, alias: string, change: KeyChange): Promise<Key> {
  const hash = await findKeyHash(store, account, alias);
  const [word] = await run(
    store,
    setKeyScript,
    { keyring: keys.keyring(account), key: keys.key(hash) },
    { alias, hash, fields: JSON.stringify(keyFields(change)) },
  );
  if (word !== 'set') throw refuse('not_found', `The account has no key ${alias}`);
  return readKeyByHash(store, hash);
}

/** Values of a hash: everything is text, nothing is ''. */
export function keyFields(change: KeyChange): Record<string, string> {
  const fields: Record<string, string> = {};
  if (change.category !== undefined) fields.category = change.category;
  if (change.active !== undefined) fields.active = change.active ? '1' : '0';
  if (change.expires !== undefined) fields.expires = change.expires === null ? '' : String(change.expires);
  for (const [window, most] of Object.entries(change.quotas ?? {})) {
    fields[`quota_${window}`] = most === null ? '' : String(most);
  }
  return fields;
}
