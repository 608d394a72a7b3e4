import type { ObjectStore } from '../objects/object-store.ts';
import { dropFile, findOldFiles, postponeFile } from '../store/jobs/kept-files.ts';
import {
  countStrays,
  dropStray,
  findOldStrays,
  findStrays,
  listUnknownJobs,
  postponeStray,
} from '../store/jobs/stray-objects.ts';
import { removalRetryMs, removeOld } from '../store/old-entries.ts';
import type { UpkeepParts } from '../store/upkeep-parts.ts';
import type { StorageProbe } from './storage-probe.ts';

interface FileCleanerOptions extends UpkeepParts {
  readonly objects: Pick<ObjectStore, 'remove' | 'listNames'>;
  readonly probe: Pick<StorageProbe, 'check'>;
  readonly goOn: () => boolean;
}

/** Time for which an unknown object stays after the lifetime of a file: a restored record knows nothing of jobs that callers may still fetch. */
const strayMs = 7 * 24 * 3_600_000;

export async function removeDueFiles(options: FileCleanerOptions, lifetimeMs: number): Promise<number> {
  const { store, goOn } = options;
  return removeOld(
    store,
    () => findOldFiles(store, lifetimeMs),
    goOn,
    async (jobId) => {
      const isRemoved = await removeObjects(options, jobId);
      if (isRemoved) await dropFile(store, jobId);
      else await postponeFile(store, jobId, store.clock.now() - lifetimeMs + removalRetryMs);
      return isRemoved;
    },
  );
}

/** Finds objects of jobs that the record does not know, such as those of an upload that ended after its job did. */
export async function findStrayObjects({ store, objects, metrics, log, goOn }: FileCleanerOptions): Promise<void> {
  const { length: found } = await listUnknownJobs(store, objects.listNames(), goOn);
  if (!goOn()) return;
  if (found > 0)
    log.warn('the object store has objects that the record does not know: they go after their lifetime and a week', {
      found,
    });
  metrics.stray_objects.set(await countStrays(store));
}

/** Removes objects that were found a lifetime and a week ago unless the record knows them now; returns for how many jobs. */
export async function removeStrayObjects(options: FileCleanerOptions, lifetimeMs: number): Promise<number> {
  const { store, goOn } = options;
  const ageMs = lifetimeMs + strayMs;
  return removeOld(
    store,
    () => findOldStrays(store, ageMs),
    goOn,
    async (jobId) => {
      const [stray] = await findStrays(store, [jobId]);
      const isRemoved = stray === undefined || (await removeObjects(options, jobId));
      if (isRemoved) await dropStray(store, jobId);
      else await postponeStray(store, jobId, store.clock.now() - ageMs + removalRetryMs);
      return isRemoved;
    },
  );
}

/** Returns false when the objects of this job alone cannot be removed; throws while the object store is away. */
async function removeObjects({ objects, probe, metrics, log }: FileCleanerOptions, jobId: string): Promise<boolean> {
  try {
    await objects.remove(`${jobId}/`);
    return true;
  } catch (error) {
    if (!(await probe.check())) throw error;
    metrics.removal_errors_total.inc();
    log.warn('a file could not be removed: it is tried again in 10 minutes', { job: jobId, error });
    return false;
  }
}
