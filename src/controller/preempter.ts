import type { Log } from '../base/log.ts';
import { choosePreempted, chooseSurplusRecording, type WorkerShares } from '../model/preemption.ts';
import { interruptRecording } from '../store/jobs/interrupt-recording.ts';
import { findUnserved, readActiveJobs } from '../store/jobs/open-work.ts';
import { preemptJob } from '../store/jobs/preempt-job.ts';
import type { RecordStore } from '../store/script.ts';

interface PreempterOptions {
  readonly store: RecordStore;
  readonly shares: WorkerShares;
  readonly log: Log;
  readonly term: () => string;
  readonly mayTake: () => boolean;
  /** Called with a job that is marked: its next step interrupts it. */
  readonly onMark: (jobId: string) => void;
}

/** Without kept slots: sees to it that no account holds every worker for long while another one waits. */
export function makePreempter({ store, shares, log, term, mayTake, onMark }: PreempterOptions) {
  const isNeeded = () => mayTake() && shares.kept === 0 && store.connection.clock.isSteady();
  return {
    /** Interrupts a job of the account that holds most for one that has waited too long. */
    async makeRoom(): Promise<void> {
      if (!isNeeded()) return;
      const waiting = await findUnserved(store, store.clock.now() - shares.maxWaitMs);
      if (waiting === null) return;
      const job = choosePreempted(await readActiveJobs(store), shares.slots);
      if (job === null || !(await preemptJob(store, term(), job, shares, waiting)).done) return;
      log.info('a job is interrupted, because another account waited for a worker', { job: job.id });
      onMark(job.id);
    },
    /** Interrupts a recording that has just begun and leaves no worker that another account could get. */
    async checkRecordings(): Promise<void> {
      if (!isNeeded() || shares.slots < 2) return;
      const job = chooseSurplusRecording(await readActiveJobs(store), shares.slots, store.clock.now());
      if (job === null || !(await interruptRecording(store, term(), job, shares)).done) return;
      log.info('a recording is interrupted, because its account would record on every worker', { job: job.id });
      onMark(job.id);
    },
  };
}
