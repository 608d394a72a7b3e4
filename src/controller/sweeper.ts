import { type ArchiveObjects, archiveDays, dayOf, removeArchivedDays } from '../archive/archive-days.ts';
import type { Log } from '../base/log.ts';
import { shareRun } from '../base/single-flight.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { dropFile, dueFiles } from '../store/jobs/kept-files.ts';
import type { RecordStore } from '../store/script.ts';
import { type Lifetimes, sweepRecord } from '../store/sweep-record.ts';

const intervalMs = 20_000;
/** An upload whose job waits for the object store is finished up to a day later (D75). */
const maxUploadAgeMs = 48 * 3_600_000;

/** While this controller leads: removes expired files and records every 20 s, and archives closed days once a day. */
export function startSweeper(options: {
  readonly store: RecordStore;
  readonly objects: ArchiveObjects & Pick<ObjectStore, 'sweepTemporary'>;
  readonly lifetimes: Lifetimes & { readonly file: number };
  readonly isLeading: () => boolean;
  readonly log: Log;
}): { wake(): void; close(): Promise<void> } {
  const { store, objects, lifetimes, isLeading, log } = options;
  let isClosing = false;
  let movedOn = Number.NaN;
  const sweepAll = async () => {
    let isOver = false;
    // Never true again after a false: a sweep that was cut short does not count as done.
    const goOn = () => {
      isOver ||= isClosing || !isLeading();
      return !isOver;
    };
    if (!goOn()) return;
    const swept = await sweepRecord(store, lifetimes);
    const files = await sweepFiles(store, objects, store.clock.now() - lifetimes.file, goOn);
    const uploads = await objects.sweepTemporary(maxUploadAgeMs);
    const days = await removeArchivedDays(store, objects, store.clock.now() - lifetimes.line, goOn);
    if (Object.values(swept).some((count) => count > 0) || files + uploads + days > 0)
      log.info('past lifetimes were removed', { ...swept, files, uploads, days });
    // Last: a full object store must not prevent the removal of files.
    const today = dayOf(store.clock.now());
    if (today === movedOn) return;
    const entries = await archiveDays({ store, objects, lifetimes, goOn, log });
    if (goOn()) movedOn = today;
    if (entries > 0) log.info('ended days were moved to the object store', { entries });
  };
  const { run, settled } = shareRun(() =>
    sweepAll().catch((error) => log.warn('a sweep failed: it is tried again', { error })),
  );
  const wake = () => void run();
  const timer = setInterval(wake, intervalMs);
  return {
    wake,
    async close() {
      isClosing = true;
      clearInterval(timer);
      await settled();
    },
  };
}

async function sweepFiles(
  store: RecordStore,
  objects: Pick<ObjectStore, 'remove'>,
  before: number,
  goOn: () => boolean,
): Promise<number> {
  let removed = 0;
  for (let due = await dueFiles(store, before); due.length > 0; due = await dueFiles(store, before)) {
    for (const file of due) {
      if (!goOn()) return removed;
      await objects.remove(`${file.job}/`);
      await dropFile(store, file);
      removed++;
    }
  }
  return removed;
}
