import type { Log } from '../base/log.ts';
import type { Traces } from '../base/traces.ts';
import type { Job } from '../model/job.ts';
import { spansOfJob } from '../model/job-spans.ts';
import type { JobEnd } from '../model/next.ts';
import { readTraceparent, traceField } from '../model/trace-context.ts';
import { isLastTerm } from '../store/jobs/leadership.ts';
import { readStored } from '../store/jobs/read-job.ts';
import { findJobEntry } from '../store/money/ledger-entry.ts';
import type { RecordStore } from '../store/script.ts';
import type { UpkeepParts } from '../store/upkeep-parts.ts';
import { countSettledJob } from './job-metrics.ts';

/** End of a job that Redis was asked for. */
interface AskedEnd {
  /** The term in which the job was read. */
  readonly term: string;
  readonly job: Job;
  readonly end: JobEnd;
  readonly decidedAt: number;
}

/** Where ends are told; `traces` is `null` where none are sent. */
interface EndParts extends UpkeepParts {
  readonly traces: Traces | null;
}

/** Counts, logs and traces the end of each job, once, also when the answer about it was lost. */
export function makeJobEnds(parts: EndParts) {
  const { store, metrics } = parts;
  /** Ends whose answer was lost, by job: the script may have run before the connection broke. */
  const unanswered = new Map<string, AskedEnd>();
  const tell = ({ job, end, decidedAt }: AskedEnd, balance: string, now: number): void => {
    const log = logOfJob(parts.log, job);
    countSettledJob(metrics, job, { end, balance, now });
    log.info('the job ended', { status: end.status, code: end.code, charged: balance });
    traceJob(parts, job, job.storing_since ?? decidedAt, log);
  };
  return {
    tell,
    addUnanswered: (asked: AskedEnd) => unanswered.set(asked.job.id, asked),
    forget: (jobId: string) => unanswered.delete(jobId),
    /** Tells an end whose answer was lost, when the record shows that it was carried out. A later leader has told what it has ended. */
    tellUnanswered: async (read: Job): Promise<void> => {
      const asked = unanswered.get(read.id);
      if (asked === undefined) return;
      const isSame = read.status === asked.end.status && read.error_code === asked.end.code;
      const isDone = isSame && (await isLastTerm(store.connection, asked.term));
      const entry = isDone ? await findJobEntry(store, read) : null;
      // Another step of the job may have told it meanwhile.
      const isMine = unanswered.delete(read.id);
      if (isDone && isMine) tell(asked, entry?.balance ?? '', read.ended_at ?? asked.decidedAt);
    },
  };
}

export function logOfJob(log: Log, { id, attempt, trace }: Job): Log {
  return log.with({ job: id, attempt, ...traceField(readTraceparent(trace?.parent)) });
}

/**
 * Records the spans of a job that has just ended, out of its record. Nothing waits for it, and a controller that dies meanwhile
 * leaves a trace without them.
 */
export function traceJob(
  { traces, store }: { readonly traces: Traces | null; readonly store: RecordStore },
  job: Pick<Job, 'id' | 'trace'>,
  settledFrom: number | null,
  log: Log,
): void {
  const context = readTraceparent(job.trace?.parent);
  if (traces === null || context === null) return;
  const record = async () => {
    const ended = await readStored(store, job.id);
    if (ended === null || ended.job.ended_at === null) return;
    for (const span of spansOfJob(context, { ...ended, settledFrom })) traces.record(span);
  };
  void record().catch((error) => log.debug('the job has no spans', { error }));
}
