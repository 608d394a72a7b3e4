import { refuse } from '../base/errors.ts';
import { type Key, type Quotas, quotaWindows } from '../model/account.ts';
import { keys } from './keys.ts';
import { number, pairs, run, type Store, text } from './script.ts';
import { createKey as createKeyScript } from './scripts/create-key.ts';
import { deleteKey as deleteKeyScript } from './scripts/delete-key.ts';
import { setKey as setKeyScript } from './scripts/set-key.ts';

/** What may be changed of a key; what is not named stays. */
export interface KeyChange {
  readonly category?: string;
  readonly active?: boolean;
  readonly expires?: number | null;
  readonly quotas?: Partial<Quotas>;
}

/** Creates a key from the hash of its text; refuses when the alias is taken. */
export async function createKey(
  store: Store,
  account: string,
  made: KeyChange & { id: string; alias: string; hash: string },
): Promise<void> {
  const fields = { category: '', active: true, expires: null, quotas: {}, ...made };
  const [word] = await run(
    store,
    createKeyScript,
    { account: keys.account(account), keyring: keys.keyring(account), key: keys.key(made.hash) },
    {
      accountId: account,
      alias: made.alias,
      hash: made.hash,
      fields: JSON.stringify({ id: made.id, ...unset, ...fieldsOf(fields) }),
    },
  );
  if (word === 'already_exists') throw refuse('already_exists', `The account has a key ${made.alias} already`);
  if (word === 'not_found') throw refuse('not_found', 'There is no such account');
}

/** Changes what is named of a key; it holds for the next request. */
export async function setKey(store: Store, account: string, alias: string, change: KeyChange): Promise<Key> {
  const hash = await hashOf(store, account, alias);
  const [word] = await run(
    store,
    setKeyScript,
    { keyring: keys.keyring(account), key: keys.key(hash) },
    { alias, hash, fields: JSON.stringify(fieldsOf(change)) },
  );
  if (word !== 'set') throw refuse('not_found', `The account has no key ${alias}`);
  return readKeyRecord(store, hash);
}

/** Deletes a key that was never used; with force, for a removed account, any key. */
export async function deleteKey(store: Store, account: string, alias: string, force = false): Promise<void> {
  const hash = await hashOf(store, account, alias);
  const { id } = await readKeyRecord(store, hash);
  const [word] = await run(
    store,
    deleteKeyScript,
    {
      keyring: keys.keyring(account),
      key: keys.key(hash),
      quota: keys.quota(hash),
      freeLines: keys.freeLines(id),
      paidLines: keys.paidLines(id),
      freeDays: keys.freeDays(id),
      paidDays: keys.paidDays(id),
    },
    { alias, hash, force: force ? '1' : '' },
  );
  if (word !== 'deleted') throw refuse(word === 'key_has_history' ? 'key_has_history' : 'not_found');
}

/** All keys of an account, oldest first. */
export async function listKeys(store: Store, account: string): Promise<Key[]> {
  const ring = pairs(await store.connection.read(['HGETALL', keys.keyring(account)], keys.keyring(account)));
  const found = await store.connection.batch(
    Object.values(ring).map((hash) => ({ key: keys.key(hash), command: ['HGETALL', keys.key(hash)] })),
  );
  return found
    .map(pairs)
    .filter((fields) => fields.id !== undefined)
    .map(keyOf)
    .sort((a, b) => a.created_at - b.created_at || (a.alias < b.alias ? -1 : 1));
}

/** The key in the fields of its hash. */
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

async function hashOf(store: Store, account: string, alias: string): Promise<string> {
  const hash = await store.connection.read(['HGET', keys.keyring(account), alias], keys.keyring(account));
  if (hash === null) throw refuse('not_found', `The account has no key ${alias}`);
  return String(hash);
}

async function readKeyRecord(store: Store, hash: string): Promise<Key> {
  return keyOf(pairs(await store.connection.read(['HGETALL', keys.key(hash)], keys.key(hash))));
}

const unset = Object.fromEntries(quotaWindows.map((window) => [`quota_${window}`, '']));

/** Values of a hash: everything is text, nothing is ''. */
function fieldsOf(change: KeyChange): Record<string, string> {
  const fields: Record<string, string> = {};
  if (change.category !== undefined) fields.category = change.category;
  if (change.active !== undefined) fields.active = change.active ? '1' : '0';
  if (change.expires !== undefined) fields.expires = change.expires === null ? '' : String(change.expires);
  for (const [window, most] of Object.entries(change.quotas ?? {})) {
    fields[`quota_${window}`] = most === null ? '' : String(most);
  }
  return fields;
}
