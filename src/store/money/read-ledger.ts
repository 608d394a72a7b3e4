import type { Job } from '../../model/job.ts';
import type { LedgerEntry } from '../../model/ledger.ts';
import { keys } from '../keys.ts';
import { type EntryStream, type ReadArchivedPart, readNewestEntries } from '../log/archived-parts.ts';
import { pairs, type RecordStore } from '../script.ts';

/** The ledger of an account as what is moved to the object store when its days have ended. */
export function ledgerStream(account: string): EntryStream<LedgerEntry> {
  return {
    kind: 'ledger',
    id: account,
    stream: keys.ledger(account),
    list: keys.ledgerDays(account),
    read: entryOf,
  };
}

/** Newest entries of the ledger first; those that were moved too, where they can be opened. */
export function readLedger(
  store: RecordStore,
  account: string,
  limit: number,
  open?: ReadArchivedPart,
): Promise<LedgerEntry[]> {
  return readNewestEntries(store, ledgerStream(account), limit, open);
}

/** The entry that a job has made in its account's ledger; `null` when it has moved no money. */
export async function findEntry(
  store: RecordStore,
  job: Pick<Job, 'id' | 'account' | 'created_at'>,
): Promise<LedgerEntry | null> {
  const key = keys.ledger(job.account);
  for (let before = '+'; ; ) {
    const page = (await store.connection.read(['XREVRANGE', key, before, '-', 'COUNT', '1000'])) as [
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

function entryOf(id: string, fields: Readonly<Record<string, string>>): LedgerEntry {
  return {
    at: Number(fields.at),
    entry: id,
    kind: fields.kind as LedgerEntry['kind'],
    balance: fields.balance as LedgerEntry['balance'],
    amount: Number(fields.amount),
    job: fields.job || null,
    pack: fields.pack || null,
    ...(fields.reason ? { reason: fields.reason } : {}),
  };
}
