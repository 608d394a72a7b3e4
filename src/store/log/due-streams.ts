import type { AuditEntry } from '../../model/audit.ts';
import type { LedgerEntry } from '../../model/ledger.ts';
import { keys } from '../keys.ts';
import { indexedStream } from '../lua/indexed-stream.ts';
import { number, type RecordStore, readDue, run, script } from '../script.ts';
import type { EntryStream, StreamEntry } from './archived-parts.ts';
import { auditStream } from './read-audit.ts';
import { ledgerStream } from './read-ledger.ts';
import { freeLineStream, paidLineStream, type StoredLogLine } from './read-lines.ts';

/** Brings the index of a stream up to date. Answers {'noted', time of the oldest entry or ''}. */
const noteOldestScript = script(
  'note-oldest',
  'always',
  ['stream', 'index'] as const,
  [],
  /* lua */ `${indexedStream}
return { 'noted', note_oldest(stream, index) }
`,
);

/** Returns up to 100 ledgers whose oldest entry is older than `before`, oldest first, after the first `skipped` of them. */
export async function listDueLedgers(
  store: RecordStore,
  before: number,
  skipped: number,
): Promise<EntryStream<LedgerEntry>[]> {
  const due = await readDue(store, keys.ledgerStreams, `(${before}`, skipped);
  return due.map((name) => ledgerStream(idOf(name)));
}

/** Returns the same of streams of request-log lines. */
export async function listDueLines(
  store: RecordStore,
  before: number,
  skipped: number,
): Promise<EntryStream<StoredLogLine>[]> {
  const due = await readDue(store, keys.lineStreams, `(${before}`, skipped);
  return due.map((name) => {
    const id = idOf(name);
    return name === keys.paidLines(id) ? paidLineStream(id) : freeLineStream(id);
  });
}

/** Returns the same of audit logs. */
export async function listDueAudits(
  store: RecordStore,
  before: number,
  skipped: number,
): Promise<EntryStream<AuditEntry>[]> {
  return (await readDue(store, keys.auditStreams, `(${before}`, skipped)).map((name) => auditStream(idOf(name)));
}

/** Returns the time of the oldest entry that a stream has in Redis, or `null`; the index may have had an older one. */
export async function noteOldest(
  store: RecordStore,
  { stream, index }: Pick<EntryStream<StreamEntry>, 'stream' | 'index'>,
): Promise<number | null> {
  const [, oldest] = await run(store, noteOldestScript, { stream, index });
  return number(oldest);
}

function idOf(name: string): string {
  return name.slice(name.lastIndexOf(':') + 1);
}
