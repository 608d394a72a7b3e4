import { refuse } from '../../base/errors.ts';
import { type Key, type Quotas, quotaWindows } from '../../model/account.ts';
import { keys } from '../keys.ts';
import { number, pairs, type RecordStore, text } from '../script.ts';

/** Returns the keys of an account, oldest first. */
export async function listKeys(store: RecordStore, accountId: string): Promise<Key[]> {
  const ring = pairs(await store.connection.read(['HGETALL', keys.keyring(accountId)]));
  const found = await store.connection.readAll(Object.values(ring).map((hash) => ['HGETALL', keys.key(hash)]));
  return found
    .map(pairs)
    .filter((fields) => fields.id !== undefined)
    .map(keyOf)
    .sort(oldestFirst);
}

export function oldestFirst(a: Key, b: Key): number {
  return a.created_at - b.created_at || (a.alias < b.alias ? -1 : 1);
}

export function keyOf(fields: Readonly<Record<string, string>>): Key {
  const quotas = Object.fromEntries(
    quotaWindows.map((window) => [window, number(fields[`quota_${window}`])]),
  ) as Quotas;
  return {
    id: text(fields.id),
    account: text(fields.account),
    alias: text(fields.alias),
    category: text(fields.category),
    active: fields.active === '1',
    expires: number(fields.expires),
    quotas,
    created_at: Number(fields.created_at),
    last_used_at: number(fields.last_used_at),
  };
}

export async function findKeyHash(store: RecordStore, accountId: string, alias: string): Promise<string> {
  const hash = await store.connection.read(['HGET', keys.keyring(accountId), alias]);
  if (hash === null) throw refuse('not_found', `The account has no key ${alias}`);
  return hash;
}

/** Returns the key of an alias; throws `not_found`. */
export async function findKey(store: RecordStore, accountId: string, alias: string): Promise<Key> {
  return readKeyByHash(store, await findKeyHash(store, accountId, alias));
}

export async function readKeyByHash(store: RecordStore, hash: string): Promise<Key> {
  return keyOf(pairs(await store.connection.read(['HGETALL', keys.key(hash)])));
}
