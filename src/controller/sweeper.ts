import { type ArchiveObjects, archiveDays, dayOf, removeArchivedDays } from '../archive/archive-days.ts';
import { fewLines } from '../base/few-lines.ts';
import { startPeriodicTask } from '../base/periodic-task.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { removeRevocations, revocationLifeMs } from '../objects/revocations.ts';
import { readRedisTime } from '../store/old-entries.ts';
import { maxClockDifferenceMs } from '../store/redis/redis-time.ts';
import { type Lifetimes, sweepRecord } from '../store/sweep-record.ts';
import { reportUpkeep, type UpkeepParts } from '../store/upkeep-parts.ts';
import { findStrayObjects, removeDueFiles, removeStrayObjects } from './file-cleaner.ts';
import type { StorageProbe } from './storage-probe.ts';

interface SweeperOptions extends UpkeepParts {
  readonly objects: ArchiveObjects & Pick<ObjectStore, 'sweepTemporary' | 'listNames'>;
  readonly probe: Pick<StorageProbe, 'check' | 'isAway'>;
  readonly lifetimes: Lifetimes & { readonly file: number };
  readonly isLeading: () => boolean;
}

const intervalMs = 20_000;
/** An upload whose job waits for the object store is finished up to a day later (D75). */
const maxUploadAgeMs = 48 * 3_600_000;

/**
 * While this controller leads: removes expired entries of the record and expired files every 20 s, and archives closed days
 * once a day. Nothing is removed after a jump of the clock. The record never waits for the object store, and files never for the archive.
 */
export function startSweeper(options: SweeperOptions): { wake(): void; close(): Promise<void> } {
  const { store, lifetimes, isLeading, log } = options;
  const few = { ...options, log: { ...log, warn: fewLines(log.warn) } };
  const complain = reportUpkeep(few, 'sweep', 'a sweep failed: it is tried again');
  const sweepEntries = async (mayGoOn: () => boolean) => {
    if (!mayGoOn()) return;
    const swept = await sweepRecord(store, lifetimes, { report: complain, goOn: mayGoOn });
    if (Object.values(swept).some((count) => count > 0)) log.info('past lifetimes were removed', { ...swept });
  };
  const tell = tellWhileAnswered(options.probe, complain);
  const sweeps = [sweepEntries, makeObjectSweep(few, tell), makeDaySweep(options, tell)].map((sweep) => {
    const look = (isClosing: () => boolean) =>
      sweep(() => !isClosing() && isLeading() && store.connection.clock.isSteady());
    return startPeriodicTask(look, intervalMs, complain);
  });
  return {
    wake() {
      for (const sweep of sweeps) void sweep.wake();
    },
    async close() {
      await Promise.all(sweeps.map((sweep) => sweep.close()));
    },
  };
}

type Sweep = (mayGoOn: () => boolean) => Promise<void>;
/** Reports a removal that failed. */
type Tell = (error: unknown) => Promise<number>;

/** Returns one sweep of the files that are removed from the object store. */
function makeObjectSweep(options: SweeperOptions, tell: Tell): Sweep {
  const { store, objects, probe, lifetimes, log } = options;
  let searchedOn = Number.NaN;
  return async (mayGoOn) => {
    const goOn = lasting(mayGoOn, probe);
    if (!goOn()) return;
    const cleaner = { ...options, goOn };
    const files = await removeDueFiles(cleaner, lifetimes.file);
    const strays = await removeStrayObjects(cleaner, lifetimes.file);
    const uploads = await sweepUploads(options, goOn).catch(tell);
    if (files + strays + uploads > 0) log.info('past lifetimes were removed', { files, strays, uploads });
    const today = dayOf(store.clock.now());
    if (goOn() && searchedOn !== today) {
      await findStrayObjects(cleaner);
      const readBefore = async () => (await readRedisTime(store)) - revocationLifeMs;
      await removeRevocations(objects, readBefore, goOn, tell).catch(tell);
      if (goOn()) searchedOn = today;
    }
  };
}

/**
 * Returns one sweep of archived days: beside the removal of files, because it may take an hour where thousands of keys were used. A part
 * that expired while its key is archived would leave an object behind that no part names, so expired ones go in the same sweep.
 */
function makeDaySweep(options: SweeperOptions, tell: Tell): Sweep {
  const { store, objects, probe, lifetimes, log } = options;
  let movedOn = Number.NaN;
  return async (mayGoOn) => {
    const goOn = lasting(mayGoOn, probe);
    if (!goOn()) return;
    const days = await removeArchivedDays(store, objects, lifetimes.line, goOn, tell).catch(tell);
    if (days > 0) log.info('past lifetimes were removed', { days });
    const today = dayOf(store.clock.now());
    if (!goOn() || movedOn === today) return;
    // A job stays with its file, and its timeline reads the ledger of the record.
    const job = Math.max(lifetimes.job, lifetimes.file);
    const entries = await archiveDays({ ...options, lifetimes: { job }, goOn });
    if (goOn()) movedOn = today;
    if (entries > 0) log.info('ended days were moved to the object store', { entries });
  };
}

/** Returns what reports a removal that failed while the object store answers: the work behind it goes on. */
function tellWhileAnswered(probe: Pick<StorageProbe, 'check'>, complain: (error: unknown) => void): Tell {
  return async (error) => {
    if (!(await probe.check())) throw error;
    complain(error);
    return 0;
  };
}

/** Never true again after a false, and false while the object store is away: a sweep that was cut short does not count as done. */
function lasting(mayGoOn: () => boolean, probe: Pick<StorageProbe, 'isAway'>): () => boolean {
  let isOver = probe.isAway();
  return () => {
    isOver ||= !mayGoOn();
    return !isOver;
  };
}

/** Upload times follow the clock of a machine, never a rehearsal; with that clock off they say nothing. */
async function sweepUploads({ store, objects }: SweeperOptions, goOn: () => boolean): Promise<number> {
  const { clock } = store.connection;
  if (!goOn() || Math.abs(clock.machineAheadMs()) > maxClockDifferenceMs) return 0;
  // Without the offset of a rehearsal.
  const now = await readRedisTime({ ...store, clock: { now: () => clock.now(), offset: () => 0 } });
  return goOn() ? objects.sweepTemporary(now - maxUploadAgeMs) : 0;
}
