import type { AttemptProgress } from '../model/attempt-protocol.ts';
import type { Job } from '../model/job.ts';
import { attemptMsOf } from '../model/next.ts';
import { attemptNameOf } from '../runners/runner.ts';
import { noteProgress } from '../store/jobs/note-progress.ts';
import type { RecordStore } from '../store/script.ts';

type NotedJob = Pick<Job, 'id' | 'account' | 'attempt' | 'args'>;

interface Reported {
  readonly job: NotedJob;
  /** By `performance.now()`. */
  writtenAt: number;
  /** Newest report that is not written yet. */
  waiting: AttemptProgress | null;
  /** Report that was written last. */
  written: AttemptProgress | null;
  timer: NodeJS.Timeout | undefined;
}

const betweenWritesMs = 1_000;
/** Minimum between two writes while percent and stage stay: a job of an hour then writes fewer than 850 reports instead of 3,600. */
const unchangedWriteMs = 5_000;
/** A worker without a change reports every 5 s; so what is dropped here is told again, and a poll sees it within about 10 s. */
const silentMs = 15_000;

/**
 * Writes the progress of workers at most once a second for each attempt: a further report waits that long, and only the newest
 * is written. While percent and stage stay, one report every 5 s is written and the others are dropped: one that waited would
 * overwrite what the worker told another controller meanwhile. A note costs Redis as much as a poll.
 */
export function makeProgressNotes(store: RecordStore, maxAttemptMs: number) {
  const reported = new Map<string, Reported>();
  /** Forgets an attempt that has ended, and what it reported last. */
  const forget = (jobId: string, attempt: number): void => {
    const name = attemptNameOf(jobId, attempt);
    clearTimeout(reported.get(name)?.timer);
    reported.delete(name);
  };
  const wait = (one: Reported, milliseconds: number): void => {
    clearTimeout(one.timer);
    const act = () => {
      if (one.waiting === null) forget(one.job.id, one.job.attempt);
      // A report that is lost while Redis is away is followed by another one.
      else write(one).catch(() => {});
    };
    one.timer = setTimeout(act, milliseconds).unref();
  };
  const write = async (one: Reported): Promise<boolean> => {
    const { job, waiting } = one;
    if (waiting === null) return true;
    one.waiting = null;
    one.written = waiting;
    one.writtenAt = performance.now();
    wait(one, silentMs);
    const lastsMs = attemptMsOf(job, { maxAttemptMs });
    const noted = await noteProgress(store, job, job.attempt, { ...waiting, lastsMs });
    if (noted.refused) forget(job.id, job.attempt);
    return noted.done === true;
  };
  return {
    /** Returns the job of an attempt that has reported before; it is not read again. */
    jobOf: (jobId: string, attempt: number): NotedJob | undefined => reported.get(attemptNameOf(jobId, attempt))?.job,
    /** Takes a report; false when the attempt is over. */
    report: async (job: NotedJob, progress: AttemptProgress): Promise<boolean> => {
      const name = attemptNameOf(job.id, job.attempt);
      const one = reported.get(name) ?? newlyReported(job);
      reported.set(name, one);
      const isUnchanged = one.written?.progress === progress.progress && one.written.stage === progress.stage;
      const passed = performance.now() - one.writtenAt;
      if (isUnchanged && one.waiting === null && passed < unchangedWriteMs) return true;
      one.waiting = progress;
      if (passed >= betweenWritesMs) return write(one);
      wait(one, betweenWritesMs - passed);
      return true;
    },
    forget,
  };
}

function newlyReported(job: NotedJob): Reported {
  const writtenAt = Number.NEGATIVE_INFINITY;
  return { job, writtenAt, waiting: null, written: null, timer: undefined };
}
