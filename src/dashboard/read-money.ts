import { readSnapshot } from '../store/accounts/read-snapshot.ts';
import { compareEntries, type ReadArchivedPart } from '../store/log/archived-parts.ts';
import { readLedger } from '../store/log/read-ledger.ts';
import type { RecordStore } from '../store/script.ts';

/** Reads an account with its balances and so many entries of its ledger, newest first, among them the last one that moved these balances. */
export async function readMoney(store: RecordStore, accountId: string, limit: number, open: ReadArchivedPart) {
  const readEntries = () => readLedger(store, accountId, limit, open);
  const [snapshot, entries] = await Promise.all([readSnapshot(store, accountId), readEntries()]);
  // The balances may be read after the ledger, with what was booked meanwhile, such as the end of a billing period by their reading.
  const isBehind = compareEntries(snapshot.newestEntry, entries[0]?.entry ?? '') > 0;
  return { ...snapshot, entries: isBehind ? await readEntries() : entries };
}
