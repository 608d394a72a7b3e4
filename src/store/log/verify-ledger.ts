import { beginReplay, differences, type LedgerEntry, type Opening } from '../../model/ledger.ts';
import type { AccountBalances } from '../../model/money.ts';
import { parseBalances, type RawBalances, readRawBalances } from '../money/read-balances.ts';
import { type RecordStore, text } from '../script.ts';
import {
  type ArchivedPart,
  beforeFirstEntry,
  type ClosingBalances,
  DamagedPart,
  listArchivedParts,
  newestArchivedPart,
  type ReadArchivedPart,
  readOldestEntries,
} from './archived-parts.ts';
import { ledgerStream } from './read-ledger.ts';

/** A few milliseconds of work, so that calls beside the check wait for little also where the processor is shared. */
const pageEntries = 500;

/**
 * Replays an account's ledger and compares every balance, the holds with the open jobs and calls, and the charges with what completed. The balances name
 * the last entry that they contain, so money may move meanwhile. The replay begins with the first entry of all where
 * `open` reads archived ones, else with the balances after the last archived one.
 */
export async function verifyLedger(store: RecordStore, accountId: string, open?: ReadArchivedPart) {
  for (;;) {
    const seen = await readRawBalances(store, accountId);
    const newest = seen.newestPart ? (JSON.parse(seen.newestPart) as ArchivedPart) : null;
    const verified = await verifyRaw(store, accountId, seen, newest, open);
    // Entries that were archived meanwhile may be missing in the replay: it runs again.
    if ((await newestArchivedPart(store, ledgerStream(accountId)))?.last === newest?.last) return verified;
  }
}

async function verifyRaw(
  store: RecordStore,
  accountId: string,
  seen: RawBalances,
  newest: ArchivedPart | null,
  open?: ReadArchivedPart,
) {
  const origin = ledgerStream(accountId);
  let replaying = beginReplay(open ? undefined : openingBalances(newest?.closing));
  const problems: string[] = [];
  let entries = 0;
  const take = (page: readonly LedgerEntry[]) => {
    entries += page.length;
    replaying.take(page);
  };
  for (const { object, closing } of open ? await listArchivedParts(store, origin) : []) {
    const page = (await open?.(object).catch(damageOf)) as readonly LedgerEntry[] | DamagedPart | null;
    if (page !== null && !(page instanceof DamagedPart)) take(page);
    else {
      const why = page === null ? `in ${object} are not in the object store` : `in ${page.message}`;
      problems.push(...replaying.balances().problems, `Its entries ${why}`);
      replaying = beginReplay(openingBalances(closing));
    }
  }
  const last = text(seen.fields.last_entry);
  for (let behind = beforeFirstEntry; last !== ''; ) {
    const page = await readOldestEntries(store, origin, pageEntries, { behind, last });
    take(page);
    if (page.length < pageEntries) break;
    behind = page.at(-1)?.entry ?? last;
  }
  const balances = parseBalances(seen.fields, seen.packs);
  problems.push(
    ...differences(replaying.balances(), balances, { holds: seen.open, completed: Number(seen.fields.completed) }),
  );
  problems.push(...strayValues(seen, balances));
  return { entries, problems };
}

function damageOf(error: unknown): DamagedPart {
  if (error instanceof DamagedPart) return error;
  throw error;
}

/** Returns one sentence for each value that stands beside the balances and does not agree with them. */
function strayValues({ fields, packQueue, newestEntry }: RawBalances, { packs }: AccountBalances): string[] {
  const problems: string[] = [];
  const left = packs.reduce((sum, pack) => sum + pack.total - pack.used, 0);
  const counted = Number(fields.packs_left);
  if (counted !== left)
    problems.push(`What is left of all packs is ${left}, but ${counted} is what admission counts on`);
  const drawn = new Set(packQueue);
  for (const { id, total, used } of packs) {
    // Admission counts on it all the same: each call would be an overdraft.
    if (used < total && !drawn.has(id))
      problems.push(`Pack ${id} has ${total - used} left, but no charge draws from it`);
    if (used >= total && drawn.has(id)) problems.push(`Pack ${id} has nothing left, but charges draw from it`);
  }
  // Of a ledger that is wholly archived Redis has no entry.
  if (newestEntry !== '' && newestEntry !== fields.last_entry)
    problems.push(
      `The newest entry is ${newestEntry}, but ${fields.last_entry || 'none'} is the last one in the balances`,
    );
  return problems;
}

export function openingBalances(closing: ClosingBalances | undefined): Opening | undefined {
  return closing && { ...closing, packs: new Map(closing.packs) };
}
