import type { Job, JobStatus } from '../../model/job.ts';
import { withRolledPeriod } from '../money/roll-period.ts';
import { type Change, changeOf, type RecordStore, run, script, text } from '../script.ts';
import { endJob, endJobArgNames, endJobIds, endJobKeyNames } from './end-job.ts';
import { maxReasonChars } from './retry-job.ts';

/**
 * Ends a job, once: final status, charge or release, ledger, request-log line, statistics and webhook in one step.
 * Only an attempt that is open completes a job. A repetition, a late attempt and a controller that does not lead change nothing.
 * Answers {'settled', balance that was charged or ''}, {'already_ended', status}, {'stale'}, {'not_found'}, {'roll'} or
 * {'not_leading'}.
 */
const settleScript = script(
  'settle',
  'always',
  [...endJobKeyNames, 'lead'] as const,
  [
    ...endJobArgNames,
    'holder',
    'attempt',
    'status',
    'code',
    'sentence',
    'log',
    'metadata',
    'delivered',
    'reason',
  ] as const,
  /* lua */ `${endJob}
if redis.call('GET', lead) ~= holder then return { 'not_leading' } end
local refused = read_job()
if refused then return refused end
if j.attempt ~= attempt or (status == 'CompletedJob' and is_counted(j)) then return { 'stale' } end
refused = read_balances()
if refused then return refused end
return { 'settled', end_job({ status = status, code = code, error = sentence, log = log, metadata = metadata, delivered = delivered, reason = reason }) }
`,
);

export interface JobEnding {
  readonly status: JobStatus;
  readonly code: string | null;
  readonly text: string | null;
  readonly log: number;
  readonly metadata: unknown;
  readonly delivered: unknown;
  /** Cause of the last interruption, for the mark of the attempt. */
  readonly reason?: string | undefined;
}

/** Gives the balance that was charged, or ''. */
export async function settleJob(
  store: RecordStore,
  holder: string,
  job: Pick<Job, 'id' | 'account' | 'key' | 'endpoint' | 'attempt'>,
  end: JobEnding,
): Promise<Change<'already_ended' | 'stale' | 'not_found' | 'not_leading', { readonly balance: string }>> {
  const reply = await withRolledPeriod(store, job.account, () =>
    run(store, settleScript, {
      ...endJobIds(job),
      holder,
      attempt: job.attempt,
      status: end.status,
      code: end.code ?? '',
      sentence: end.text ?? '',
      log: end.log,
      metadata: end.metadata ? JSON.stringify(end.metadata) : '',
      delivered: end.delivered ? JSON.stringify(end.delivered) : '',
      reason: (end.reason ?? '').slice(0, maxReasonChars),
    }),
  );
  return changeOf(reply, 'settled', { balance: text(reply[1]) });
}
