import type { Job } from '../../model/job.ts';
import { shortenMetadata } from '../../model/metadata.ts';
import type { JobEnd } from '../../model/next.ts';
import { withRolledPeriod } from '../money/roll-period.ts';
import { type Change, changeOf, type RecordStore, run, script, text } from '../script.ts';
import {
  type Early,
  type EndingJob,
  earlyOf,
  endJob,
  endJobArgNames,
  endJobKeyNames,
  endJobValues,
  refuseEarly,
} from './end-job.ts';
import { packTexts } from './ended-job.ts';
import { maxReasonChars } from './retry-job.ts';

/**
 * Ends a job, once: final status, charge or release, ledger, request-log line, statistics and webhook in one step.
 * Only an attempt that is open completes a job. A repetition, a late attempt and a controller that does not lead change nothing.
 * One that ends for its age does not before it is due by TIME of this moment, whatever its controller took for the time.
 * Answers {'settled', balance that was charged or ''}, {'early', now}, {'already_ended'}, {'stale'}, {'not_found'}, {'roll'} or
 * {'not_leading'}.
 */
const settleJobScript = script(
  'settle-job',
  'always',
  [...endJobKeyNames, 'lead'],
  [...endJobArgNames, 'term', 'attempt', 'status', 'code', 'log', 'isDelivered', 'reason', 'dueAt'],
)`${endJob}
if redis.call('GET', lead) ~= term then return { 'not_leading' } end
local refused = read_job()
if refused then return refused end
if j.attempt ~= attempt or (status == 'CompletedJob' and is_counted(j)) then return { 'stale' } end
${refuseEarly}
refused = read_balances()
if refused then return refused end
return 'settled' .. ' ' .. end_job({ status = status, code = code, log = log, is_delivered = isDelivered == '1', reason = reason })
`;

export interface JobEnding extends Pick<JobEnd, 'status' | 'code' | 'text' | 'log'> {
  readonly metadata: Job['metadata'];
  readonly delivered: Job['delivered'];
  /** Cause of the last interruption, for the mark of the attempt. */
  readonly reason?: string | undefined;
  /** Earliest time at which the job may end so; absent where its age is not the cause. */
  readonly dueAt?: number | undefined;
}

/** Returns the balance that was charged, or ''. Long metadata is shortened for all who read it from now on. */
export async function settleJob(
  store: RecordStore,
  term: string,
  job: EndingJob & Pick<Job, 'attempt'>,
  end: JobEnding,
): Promise<Change<'already_ended' | 'stale' | 'not_found' | 'not_leading', { readonly balance: string }> | Early> {
  const metadata = end.metadata && shortenMetadata(end.metadata);
  const { status, code, log, delivered, reason, dueAt } = end;
  const texts = packTexts({ ...job, error: end.text, metadata, delivered });
  const values = {
    ...endJobValues(job, texts),
    ...{ term, attempt: job.attempt, status, code, log, dueAt },
    ...{ isDelivered: delivered !== null, reason: reason?.slice(0, maxReasonChars) },
  };
  const reply = await withRolledPeriod(store, job.account, () => run(store, settleJobScript, values));
  return earlyOf(reply) ?? changeOf(reply, 'settled', { balance: text(reply[1]) });
}
