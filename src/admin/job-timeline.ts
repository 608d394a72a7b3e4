import { isEnded, type Job } from '../model/job.ts';
import type { Entry } from '../model/ledger.ts';
import type { AttemptMark } from '../store/jobs/read-job.ts';
import type { Delivery } from '../store/webhooks/read-deliveries.ts';

/** Something that happened to a job, and what the record knows it from. */
export interface Happening {
  readonly at: number;
  readonly source: 'job' | 'attempt' | 'ledger' | 'webhook';
  readonly text: string;
}

/** What the record knows of a job. */
export interface Known {
  readonly job: Job;
  readonly attempts: readonly AttemptMark[];
  readonly entry: Entry | null;
  readonly delivery: Delivery | null;
  /** Why it waits now, when it does. */
  readonly waits: { readonly at: number; readonly reason: string } | null;
}

/** Tells everything that the record knows of a job, in the order of time. */
export function timelineOf({ job, attempts, entry, delivery, waits }: Known): Happening[] {
  const told = [
    happening('job', job.created_at, `It is accepted (${job.path}), and one credit is held`),
    ...attempts.flatMap((mark) => [
      happening('attempt', mark.started_at, `Attempt ${mark.attempt} begins`),
      happening(
        'attempt',
        mark.ended_at,
        `Attempt ${mark.attempt} ends: ${mark.code}${reasonOf(mark)}${countsOf(mark)}`,
      ),
    ]),
    happening('job', waits?.at, waits?.reason ?? ''),
    happening('job', job.storing_since, 'Its worker has ended well, and its file is waited for'),
    happening(
      'ledger',
      entry?.at,
      entry?.kind === 'overdraft' ? overdraft : `1 credit of ${entry?.balance} is charged`,
    ),
    happening('job', isEnded(job.status) ? job.ended_at : null, `It ends: ${endOf(job)}`),
    happening('webhook', delivery?.created_at, 'Its webhook is due'),
    happening('webhook', delivery?.last_at, `Attempt ${delivery?.attempts} to deliver its webhook begins`),
    happening('webhook', delivery?.last_at, delivery ? standingOf(delivery) : ''),
    happening('job', job.removed_at, 'Its file is removed'),
  ].flat();
  return told.sort((a, b) => a.at - b.at);
}

const overdraft = '1 credit is owed: every balance was empty';

function happening(source: Happening['source'], at: number | null | undefined, text: string): Happening[] {
  return at === null || at === undefined ? [] : [{ at, source, text }];
}

function reasonOf({ reason }: AttemptMark): string {
  return reason === undefined ? '' : ` (${reason})`;
}

function countsOf({ counts }: AttemptMark): string {
  return counts === undefined ? '' : `, which counts as ${counts === 'failure' ? 'a failure' : 'an interruption'}`;
}

function endOf({ status, error_code, error }: Job): string {
  if (status === 'CompletedJob') return status;
  return `${status} (${error_code}), ${error}; the hold is released, and nothing is charged`;
}

function standingOf({ state, last_status, next_at }: Delivery): string {
  const answer = last_status === null ? 'no answer' : `the answer ${last_status}`;
  if (state !== 'due') return `Its webhook is ${state} with ${answer}`;
  return `Its webhook has ${answer} so far, and is due again at ${new Date(next_at ?? 0).toISOString()}`;
}
