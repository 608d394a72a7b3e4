import { refuse } from '../../base/errors.ts';
import type { Key, Quotas } from '../../model/account.ts';
import { type RecordStore, run, script } from '../script.ts';
import { findKeyHash, readKeyByHash } from './read-keys.ts';

/** Changes fields of a key from the next request on. Answers {'set'} or {'not_found'}. */
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

/** Fields of a key that an operator may change; an absent field keeps its value. */
export interface KeyChange {
  readonly category?: string;
  readonly active?: boolean;
  readonly expires?: number | null;
  readonly quotas?: Partial<Quotas>;
}

export async function setKey(store: RecordStore, accountId: string, alias: string, change: KeyChange): Promise<Key> {
  const hash = await findKeyHash(store, accountId, alias);
  const [word] = await run(store, setKeyScript, { accountId, alias, hash, fields: JSON.stringify(keyFields(change)) });
  if (word !== 'set') throw refuse('not_found', `The account has no key ${alias}`);
  return readKeyByHash(store, hash);
}

/** Returns the fields of the hash: every value is text, `null` is ''. */
export function keyFields(change: KeyChange): Record<string, string> {
  const fields: Record<string, string> = {};
  if (change.category !== undefined) fields.category = change.category;
  if (change.active !== undefined) fields.active = change.active ? '1' : '0';
  if (change.expires !== undefined) fields.expires = change.expires === null ? '' : String(change.expires);
  for (const [window, max] of Object.entries(change.quotas ?? {})) {
    fields[`quota_${window}`] = max === null ? '' : String(max);
  }
  return fields;
}
