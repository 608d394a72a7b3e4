import type { LedgerEntry } from '../../model/ledger.ts';
import { keys } from '../keys.ts';
import { entryOf } from '../money/ledger-entry.ts';
import type { RecordStore } from '../script.ts';
import { type EntryStream, type ReadArchivedPart, readNewestEntries } from './archived-parts.ts';

export function ledgerStream(accountId: string): EntryStream<LedgerEntry> {
  return {
    kind: 'ledger',
    id: accountId,
    stream: keys.ledger(accountId),
    index: keys.ledgerStreams,
    list: keys.ledgerDays(accountId),
    read: entryOf,
  };
}

/** Returns entries of a ledger, newest first; archived ones only where `open` is given. */
export function readLedger(
  store: RecordStore,
  accountId: string,
  limit: number,
  open?: ReadArchivedPart,
): Promise<LedgerEntry[]> {
  return readNewestEntries(store, ledgerStream(accountId), limit, open);
}
