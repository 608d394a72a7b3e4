import { refuse } from '../../base/errors.ts';
import type { Account } from '../../model/account.ts';
import { keys } from '../keys.ts';
import { number, pairs, type RecordStore, text } from '../script.ts';

/** Returns the id of the account with this slug; throws `not_found`. */
export async function findAccount(store: RecordStore, slug: string): Promise<string> {
  const id = await store.connection.read(['HGET', keys.slugs, slug]);
  if (id === null) throw refuse('not_found', `There is no account ${slug}`);
  return id;
}

/** Returns the id of the account with this slug, else of the last one removed under it: ledgers outlive their accounts. */
export async function findLedgerAccount(store: RecordStore, slug: string): Promise<string> {
  const removed = await store.connection.read(['HGET', keys.removed, slug]);
  const present = await store.connection.read(['HGET', keys.slugs, slug]);
  if (present === null && removed === null) throw refuse('not_found', `There is no account ${slug}`);
  return present ?? text(removed?.split(' ')[0]);
}

/** Returns slug and id of every account, sorted by slug. */
export async function listAccounts(store: Pick<RecordStore, 'connection'>): Promise<[slug: string, id: string][]> {
  const found = pairs(await store.connection.read(['HGETALL', keys.slugs]));
  return Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Returns slug and id of every account that has a ledger, removed accounts included. */
export async function listLedgerAccounts(store: RecordStore): Promise<[slug: string, id: string][]> {
  // Read in this order, an account that is removed meanwhile is in both lists, never in none.
  const present = await listAccounts(store);
  const found = pairs(await store.connection.read(['HGETALL', keys.removed]));
  return [...new Map([...present, ...namedIds(found)].map((one) => [one[1], one])).values()];
}

/** Returns slug and name of these accounts, in one request. */
export async function readNames(store: RecordStore, ids: readonly string[]) {
  const rows = await store.connection.readAll(ids.map((id) => ['HMGET', keys.account(id), 'slug', 'name']));
  return ids.map((id, n) => {
    const [slug, name] = rows[n] as (string | null)[];
    return { id, slug: text(slug), name: text(name) };
  });
}

/** Position in the walk over all accounts that have a ledger. */
export interface AccountCursor {
  readonly list: 'present' | 'removed';
  readonly cursor: string;
}

export const firstAccount: AccountCursor = { list: 'present', cursor: '0' };

/**
 * Returns some 100 accounts that have a ledger and the place of those that follow, `null` at the end. An account that
 * is removed meanwhile, or while Redis makes the table larger, may come twice; none is left out.
 */
export async function listLedgerPage(
  store: RecordStore,
  { list, cursor }: AccountCursor,
): Promise<{ accounts: [slug: string, id: string][]; next: AccountCursor | null }> {
  const key = list === 'present' ? keys.slugs : keys.removed;
  const [behind, flat] = await store.connection.read(['HSCAN', key, cursor, 'COUNT', '100']);
  const accounts = namedIds(pairs(flat));
  if (behind !== '0') return { accounts, next: { list, cursor: behind } };
  return { accounts, next: list === 'present' ? { list: 'removed', cursor: '0' } : null };
}

/** Returns slug and id of each account in a hash of slugs, which may have had several accounts. */
function namedIds(found: Readonly<Record<string, string>>): [slug: string, id: string][] {
  return Object.entries(found).flatMap(([slug, ids]) => ids.split(' ').map((id): [string, string] => [slug, id]));
}

export async function readAccount(store: RecordStore, accountId: string): Promise<Account> {
  const fields = pairs(await store.connection.read(['HGETALL', keys.account(accountId)]));
  if (!fields.id) throw refuse('not_found', 'There is no such account');
  return accountOf(fields);
}

export function accountOf(fields: Readonly<Record<string, string>>): Account {
  return {
    id: text(fields.id),
    slug: text(fields.slug),
    name: text(fields.name),
    plan: fields.plan || null,
    stats: fields.stats === '1',
    invoice: fields.invoice === 'unpaid' ? 'unpaid' : 'paid',
    suspended: fields.suspended === '1',
    concurrency: number(fields.concurrency),
    weight: Number(fields.weight),
    max_open: Number(fields.max_open),
    alerts: fields.alert !== 'off',
    created_at: Number(fields.created_at),
  };
}
