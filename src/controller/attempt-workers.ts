import { isEnded, type Job } from '../model/job.ts';
import { hasOpenAttempt, type Seen } from '../model/next.ts';
import { attemptNameOf, attemptNumberOf, type Runner, StartDelayed } from '../runners/runner.ts';
import { noteProgress } from '../store/jobs/note-progress.ts';
import { readJob } from '../store/jobs/read-job.ts';
import { startAttempt } from '../store/jobs/start-attempt.ts';
import type { RecordStore } from '../store/script.ts';
import type { StorageProbe } from './storage-probe.ts';

/** Stage of a job whose worker cannot be made. */
export const startRefused = 'It cannot be started now';
/** Stage of a job whose download would cost one of its attempts in vain. */
const storageAway = 'The storage of finished files takes no files';
const waitingForStart = { progress: 0, running: false, speed_bytes: null, eta_seconds: null };

/** An open job whose record is damaged: what is left of it could not decide a step, so it waits until an operator or its caller cancels it. */
export class DamagedRecord extends Error {
  readonly unreadable: readonly string[];

  constructor(unreadable: readonly string[]) {
    super(`${unreadable.join(', ')} cannot be read`);
    this.unreadable = unreadable;
  }

  /** Throws one for an open job that is damaged. */
  static refuse(job: Job | null): void {
    if (job?.unreadable && !isEnded(job.status)) throw new DamagedRecord(job.unreadable);
  }
}

/** Sees the worker of a job's attempt. Once that is over, `list` finds leftovers without a request to the cluster. */
export async function seeWorker(runner: Runner, job: Job): Promise<Seen> {
  const name = attemptNameOf(job.id, job.attempt);
  if (job.attempt === 0) return { is: 'absent' };
  const isOver = isEnded(job.status) || !hasOpenAttempt(job);
  if (isOver && !(await runner.list(job.id)).includes(name)) return { is: 'absent' };
  return runner.see(name);
}

export function isGone({ is }: Seen): boolean {
  return is === 'ended' || is === 'absent';
}

/** Adds a verdict that the worker sent after the job was read: a verdict says more than an exit code. */
export async function readVerdict(store: RecordStore, job: Job, seen: Seen): Promise<Job> {
  if (!isGone(seen) || job.verdict !== null || isEnded(job.status) || !hasOpenAttempt(job)) return job;
  const now = await readJob(store, job.id);
  DamagedRecord.refuse(now);
  return now?.attempt === job.attempt ? { ...job, verdict: now.verdict } : job;
}

/** Stops workers of every attempt but the last one, and every worker of a job that is not in the record. */
export async function stopOtherAttempts(
  { store, runners }: { readonly store: RecordStore; readonly runners: readonly Runner[] },
  jobId: string,
  job: Job | null,
): Promise<void> {
  const last = job?.attempt ?? Number.POSITIVE_INFINITY;
  for (const runner of runners) {
    const names = await runner.list(jobId);
    const newest = Math.max(-1, ...names.map(attemptNumberOf));
    // An attempt is recorded before its worker is made: one that a second look does not find was lost with a restored backup.
    const known = newest > last ? ((await readJob(store, jobId))?.attempt ?? -1) : newest;
    const others = names.filter((name) => attemptNumberOf(name) < last || attemptNumberOf(name) > known);
    await Promise.all(others.map((name) => runner.stop(name)));
  }
}

interface StarterParts {
  readonly store: RecordStore;
  readonly probe: Pick<StorageProbe, 'takesFiles' | 'doubt'>;
}

/** Records attempts, starts their workers and remembers those whose start failed: without a worker they cannot be interrupted. */
export function makeAttemptStarter({ store, probe }: StarterParts) {
  const failed = new Set<string>();
  return {
    /**
     * True for an attempt whose start failed, so that it never had a worker: its absence is no interruption. One with a deadline had one
     * that ran: another controller has started it since. One that an earlier leader held for the object store has its stage: this leader
     * then doubts the store, too.
     */
    lacksWorker: (job: Job, seen: Seen): boolean => {
      const isMissing = seen.is === 'absent' && job.verdict === null && job.deadline === null && hasOpenAttempt(job);
      const name = attemptNameOf(job.id, job.attempt);
      if (isMissing && job.stage === storageAway && !failed.has(name)) {
        failed.add(name);
        probe.doubt();
      }
      return isMissing && failed.has(name);
    },
    /** Records an attempt. One whose answer is lost may be recorded all the same, and nobody has started it. */
    record: (term: string, job: Job, attempt: number): ReturnType<typeof startAttempt> =>
      startAttempt(store, term, job, attempt).catch((error) => {
        failed.add(attemptNameOf(job.id, attempt));
        throw error;
      }),
    /** True when the start of the attempt had failed. */
    forget: (attemptName: string): boolean => failed.delete(attemptName),
    /** When the worker cannot be started, notes that as the stage of the job and throws. The stage goes once it is: it would tell of no worker. */
    start: async (runner: Runner, job: Job, attempt: number, maxMs: number): Promise<void> => {
      const name = attemptNameOf(job.id, attempt);
      const note = (stage: string) => noteProgress(store, job, attempt, { ...waitingForStart, stage });
      try {
        if (job.endpoint !== 'metadata' && !probe.takesFiles()) throw new StartDelayed(storageAway, new Error());
        await runner.start({ name, jobId: job.id, attempt, maxMs });
      } catch (error) {
        failed.add(name);
        await note(error instanceof StartDelayed ? error.reason : startRefused);
        throw error;
      }
      if (failed.delete(name)) await note('');
    },
  };
}
