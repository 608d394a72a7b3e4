import type { Config } from '../base/config.ts';
import type { Seal } from '../base/seal.ts';
import { makeLink } from '../model/file-link.ts';
import type { Job } from '../model/job.ts';
import type { RecordStore } from '../store/script.ts';

interface LinkParts {
  readonly config: Pick<Config, 'fileHours'>;
  readonly store: Pick<RecordStore, 'clock'>;
  readonly seal: Pick<Seal, 'sign'>;
}

/** Gives signed links to the files of jobs: `null` when a file is not kept any more. */
export function makeFileLinks(
  { config, store, seal }: LinkParts,
  publicUrl: () => string,
): (job: Job) => string | null {
  return (job) => {
    const until = (job.ended_at ?? 0) + config.fileHours * 3_600_000;
    const isGone = job.removed_at !== null || store.clock.now() >= until;
    return isGone ? null : makeLink(job, until, publicUrl(), seal.sign);
  };
}
