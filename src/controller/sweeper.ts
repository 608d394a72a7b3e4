import { type ArchiveObjects, archiveDays, dayOf, removeArchivedDays } from '../archive/archive-days.ts';
import type { Log } from '../base/log.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { dropFile, dueFiles } from '../store/jobs/kept-files.ts';
import type { RecordStore } from '../store/script.ts';
import { type Lifetimes, sweep } from '../store/sweep-record.ts';

export interface SweeperOptions {
  readonly store: RecordStore;
  readonly objects: ArchiveObjects & Pick<ObjectStore, 'sweepTemporary'>;
  readonly lifetimes: Lifetimes & { readonly file: number };
  readonly isLeading: () => boolean;
  readonly log: Log;
}

const everyMilliseconds = 20_000;
/** An upload whose job waits for the object store is finished up to a day later (D75). */
const uploadMilliseconds = 48 * 3_600_000;

/**
 * Removes what is past its lifetime, again and again while this controller leads, and moves ended days to the object store,
 * once each day.
 */
export function startSweeper({ store, objects, lifetimes, isLeading, log }: SweeperOptions): {
  wake(): void;
  close(): Promise<void>;
} {
  let running: Promise<void> | null = null;
  let isClosing = false;
  let movedOn = Number.NaN;
  const run = async () => {
    let isOver = false;
    // Once it has said no it stays with it: what was cut short does not count as done.
    const goOn = () => {
      isOver ||= isClosing || !isLeading();
      return !isOver;
    };
    if (!goOn()) return;
    const swept = await sweep(store, lifetimes);
    const files = await sweepFiles(store, objects, store.clock.now() - lifetimes.file, goOn);
    const uploads = await objects.sweepTemporary(uploadMilliseconds);
    const days = await removeArchivedDays(store, objects, store.clock.now() - lifetimes.line, goOn);
    if (Object.values(swept).some((count) => count > 0) || files + uploads + days > 0)
      log.info('swept', { ...swept, files, uploads, days });
    // Last, and not before it has succeeded counted as done: a full object store must not keep files from being removed.
    const today = dayOf(store.clock.now());
    if (today === movedOn) return;
    const entries = await archiveDays({ store, objects, lifetimes, goOn, log });
    if (goOn()) movedOn = today;
    if (entries > 0) log.info('ended days were moved to the object store', { entries });
  };
  const wake = () => {
    running ??= run()
      .catch((error) => log.warn('a sweep failed: it is tried again', { error }))
      .finally(() => {
        running = null;
      });
  };
  const timer = setInterval(wake, everyMilliseconds);
  return {
    wake,
    async close() {
      isClosing = true;
      clearInterval(timer);
      await running;
    },
  };
}

/** Removes files from the object store, each whole folder of its job, then forgets them. */
async function sweepFiles(
  store: RecordStore,
  objects: SweeperOptions['objects'],
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
