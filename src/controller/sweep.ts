import type { Log } from '../base/log.ts';
import type { FolderStore } from '../objects/folder.ts';
import { dropFile, dueFiles } from '../store/files.ts';
import type { Store } from '../store/script.ts';
import { type Lifetimes, sweep } from '../store/sweep.ts';

export interface SweepOptions {
  readonly store: Store;
  readonly objects: Pick<FolderStore, 'remove' | 'sweepTemporary'>;
  readonly lifetimes: Lifetimes & { readonly file: number };
  readonly isLeading: () => boolean;
  readonly log: Log;
}

const everyMilliseconds = 20_000;
const uploadMilliseconds = 6 * 3_600_000;

/** Removes what is past its lifetime, again and again while this controller leads. */
export function startSweep({ store, objects, lifetimes, isLeading, log }: SweepOptions): {
  wake(): void;
  close(): Promise<void>;
} {
  let running: Promise<void> | null = null;
  const run = async () => {
    if (!isLeading()) return;
    const swept = await sweep(store, lifetimes);
    const files = await sweepFiles(store, objects, store.clock.now() - lifetimes.file);
    const uploads = await objects.sweepTemporary(uploadMilliseconds);
    if (Object.values(swept).some((count) => count > 0) || files + uploads > 0)
      log.info('swept', { ...swept, files, uploads });
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
      clearInterval(timer);
      await running;
    },
  };
}

/** Removes files from the object store, each whole folder of its job, then forgets them. */
async function sweepFiles(store: Store, objects: SweepOptions['objects'], before: number): Promise<number> {
  let removed = 0;
  for (let due = await dueFiles(store, before); due.length > 0; due = await dueFiles(store, before)) {
    for (const file of due) {
      await objects.remove(`${file.job}/`);
      await dropFile(store, file);
      removed++;
    }
  }
  return removed;
}
