import { refuse } from '../base/errors.ts';
import type { Account, Plan } from '../model/account.ts';
import { periodAt } from '../model/period.ts';
import { deleteKey, listKeys } from './keyring.ts';
import { keys } from './keys.ts';
import { bookKeys, rolling } from './period.ts';
import { number, pairs, run, type Store, text } from './script.ts';
import { createAccount as createAccountScript } from './scripts/create-account.ts';
import { removeAccount as removeAccountScript } from './scripts/remove-account.ts';
import { removePlan as removePlanScript } from './scripts/remove-plan.ts';
import { setAccount as setAccountScript } from './scripts/set-account.ts';
import { setPlan as setPlanScript } from './scripts/set-plan.ts';

/** What an operator may change of an account; what is not named stays. */
export interface AccountChange {
  readonly name?: string;
  readonly plan?: string | null;
  readonly stats?: boolean;
  readonly invoice?: 'paid' | 'unpaid';
  readonly suspended?: boolean;
  readonly concurrency?: number | null;
  readonly weight?: number;
  readonly max_open?: number;
  /** Sealed. */
  readonly webhook_secret?: string | null;
}

const fresh: Required<Omit<AccountChange, 'name' | 'plan'>> = {
  stats: false,
  invoice: 'paid',
  suspended: false,
  concurrency: null,
  weight: 1,
  max_open: 10_000,
  webhook_secret: null,
};

/** All plans, by name. */
export async function listPlans(store: Store): Promise<Plan[]> {
  const found = pairs(await store.connection.read(['HGETALL', keys.plans], keys.plans));
  return Object.values(found)
    .map((json) => JSON.parse(json) as Plan)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

export async function readPlan(store: Store, name: string): Promise<Plan | null> {
  const json = await store.connection.read(['HGET', keys.plans, name], keys.plans);
  return json === null ? null : (JSON.parse(String(json)) as Plan);
}

export async function setPlan(store: Store, plan: Plan): Promise<void> {
  await run(store, setPlanScript, { plans: keys.plans }, { plan: plan.name, json: JSON.stringify(plan) });
}

/** Removes a plan; refuses when it is unknown or an account has it. */
export async function removePlan(store: Store, name: string): Promise<void> {
  const [word] = await run(store, removePlanScript, { plans: keys.plans, planUsers: keys.planUsers }, { plan: name });
  if (word === 'not_found') throw refuse('not_found', `There is no plan ${name}`);
  if (word === 'in_use') throw refuse('in_use', `The plan ${name} is still the plan of an account`);
}

/** Creates an account; refuses when the slug is taken or the plan unknown. */
export async function createAccount(
  store: Store,
  id: string,
  slug: string,
  wanted: AccountChange & { name: string },
): Promise<Account> {
  const plan = wanted.plan ?? '';
  const period = periodAt(store.clock.now(), store.clock.now());
  const [word] = await run(
    store,
    createAccountScript,
    { ...bookKeys(id), slugs: keys.slugs, planUsers: keys.planUsers, periods: keys.periods },
    {
      accountId: id,
      slug,
      plan,
      fields: JSON.stringify(fieldsOf({ ...fresh, ...wanted })),
      start: period.start,
      finish: period.end,
    },
  );
  if (word === 'already_exists') throw refuse('already_exists', `An account ${slug} exists already`);
  if (word === 'no_plan') throw refuse('not_found', `There is no plan ${plan}`);
  return readAccount(store, id);
}

/** Changes what is named of an account and answers it. */
export async function setAccount(store: Store, id: string, change: AccountChange): Promise<Account> {
  const plan = change.plan === undefined ? '' : (change.plan ?? '-');
  const period = periodAt(store.clock.now(), store.clock.now());
  const [word] = await rolling(store, id, () =>
    run(
      store,
      setAccountScript,
      {
        ...bookKeys(id),
        queue: keys.queue(id),
        ready: keys.ready,
        turn: keys.turn,
        planUsers: keys.planUsers,
        periods: keys.periods,
      },
      {
        accountId: id,
        plan,
        fields: JSON.stringify(fieldsOf(change)),
        start: period.start,
        finish: period.end,
      },
    ),
  );
  if (word === 'no_plan') throw refuse('not_found', `There is no plan ${change.plan}`);
  if (word === 'not_found') throw refuse('not_found', 'There is no such account');
  return readAccount(store, id);
}

/** Removes an account without open jobs and purchases, and its keys; its record and ledger stay. */
export async function removeAccount(store: Store, id: string, slug: string): Promise<void> {
  const [word] = await run(
    store,
    removeAccountScript,
    {
      account: keys.account(id),
      open: keys.open(id),
      slugs: keys.slugs,
      removed: keys.removed,
      leaving: keys.leaving,
      planUsers: keys.planUsers,
      periods: keys.periods,
      ready: keys.ready,
      topup: keys.topup(id),
      purchases: keys.purchases,
    },
    { accountId: id, slug },
  );
  if (word === 'in_use') throw refuse('in_use', 'A purchase of the account is under way: try again when it has ended');
  if (word !== 'removed') throw refuse(word === 'has_open_jobs' ? 'has_open_jobs' : 'not_found');
  await deleteKeys(store, id);
}

/** Deletes the keys of accounts whose removal broke off after its first step; answers how many accounts there were. */
export async function finishRemovals(store: Store): Promise<number> {
  const leaving = (await store.connection.read(['SMEMBERS', keys.leaving], keys.leaving)) as string[];
  for (const id of leaving) await deleteKeys(store, id);
  return leaving.length;
}

async function deleteKeys(store: Store, id: string): Promise<void> {
  for (const { alias } of await listKeys(store, id)) await deleteKey(store, id, alias, true);
  await store.connection.read(['SREM', keys.leaving, id], keys.leaving);
}

/** Id of the account with this slug; refuses when there is none. */
export async function findAccount(store: Store, slug: string): Promise<string> {
  const id = await store.connection.read(['HGET', keys.slugs, slug], keys.slugs);
  if (id === null) throw refuse('not_found', `There is no account ${slug}`);
  return String(id);
}

/** Like findAccount, but also finds the account that was removed last: its ledger stays. */
export async function findLedger(store: Store, slug: string): Promise<string> {
  const removed = await store.connection.read(['HGET', keys.removed, slug], keys.removed);
  const present = await store.connection.read(['HGET', keys.slugs, slug], keys.slugs);
  if (present === null && removed === null) throw refuse('not_found', `There is no account ${slug}`);
  return String(present ?? idsIn(removed)[0]);
}

/** Slugs and ids of all accounts, by slug. */
export async function listAccounts(store: Store): Promise<[slug: string, id: string][]> {
  const found = pairs(await store.connection.read(['HGETALL', keys.slugs], keys.slugs));
  return Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Slugs and ids of all accounts that have a ledger, also of removed ones. */
export async function listLedgers(store: Store): Promise<[slug: string, id: string][]> {
  // Read first: who is removed meanwhile is in both lists, not in none.
  const present = await listAccounts(store);
  const found = pairs(await store.connection.read(['HGETALL', keys.removed], keys.removed));
  const removed = Object.entries(found).flatMap(([slug, ids]) => idsIn(ids).map((id): [string, string] => [slug, id]));
  return [...new Map([...present, ...removed].map((one) => [one[1], one])).values()];
}

function idsIn(removed: unknown): string[] {
  return String(removed).split(' ');
}

export async function readAccount(store: Store, id: string): Promise<Account> {
  const fields = pairs(await store.connection.read(['HGETALL', keys.account(id)], keys.account(id)));
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

/** Values of a hash: everything is text, nothing is ''. */
function fieldsOf(change: AccountChange): Record<string, string> {
  const { plan: _, ...rest } = change;
  const fields: Record<string, string> = {};
  for (const [name, value] of Object.entries(rest)) {
    if (value === undefined) continue;
    fields[name] = value === null ? '' : typeof value === 'boolean' ? (value ? '1' : '0') : String(value);
  }
  return fields;
}
