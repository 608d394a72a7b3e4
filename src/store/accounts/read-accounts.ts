import { refuse } from '../../base/errors.ts';
import type { Account } from '../../model/account.ts';
import { keys } from '../keys.ts';
import { number, pairs, type RecordStore, text } from '../script.ts';

/** Id of the account with this slug; refuses when there is none. */
export async function findAccount(store: RecordStore, slug: string): Promise<string> {
  const id = await store.connection.read(['HGET', keys.slugs, slug]);
  if (id === null) throw refuse('not_found', `There is no account ${slug}`);
  return String(id);
}

/** Like findAccount, but also finds the account that was removed last: its ledger stays. */
export async function findLedgerAccount(store: RecordStore, slug: string): Promise<string> {
  const removed = await store.connection.read(['HGET', keys.removed, slug]);
  const present = await store.connection.read(['HGET', keys.slugs, slug]);
  if (present === null && removed === null) throw refuse('not_found', `There is no account ${slug}`);
  return String(present ?? idsIn(removed)[0]);
}

/** Slugs and ids of all accounts, by slug. */
export async function listAccounts(store: RecordStore): Promise<[slug: string, id: string][]> {
  const found = pairs(await store.connection.read(['HGETALL', keys.slugs]));
  return Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Slugs and ids of all accounts that have a ledger, also of removed ones. */
export async function listLedgerAccounts(store: RecordStore): Promise<[slug: string, id: string][]> {
  // Read first: who is removed meanwhile is in both lists, not in none.
  const present = await listAccounts(store);
  const found = pairs(await store.connection.read(['HGETALL', keys.removed]));
  const removed = Object.entries(found).flatMap(([slug, ids]) => idsIn(ids).map((id): [string, string] => [slug, id]));
  return [...new Map([...present, ...removed].map((one) => [one[1], one])).values()];
}

function idsIn(removed: unknown): string[] {
  return String(removed).split(' ');
}

export async function readAccount(store: RecordStore, id: string): Promise<Account> {
  const fields = pairs(await store.connection.read(['HGETALL', keys.account(id)]));
  if (!fields.id) throw refuse('not_found', 'There is no such account');
  return accountOf(fields);
}

/** The account in the fields of its hash. */
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
    created_at: Number(fields.created_at),
  };
}
