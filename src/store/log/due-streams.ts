import { keys } from '../keys.ts';
import { indexedStream } from '../lua/indexed-stream.ts';
import { readDue } from '../redis/read-due.ts';
import { number, type RecordStore, run, script } from '../script.ts';
import type { EntryStream, StreamEntry } from './archived-parts.ts';
import { auditStream } from './read-audit.ts';
import { ledgerStream } from './read-ledger.ts';
import { freeLineStream, paidLineStream } from './read-lines.ts';

/** Brings the index of a stream up to date. Answers {'noted', time of the oldest entry or ''}. */
const noteOldestScript = script('note-oldest', 'always', ['stream', 'index'], [])`${indexedStream}
return { 'noted', note_oldest(stream, index) }
`;

/**
 * Returns a function that lists up to 100 streams of an index whose oldest entry is older than `before`, oldest first, after the first
 * `skipped` of them.
 */
function listDueOf<T extends StreamEntry>(index: string, streamOf: (id: string, name: string) => EntryStream<T>) {
  return async (store: RecordStore, before: number, skipped: number): Promise<EntryStream<T>[]> => {
    const due = await readDue(store, index, `(${before}`, skipped);
    return due.map((name) => streamOf(name.slice(name.lastIndexOf(':') + 1), name));
  };
}

export const listDueLedgers = listDueOf(keys.ledgerStreams, ledgerStream);
export const listDueLines = listDueOf(keys.lineStreams, (id, name) => {
  return name === keys.paidLines(id) ? paidLineStream(id) : freeLineStream(id);
});
export const listDueAudits = listDueOf(keys.auditStreams, auditStream);

/** Returns the time of the oldest entry that a stream has in Redis, or `null`; the index may have had an older one. */
export async function noteOldest(
  store: RecordStore,
  { stream, index }: Pick<EntryStream<StreamEntry>, 'stream' | 'index'>,
): Promise<number | null> {
  const [, oldest] = await run(store, noteOldestScript, { stream, index });
  return number(oldest);
}
