import { isRefusal } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { monthOf } from '../model/billing-period.ts';
import { type LedgerEntry, replay } from '../model/ledger.ts';
import { type CountedLine, countLines } from '../model/usage-history.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { keys } from '../store/keys.ts';
import {
  archivedPartKey,
  beforeFirstEntry,
  type ClosingBalances,
  type EntryStream,
  newestArchivedPart,
  readOldestEntries,
  type StreamEntry,
} from '../store/log/archived-parts.ts';
import { listDueAudits, listDueLedgers, listDueLines, noteOldest } from '../store/log/due-streams.ts';
import { findExpiredPart, forgetArchived, postponeArchived } from '../store/log/forget-archived.ts';
import { noteArchived } from '../store/log/note-archived.ts';
import { openingBalances } from '../store/log/verify-ledger.ts';
import { readPeriodStart } from '../store/money/roll-period.ts';
import { readRedisTime, removalRetryMs, removeOld } from '../store/old-entries.ts';
import type { RecordStore } from '../store/script.ts';
import { readJsonLines, writeJsonLines } from './json-lines.ts';

export type ArchiveObjects = Pick<ObjectStore, 'keep' | 'read' | 'see' | 'remove'>;

const day = 86_400_000;
const auditMs = 365 * day;
/** Entries in one object: what one step reads, writes and removes. */
const maxEntriesPerObject = 2000;

export interface ArchiveOptions {
  readonly store: RecordStore;
  readonly objects: ArchiveObjects;
  readonly lifetimes: { readonly job: number };
  /** Called before each step; false leaves the rest for the next run. */
  readonly goOn: () => boolean;
  readonly metrics: Pick<Metrics, 'upkeep_errors_total'>;
  readonly log: Log;
}

export function dayOf(time: number): number {
  return Math.floor(time / day) * day;
}

/**
 * Moves to the object store: request-log lines and audit entries of the days before yesterday, and ledger entries of closed billing periods that
 * are older than every job of the record. Returns the number of moved entries. A stream that cannot be moved stays in
 * Redis; throws only when the object store is away.
 */
export async function archiveDays(options: ArchiveOptions): Promise<number> {
  const { store, objects, lifetimes, goOn, metrics, log } = options;
  const now = await readRedisTime(store);
  let moved = 0;
  const move = async <T extends StreamEntry>(origin: EntryStream<T>, until: MovedUntil, closingAfter?: After<T>) => {
    while (goOn()) {
      const count = await archiveOldest(store, objects, origin, until, closingAfter);
      if (count === 0) return;
      moved += count;
    }
  };
  const fail = async ({ kind, id }: Pick<EntryStream<StreamEntry>, 'kind' | 'id'>, error: unknown) => {
    if (isRefusal(error, 'unavailable')) throw error;
    // Throws when the object store is away.
    await objects.see(archivedPartKey({ kind, id }, beforeFirstEntry));
    metrics.upkeep_errors_total.inc({ task: 'days' });
    log.warn('ended days cannot be moved: the next day again', { kind, id, error });
  };
  const [oldJobs, yesterday] = [dayOf(now - lifetimes.job), dayOf(now - day)];
  const visits = { store, goOn, fail };
  await visitDue({ ...visits, listDue: listDueLedgers, before: oldJobs }, async (ledger) => {
    const period = (await readPeriodStart(store, ledger.id)) ?? monthOf(now).start;
    await move(ledger, { before: Math.min(dayOf(period), oldJobs), ageMs: lifetimes.job }, balancesAfter);
  });
  await visitDue({ ...visits, listDue: listDueLines, before: yesterday }, (lines) =>
    move(lines, { before: yesterday, ageMs: day }),
  );
  await visitDue({ ...visits, listDue: listDueAudits, before: yesterday }, (audit) =>
    move(audit, { before: yesterday, ageMs: day }),
  );
  return moved;
}

interface DueVisits<T extends StreamEntry> extends Pick<ArchiveOptions, 'store' | 'goOn'> {
  readonly listDue: (store: RecordStore, before: number, skipped: number) => Promise<readonly EntryStream<T>[]>;
  readonly before: number;
  /** Called with a failure of one stream; the others are visited unless it throws. */
  readonly fail: (origin: EntryStream<T>, error: unknown) => Promise<void>;
}

/** Visits each stream that has an entry older than `before`; those that keep one are visited once all the same. */
async function visitDue<T extends StreamEntry>(
  { store, goOn, listDue, before, fail }: DueVisits<T>,
  visit: (origin: EntryStream<T>) => Promise<void>,
): Promise<void> {
  const isDueAfter = async (origin: EntryStream<T>) => {
    try {
      await visit(origin);
      const oldest = await noteOldest(store, origin);
      return oldest !== null && oldest < before;
    } catch (error) {
      await fail(origin, error);
      return true;
    }
  };
  for (let kept = 0; ; ) {
    const due = await listDue(store, before, kept);
    if (due.length === 0) return;
    for (const origin of due) {
      if (!goOn()) return;
      if (await isDueAfter(origin)) kept++;
    }
  }
}

/**
 * Removes archived request-log lines that have reached an age, and audit entries that are older than a year; returns the number of objects.
 * One that cannot be removed is tried again 10 minutes later: `tell` is given the reason, returns 0, and throws while no object can be.
 */
export async function removeArchivedDays(
  store: RecordStore,
  objects: Pick<ArchiveObjects, 'remove'>,
  ageMs: number,
  goOn: () => boolean,
  tell: (error: unknown) => Promise<number>,
): Promise<number> {
  const removeParts = (expiring: string, keptMs: number) =>
    removeOld(
      store,
      () => findExpiredPart(store, expiring, keptMs),
      goOn,
      async (days) => {
        const isRemoved = (await objects.remove(days.object.replace(/[^/]*$/, '')).then(() => 1, tell)) > 0;
        if (isRemoved) await forgetArchived(store, days);
        else await postponeArchived(store, days, store.clock.now() - keptMs + removalRetryMs);
        return isRemoved;
      },
    );
  const lines = await removeParts(keys.days, ageMs);
  return lines + (await removeParts(keys.auditParts, auditMs));
}

/** Bounds of the entries that are moved: the beginning of a day, and their age by the clock of Redis when they leave it. */
interface MovedUntil {
  readonly before: number;
  readonly ageMs: number;
}

/** Returns the balances after the entries that are moved, `null` when the entries must stay. */
type After<T> = (entries: readonly T[], before: ClosingBalances | undefined) => ClosingBalances | undefined | null;

/** Redis forgets only entries that were read back from the object: a repetition after a crash finds the object under the same key. */
async function archiveOldest<T extends StreamEntry>(
  store: RecordStore,
  objects: ArchiveObjects,
  origin: EntryStream<T>,
  { before, ageMs }: MovedUntil,
  closingAfter: After<T> = () => undefined,
): Promise<number> {
  // Read before the entries, so that noteArchived refuses a controller that another one has overtaken.
  const last = await newestArchivedPart(store, origin);
  const from = last?.last ?? beforeFirstEntry;
  // From the first entry on: after a clock that went back, entries may have ids below those that were archived.
  const oldest = await readOldestEntries(store, origin, maxEntriesPerObject);
  const young = oldest.findIndex(({ at }) => at >= before);
  const old = young < 0 ? oldest : oldest.slice(0, young);
  if (old.length === 0 || closingAfter(old, last?.closing) === null) return 0;
  const isNext = async () => (await newestArchivedPart(store, origin))?.last === last?.last;
  const found = await keepEntries(objects, { origin, from, old, isNext });
  if (found === null) return 0;
  const { object, kept } = found;
  const closing = closingAfter(kept, last?.closing);
  if (closing === null) return 0;
  const days =
    origin.kind === 'paid' || origin.kind === 'free'
      ? { days: countLines(origin.kind, kept as unknown as readonly CountedLine[]) }
      : {};
  const part = { object, ...days, ...(closing ? { closing } : {}) };
  const isMoved = await noteArchived(store, origin, { from, newest: kept.at(-1)!, part }, ageMs);
  return isMoved ? kept.length : 0;
}

interface KeptEntries<T> {
  readonly origin: EntryStream<StreamEntry>;
  readonly from: string;
  readonly old: readonly T[];
  /** Returns true while the record has no part that follows `from`. */
  readonly isNext: () => Promise<boolean>;
}

/**
 * Returns the object that holds entries, and what was read back from it; `null` when another controller has moved them meanwhile. After
 * Redis was restored from a backup, the first object may hold entries that this record never had: it stays, and the next key is taken.
 */
async function keepEntries<T extends StreamEntry>(
  objects: ArchiveObjects,
  { origin, from, old, isNext }: KeptEntries<T>,
): Promise<{ readonly object: string; readonly kept: readonly T[] } | null> {
  for (let copy = 0; ; copy++) {
    const object = archivedPartKey(origin, from, copy);
    await writeJsonLines(objects, object, old);
    const kept = (await readJsonLines(objects, object)) as readonly T[] | null;
    if (!kept?.at(-1)) throw new Error(`${object} does not hold what was written`);
    // Of free lines the oldest leave Redis with the limit of a key, so those in the object may be more.
    const isSame = origin.kind === 'free' || kept.every(({ entry }, n) => entry === old[n]?.entry);
    if (isSame) return { object, kept };
    if (!(await isNext())) return null;
  }
}

/** A ledger with a problem stays in Redis. */
function balancesAfter(entries: readonly LedgerEntry[], before: ClosingBalances | undefined): ClosingBalances | null {
  const { problems, packs, subscription, credits_given, credits_consumed, paid } = replay(
    entries,
    openingBalances(before),
  );
  return problems.length > 0 ? null : { subscription, credits_given, credits_consumed, paid, packs: [...packs] };
}
