import type { Job } from '../../model/job.ts';
import type { LedgerEntry } from '../../model/ledger.ts';
import { keys, longId } from '../keys.ts';
import { pairs, type RecordStore } from '../script.ts';

const kinds: readonly LedgerEntry['kind'][] = ['grant', 'charge', 'lapse', 'overdraft'];
const balances: readonly LedgerEntry['balance'][] = ['subscription', 'packs', 'credits', 'overdraft'];

/** Most entries that are read for the one of a job: a clock that went back put others before it. */
const maxRead = 2_000;
/** A script reads its time after it began. */
const maxScriptMs = 100;

/** Returns the ledger entry of a job, or `null` when it moved no money: a job is charged by the step that ends it. */
export async function findJobEntry(
  store: RecordStore,
  { id: jobId, account, status, ended_at }: Pick<Job, 'id' | 'account' | 'status' | 'ended_at'>,
): Promise<LedgerEntry | null> {
  if (status !== 'CompletedJob' || ended_at === null) return null;
  // The id of an entry begins with the time of Redis at which its script began, or a later one after its clock went back.
  let from = String(Math.max(0, ended_at - store.clock.offset() - maxScriptMs));
  for (let read = 0; read < maxRead; ) {
    const page = await store.connection.read(['XRANGE', keys.ledger(account), from, '+', 'COUNT', '100']);
    const entries = page.map(([id, flat]) => entryOf(id, pairs(flat)));
    const found = entries.find((entry) => entry.job === jobId);
    const last = entries.at(-1);
    if (found || last === undefined) return found ?? null;
    from = `(${last.entry}`;
    read += page.length;
  }
  return null;
}

/** Returns the ledger entry of a call that was charged after a time, or `null`: goes from the newest entry back to that time. */
export async function findCallEntry(
  store: RecordStore,
  { id: callId, account, created_at }: Pick<Job, 'id' | 'account' | 'created_at'>,
): Promise<LedgerEntry | null> {
  const key = keys.ledger(account);
  for (let before = '+'; ; ) {
    const page = await store.connection.read(['XREVRANGE', key, before, '-', 'COUNT', '1000']);
    const entries = page.map(([id, flat]) => entryOf(id, pairs(flat)));
    const found = entries.find((entry) => entry.job === callId);
    const last = entries.at(-1);
    if (found || last === undefined || last.at < created_at) return found ?? null;
    before = `(${last.entry}`;
  }
}

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
