import type { Log } from '../base/log.ts';
import { monthOf } from '../model/billing-period.ts';
import { type LedgerEntry, replay } from '../model/ledger.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { listLedgerAccounts } from '../store/accounts/read-accounts.ts';
import { listKeys } from '../store/accounts/read-keys.ts';
import {
  archivedPartKey,
  beforeFirstEntry,
  type ClosingBalances,
  type EntryStream,
  newestArchivedPart,
  readOldestEntries,
  type StreamEntry,
} from '../store/log/archived-parts.ts';
import { forgetArchived, listExpiredParts } from '../store/log/forget-archived.ts';
import { noteArchived } from '../store/log/note-archived.ts';
import { ledgerStream } from '../store/log/read-ledger.ts';
import { freeLineStream, paidLineStream } from '../store/log/read-lines.ts';
import { openingBalances } from '../store/log/verify-ledger.ts';
import { readPeriodStart } from '../store/money/roll-period.ts';
import type { RecordStore } from '../store/script.ts';
import { readJsonLines, writeJsonLines } from './json-lines.ts';

export type ArchiveObjects = Pick<ObjectStore, 'keep' | 'read' | 'see' | 'remove'>;

const day = 86_400_000;
/** Entries in one object: what one step reads, writes and removes. */
const maxEntriesPerObject = 2000;

export interface ArchiveOptions {
  readonly store: RecordStore;
  readonly objects: ArchiveObjects;
  readonly lifetimes: { readonly job: number };
  /** Called before each step; false leaves the rest for the next run. */
  readonly goOn: () => boolean;
  readonly log: Log;
}

/** Returns the beginning of the UTC day. */
export function dayOf(time: number): number {
  return Math.floor(time / day) * day;
}

/**
 * Moves to the object store: request-log lines of the days before yesterday, and ledger entries of closed billing periods that
 * are older than every job of the record. Returns the number of moved entries. A stream that cannot be moved stays in
 * Redis; throws only when the object store is away.
 */
export async function archiveDays({ store, objects, lifetimes, goOn, log }: ArchiveOptions): Promise<number> {
  const now = store.clock.now();
  let moved = 0;
  const move = async <T extends StreamEntry>(origin: EntryStream<T>, before: number, closingAfter?: After<T>) => {
    try {
      while (goOn()) {
        const count = await archiveOldest(store, objects, origin, before, closingAfter);
        if (count === 0) return;
        moved += count;
      }
    } catch (error) {
      // Throws when the object store is away.
      await objects.see(archivedPartKey(origin, beforeFirstEntry));
      log.warn('ended days cannot be moved: the next day again', { kind: origin.kind, id: origin.id, error });
    }
  };
  for (const [, account] of await listLedgerAccounts(store)) {
    if (!goOn()) break;
    const period = (await readPeriodStart(store, account)) ?? monthOf(now).start;
    await move(ledgerStream(account), dayOf(Math.min(period, now - lifetimes.job)), balancesAfter);
    for (const key of await listKeys(store, account)) {
      for (const origin of [freeLineStream(key.id), paidLineStream(key.id)]) await move(origin, dayOf(now - day));
    }
  }
  return moved;
}

export async function removeArchivedDays(
  store: RecordStore,
  objects: Pick<ArchiveObjects, 'remove'>,
  before: number,
  goOn: () => boolean,
): Promise<number> {
  let removed = 0;
  for (let due = await listExpiredParts(store, before); due.length > 0; due = await listExpiredParts(store, before)) {
    for (const days of due) {
      if (!goOn()) return removed;
      await objects.remove(days.object.replace(/[^/]*$/, ''));
      await forgetArchived(store, days);
      removed++;
    }
  }
  return removed;
}

/** Returns the balances after the entries that are moved, `null` when the entries must stay. */
type After<T> = (entries: readonly T[], before: ClosingBalances | undefined) => ClosingBalances | undefined | null;

/** Redis forgets only entries that were read back from the object: a repetition after a crash finds the object under the same key. */
async function archiveOldest<T extends StreamEntry>(
  store: RecordStore,
  objects: ArchiveObjects,
  origin: EntryStream<T>,
  before: number,
  closingAfter: After<T> = () => undefined,
): Promise<number> {
  // Read before the entries, so that noteArchived refuses a controller that another one has overtaken.
  const last = await newestArchivedPart(store, origin);
  const from = last?.last ?? beforeFirstEntry;
  const oldest = await readOldestEntries(store, origin, maxEntriesPerObject, { behind: from });
  const young = oldest.findIndex(({ at }) => at >= before);
  const old = young < 0 ? oldest : oldest.slice(0, young);
  if (old.length === 0) return 0;
  const object = archivedPartKey(origin, from);
  if (closingAfter(old, last?.closing) === null) return 0;
  await writeJsonLines(objects, object, old);
  const kept = (await readJsonLines(objects, object)) as readonly T[] | null;
  const newest = kept?.at(-1);
  if (!kept || !newest) throw new Error(`${object} does not hold what was written`);
  // After Redis was restored from a backup, an object may hold entries that never happened: Redis keeps its own.
  if (origin.kind !== 'free' && kept.some(({ entry }, n) => entry !== old[n]?.entry)) return 0;
  const closing = closingAfter(kept, last?.closing);
  if (closing === null) return 0;
  const isMoved = await noteArchived(store, origin, from, newest, { object, ...(closing ? { closing } : {}) });
  return isMoved ? kept.length : 0;
}

/** A ledger with a problem stays in Redis. */
function balancesAfter(entries: readonly LedgerEntry[], before: ClosingBalances | undefined): ClosingBalances | null {
  const { problems, packs, subscription, credits_given, credits_consumed } = replay(entries, openingBalances(before));
  return problems.length > 0 ? null : { subscription, credits_given, credits_consumed, packs: [...packs] };
}
