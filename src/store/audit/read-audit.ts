import type { AuditEntry } from '../../model/audit.ts';
import { keys } from '../keys.ts';
import {
  type EntryStream,
  listArchivedParts,
  type ReadArchivedPart,
  readArchivedEntriesBefore,
} from '../log/archived-parts.ts';
import { pairs, type RecordStore } from '../script.ts';

/** The audit log of an account, or with `wholeService` of everything. */
export function auditStream(id: string): EntryStream<AuditEntry> {
  return {
    kind: 'audit',
    id,
    stream: keys.audit(id),
    index: keys.auditStreams,
    list: keys.auditDays(id),
    expiring: keys.auditParts,
    read: (entry, { at, note }) => ({ entry, at: Number(at), ...(JSON.parse(note ?? '{}') as AuditNote) }),
  };
}

type AuditNote = Omit<AuditEntry, 'entry' | 'at'>;

interface AuditPage {
  readonly limit: number;
  /** Id of the entry before which the page begins; the newest entries unless given. */
  readonly before?: string | undefined;
  /** Reads archived days. */
  readonly open: ReadArchivedPart;
}

/** Returns entries of an audit log, newest first, archived ones included. */
export async function readAudit(
  store: RecordStore,
  id: string,
  { limit, before, open }: AuditPage,
): Promise<AuditEntry[]> {
  const origin = auditStream(id);
  const first = before === undefined ? '+' : `(${before}`;
  const page = await store.connection.read(['XREVRANGE', origin.stream, first, '-', 'COUNT', String(limit)]);
  const kept = page.map(([entry, flat]) => origin.read(entry, pairs(flat)));
  // Behind the entries, so that one that is archived between both reads is not missing.
  const parts = kept.length < limit ? await listArchivedParts(store, origin) : [];
  const bound = kept.length > 0 ? `(${kept.at(-1)!.entry}` : first;
  return [...kept, ...(await readArchivedEntriesBefore(origin, parts, bound, limit - kept.length, open))];
}
