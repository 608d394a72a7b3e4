import type { AuditEntry } from '../../model/audit.ts';
import { keys } from '../keys.ts';
import type { RecordStore } from '../script.ts';
import { type EntryStream, type ReadArchivedPart, readNewestEntries } from './archived-parts.ts';

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
  readonly open: ReadArchivedPart;
}

/** Returns entries of an audit log, newest first, archived ones included. */
export function readAudit(store: RecordStore, id: string, { limit, before, open }: AuditPage): Promise<AuditEntry[]> {
  return readNewestEntries(store, auditStream(id), limit, open, before);
}
