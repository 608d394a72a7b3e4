import { beginReplay, differences, type LedgerEntry, type Opening } from '../../model/ledger.ts';
import {
  beforeFirstEntry,
  type ClosingBalances,
  listArchivedParts,
  newestArchivedPart,
  type ReadArchivedPart,
  readOldestEntries,
} from '../log/archived-parts.ts';
import { type RecordStore, text } from '../script.ts';
import { parseBalances, type RawBalances, readRawBalances } from './read-balances.ts';
import { ledgerStream } from './read-ledger.ts';

const pageEntries = 1000;

/** What `ledger verify` finds in one account: how many entries, and a sentence for each difference. */
interface LedgerCheck {
  readonly entries: number;
  readonly problems: readonly string[];
}

/**
 * Replays an account's ledger page by page and compares every balance, and its holds with its open jobs and calls. The
 * numbers are read in one step and name the last entry that they contain, so money may go on moving meanwhile. It begins
 * with the first entry of all where moved ones can be opened, else with the balances after the last one that was moved.
 */
export async function verifyLedger(store: RecordStore, account: string, open?: ReadArchivedPart): Promise<LedgerCheck> {
  for (;;) {
    const seen = await readRawBalances(store, account);
    const verified = await verifyRaw(store, account, seen, open);
    // Entries that were moved meanwhile may be missing in what was replayed.
    if ((await newestArchivedPart(store, ledgerStream(account)))?.last === seen.moved?.last) return verified;
  }
}

async function verifyRaw(
  store: RecordStore,
  account: string,
  seen: RawBalances,
  open?: ReadArchivedPart,
): Promise<LedgerCheck> {
  const origin = ledgerStream(account);
  let replaying = beginReplay(open ? undefined : openingBalances(seen.moved?.closing));
  const problems: string[] = [];
  let entries = 0;
  const take = (page: readonly LedgerEntry[]) => {
    entries += page.length;
    replaying.take(page);
  };
  for (const { object, closing } of open ? await listArchivedParts(store, origin) : []) {
    const page = (await open?.(object)) as readonly LedgerEntry[] | null;
    if (page !== null) take(page);
    else {
      problems.push(...replaying.balances().problems, `Its entries in ${object} are not in the object store`);
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
  const books = parseBalances(seen.fields, seen.packs);
  problems.push(...differences(replaying.balances(), books, { holds: seen.open }));
  const left = books.packs.reduce((sum, pack) => sum + pack.total - pack.used, 0);
  const counted = Number(seen.fields.packs_left);
  if (counted !== left)
    problems.push(`What is left of all packs is ${left}, but ${counted} is what admission counts on`);
  return { entries, problems };
}

/** Balances from JSON; nothing where no entry was moved. */
export function openingBalances(closing: ClosingBalances | undefined): Opening | undefined {
  return closing && { ...closing, packs: new Map(closing.packs) };
}
