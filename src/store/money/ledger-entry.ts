import type { Job } from '../../model/job.ts';
import type { LedgerEntry } from '../../model/ledger.ts';
import { keys, longId } from '../keys.ts';
import { pairs, type RecordStore } from '../script.ts';

const kinds: readonly LedgerEntry['kind'][] = ['grant', 'charge', 'lapse', 'overdraft'];
const balances: readonly LedgerEntry['balance'][] = ['subscription', 'packs', 'credits', 'overdraft'];

/** Returns the ledger entry of a job, or `null` when the job moved no money. */
export async function findEntry(
  store: RecordStore,
  job: Pick<Job, 'id' | 'account' | 'created_at'>,
): Promise<LedgerEntry | null> {
  const key = keys.ledger(job.account);
  for (let before = '+'; ; ) {
    const page = await store.connection.read(['XREVRANGE', key, before, '-', 'COUNT', '1000']);
    const entries = page.map(([id, flat]) => entryOf(id, pairs(flat)));
    const found = entries.find((entry) => entry.job === job.id);
    const last = entries.at(-1);
    if (found || last === undefined || last.at < job.created_at) return found ?? null;
    before = `(${last.entry}`;
  }
}

/** Returns an entry from the fields of its stream. */
export function entryOf(id: string, fields: Readonly<Record<string, string>>): LedgerEntry {
  return {
    at: Number(fields.at),
    entry: id,
    kind: wordOf(kinds, fields.kind) as LedgerEntry['kind'],
    balance: wordOf(balances, fields.balance) as LedgerEntry['balance'],
    amount: Number(fields.amount),
    job: longId(fields.job ?? '') || null,
    pack: fields.pack || null,
    ...(fields.reason ? { reason: fields.reason } : {}),
  };
}

/** Returns the word of a first letter; any other text is left to the check of the ledger. */
function wordOf(words: readonly string[], letter = ''): string {
  return words.find((word) => word[0] === letter) ?? letter;
}
