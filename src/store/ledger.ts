import { refuse } from '../base/errors.ts';
import type { Account, Key, Plan } from '../model/account.ts';
import type { Job } from '../model/job.ts';
import { beginReplay, differences, type Entry, type Opening } from '../model/ledger.ts';
import type { Books, Pack } from '../model/money.ts';
import { type Caller, doorKeys, type Rates, type Refused, readRates, readRefused } from './access/authorize.ts';
import { accountOf } from './accounts.ts';
import {
  beginning,
  type Closing,
  type Days,
  listDays,
  newestDays,
  type OpenDays,
  type Origin,
  readNewest,
  readOldest,
} from './days.ts';
import { keyOf } from './keyring.ts';
import { keys } from './keys.ts';
import { bookKeys, rolling, rollPeriod } from './period.ts';
import { number, pairs, run, type Store, text } from './script.ts';
import { addPack as addPackScript } from './scripts/add-pack.ts';
import { grant as grantScript } from './scripts/grant.ts';
import { readBooks } from './scripts/read-books.ts';
import { usage as usageScript } from './scripts/usage.ts';

const pageEntries = 1000;

/**
 * Grants credits to an account, with the reason for its ledger, and answers its credits. With an id it may be repeated:
 * that grants nothing more.
 */
export async function grantCredits(
  store: Store,
  account: string,
  amount: number,
  { reason = '', id = '' }: { readonly reason?: string | undefined; readonly id?: string | undefined } = {},
): Promise<{ given: number; consumed: number }> {
  const reply = await rolling(store, account, () =>
    run(
      store,
      grantScript,
      { ...bookKeys(account), grants: keys.grants(account) },
      { accountId: account, amount, reason, id },
    ),
  );
  if (reply[0] === 'conflict') throw refuse('already_exists', `Another number of credits was added with the id ${id}`);
  if (reply[0] !== 'granted') throw refuse('not_found', 'There is no such account');
  return { given: Number(reply[1]), consumed: Number(reply[2]) };
}

/** Adds a pack; adding the same id again changes nothing. */
export async function addPack(store: Store, account: string, pack: Omit<Pack, 'used'>): Promise<void> {
  const { id, title, purchased_at, total } = pack;
  const [word] = await rolling(store, account, () =>
    run(store, addPackScript, bookKeys(account), {
      accountId: account,
      id,
      json: JSON.stringify({ title, purchased_at, total }),
      total,
      purchasedAt: purchased_at,
    }),
  );
  if (word === 'not_found') throw refuse('not_found', 'There is no such account');
}

/** An account with all its numbers at one moment. */
export interface Snapshot {
  readonly account: Account;
  readonly plan: Plan | null;
  readonly books: Books;
}

export type CallerSnapshot = (Snapshot & { readonly key: Key; readonly rates: Rates }) | Refused;

/** Judges the caller and reads the usage of its account, in one call. */
export async function readUsage(store: Store, caller: Caller): Promise<CallerSnapshot> {
  const reply = await rolling(store, caller.account, () =>
    run(store, usageScript, { ...doorKeys(caller), packs: keys.packs(caller.account) }, { accountId: caller.account }),
  );
  const refused = readRefused(reply);
  if (refused) return refused;
  const plan = reply[10] ? (JSON.parse(text(reply[10])) as Plan) : null;
  const fields = pairs(reply[7]);
  return {
    account: accountOf(fields),
    plan,
    books: { ...booksOf(fields, pairs(reply[8])), quota: plan?.quota ?? 0 },
    key: keyOf(pairs(reply[9])),
    rates: readRates(reply),
  };
}

/** The same for the operator: the plan's quota as it holds now. */
export async function readSnapshot(store: Store, account: string): Promise<Snapshot> {
  let seen = await readRaw(store, account);
  const ends = number(seen.fields.period_end);
  if (ends !== null && ends <= store.clock.now() && (await rollPeriod(store, account)))
    seen = await readRaw(store, account);
  const json = seen.fields.plan
    ? await store.connection.read(['HGET', keys.plans, seen.fields.plan], keys.plans)
    : null;
  const plan = json === null ? null : (JSON.parse(String(json)) as Plan);
  const booked = booksOf(seen.fields, seen.packs);
  return { account: accountOf(seen.fields), plan, books: { ...booked, quota: plan?.quota ?? 0 } };
}

/** The ledger of an account as what is moved to the object store when its days have ended. */
export function ledgerOf(account: string): Origin<Entry> {
  return {
    kind: 'ledger',
    id: account,
    stream: keys.ledger(account),
    list: keys.ledgerDays(account),
    read: entryOf,
  };
}

/** Newest entries of the ledger first; those that were moved too, where they can be opened. */
export function readLedger(store: Store, account: string, limit: number, open?: OpenDays): Promise<Entry[]> {
  return readNewest(store, ledgerOf(account), limit, open);
}

/** The entry that a job has made in its account's ledger; `null` when it has moved no money. */
export async function findEntry(store: Store, job: Pick<Job, 'id' | 'account' | 'created_at'>): Promise<Entry | null> {
  const key = keys.ledger(job.account);
  for (let before = '+'; ; ) {
    const page = (await store.connection.read(['XREVRANGE', key, before, '-', 'COUNT', '1000'], key)) as [
      string,
      string[],
    ][];
    const entries = page.map(([id, flat]) => entryOf(id, pairs(flat)));
    const found = entries.find((entry) => entry.job === job.id);
    const last = entries.at(-1);
    if (found || last === undefined || last.at < job.created_at) return found ?? null;
    before = `(${last.entry}`;
  }
}

/** What `ledger verify` finds in one account: how many entries, and a sentence for each difference. */
export interface Verified {
  readonly entries: number;
  readonly problems: readonly string[];
}

/**
 * Replays an account's ledger page by page and compares every balance, and its holds with its open jobs and calls. The
 * numbers are read in one step and name the last entry that they contain, so money may go on moving meanwhile. It begins
 * with the first entry of all where moved ones can be opened, else with the balances after the last one that was moved.
 */
export async function verifyLedger(store: Store, account: string, open?: OpenDays): Promise<Verified> {
  for (;;) {
    const seen = await readRaw(store, account);
    const verified = await verifyRaw(store, account, seen, open);
    // Entries that were moved meanwhile may be missing in what was replayed.
    if ((await newestDays(store, ledgerOf(account)))?.last === seen.moved?.last) return verified;
  }
}

async function verifyRaw(store: Store, account: string, seen: Raw, open?: OpenDays): Promise<Verified> {
  const origin = ledgerOf(account);
  let replaying = beginReplay(open ? undefined : openingOf(seen.moved?.closing));
  const problems: string[] = [];
  let entries = 0;
  const take = (page: readonly Entry[]) => {
    entries += page.length;
    replaying.take(page);
  };
  for (const { object, closing } of open ? await listDays(store, origin) : []) {
    const page = (await open?.(object)) as readonly Entry[] | null;
    if (page !== null) take(page);
    else {
      problems.push(...replaying.balances().problems, `Its entries in ${object} are not in the object store`);
      replaying = beginReplay(openingOf(closing));
    }
  }
  const last = text(seen.fields.last_entry);
  for (let behind = beginning; last !== ''; ) {
    const page = await readOldest(store, origin, pageEntries, { behind, last });
    take(page);
    if (page.length < pageEntries) break;
    behind = page.at(-1)?.entry ?? last;
  }
  const books = booksOf(seen.fields, seen.packs);
  problems.push(...differences(replaying.balances(), books, { holds: seen.open }));
  const left = books.packs.reduce((sum, pack) => sum + pack.total - pack.used, 0);
  const counted = Number(seen.fields.packs_left);
  if (counted !== left)
    problems.push(`What is left of all packs is ${left}, but ${counted} is what admission counts on`);
  return { entries, problems };
}

/** Balances from JSON; nothing where no entry was moved. */
export function openingOf(closing: Closing | undefined): Opening | undefined {
  return closing && { ...closing, packs: new Map(closing.packs) };
}

interface Raw {
  readonly fields: Record<string, string>;
  readonly packs: Record<string, string>;
  /** Open jobs and synchronous calls in hand. */
  readonly open: number;
  /** What was moved of its ledger last. */
  readonly moved: Days | null;
}

async function readRaw(store: Store, account: string): Promise<Raw> {
  const reply = await run(
    store,
    readBooks,
    {
      account: keys.account(account),
      packs: keys.packs(account),
      open: keys.open(account),
      calls: keys.calls,
      days: keys.ledgerDays(account),
    },
    { accountId: account },
  );
  const fields = pairs(reply[1]);
  if (fields.id === undefined) throw refuse('not_found', 'There is no such account');
  const moved = reply[4] ? (JSON.parse(text(reply[4])) as Days) : null;
  return { fields, packs: pairs(reply[2]), open: Number(reply[3]), moved };
}

/** Money in the fields of an account and its packs. */
function booksOf(fields: Readonly<Record<string, string>>, packs: Readonly<Record<string, string>>): Books {
  return {
    quota: Number(fields.quota),
    used: Number(fields.used),
    period_start: number(fields.period_start),
    period_end: number(fields.period_end),
    packs: Object.entries(packs)
      .filter(([name]) => !name.startsWith('used:'))
      .map(([id, json]) => ({
        ...(JSON.parse(json) as Omit<Pack, 'id' | 'used'>),
        id,
        used: Number(packs[`used:${id}`]),
      })),
    credits_given: Number(fields.credits_given),
    credits_consumed: Number(fields.credits_consumed),
    held: Number(fields.held),
  };
}

function entryOf(id: string, fields: Readonly<Record<string, string>>): Entry {
  return {
    at: Number(fields.at),
    entry: id,
    kind: fields.kind as Entry['kind'],
    balance: fields.balance as Entry['balance'],
    amount: Number(fields.amount),
    job: fields.job || null,
    pack: fields.pack || null,
    ...(fields.reason ? { reason: fields.reason } : {}),
  };
}
