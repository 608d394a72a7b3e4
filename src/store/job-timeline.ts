import { type AttemptStage, msOf } from '../model/attempt-stages.ts';
import { isEnded, type Job } from '../model/job.ts';
import { queueJson } from '../model/job-json.ts';
import { type AttemptMark, readPositions, type StoredJob } from './jobs/read-job.ts';
import { findJobEntry } from './money/ledger-entry.ts';
import type { RecordStore } from './script.ts';
import { readDelivery, type StoredDelivery } from './webhooks/read-deliveries.ts';

/** An event in the life of a job, and the part of the record that knows of it. */
interface TimelineEvent {
  readonly at: number;
  readonly source: 'job' | 'attempt' | 'stage' | 'ledger' | 'webhook';
  readonly text: string;
}

/** Returns the queue position of a job that waits, else `null`. */
export async function readQueue(store: RecordStore, job: Job): Promise<ReturnType<typeof queueJson> | null> {
  if (job.status !== 'QueuedJob') return null;
  const [position] = await readPositions(store, job.account, [job.id]);
  return position ? queueJson({ ...position, stage: job.stage }, null) : null;
}

/** Returns the events of a job in the order of time. */
export async function readTimeline(
  store: RecordStore,
  { job, attempts, unreadable }: Pick<StoredJob, 'job' | 'attempts' | 'unreadable'>,
): Promise<TimelineEvent[]> {
  const [entry, delivery, queue] = await Promise.all([
    findJobEntry(store, job),
    readDelivery(store, job.id),
    readQueue(store, job),
  ]);
  const events = [
    event('job', job.created_at, `It is accepted (${job.path}), and one credit is held`),
    ...attempts.flatMap((mark) => [
      event('attempt', mark.started_at, `Attempt ${mark.attempt} begins`),
      ...stageEvents(mark),
      event(
        'attempt',
        mark.ended_at,
        `Attempt ${mark.attempt} ends: ${mark.code}${reasonOf(mark)}${countsOf(mark)}${stagesOf(mark)}`,
      ),
    ]),
    event('job', unreadable.length > 0 ? store.clock.now() : null, damageOf(unreadable)),
    event('job', queue && store.clock.now(), queue?.reason ?? ''),
    event('job', job.storing_since, 'Its worker has ended well, and its file is waited for'),
    event(
      'ledger',
      entry?.at,
      entry?.kind === 'overdraft'
        ? overdraft
        : `1 credit is charged, ${payers[entry?.balance ?? ''] ?? entry?.balance}`,
    ),
    event('job', isEnded(job.status) ? job.ended_at : null, `It ends: ${endOf(job)}`),
    event('webhook', delivery?.created_at, 'Its webhook is due'),
    ...(delivery === null ? [] : deliveryEvents(delivery)),
    event('job', job.removed_at, 'Its file is removed'),
  ].flat();
  return events.sort((a, b) => a.at - b.at);
}

const stageWords: Readonly<Record<AttemptStage, string>> = {
  inspect: 'Reading the page',
  fetch: 'Downloading',
  record: 'Recording',
  convert: 'Converting',
  prove: 'Checking the file',
  upload: 'Storing the file',
};

/** One event for each stage, which says how long it took; the last one of an attempt that goes on, or did not complete, is not over. */
function stageEvents({ stages = [], code }: AttemptMark): TimelineEvent[][] {
  return stages.map(({ stage, at, ms }, n) => {
    const [words, took] = [stageWords[stage], durationOf(ms)];
    if (n < stages.length - 1 || code === 'completed') return event('stage', at, `${words} took ${took}`);
    return event(
      'stage',
      at,
      code === undefined ? `${words} takes ${took} so far` : `${words} was not finished after ${took}`,
    );
  });
}

function durationOf(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

const payers: Readonly<Record<string, string>> = {
  subscription: 'from the plan',
  packs: 'from a pack',
  credits: 'from single credits',
};
const overdraft = 'Every balance was empty: the credit is entered as an overdraft, and nothing is owed';

function event(source: TimelineEvent['source'], at: number | null | undefined, text: string): TimelineEvent[] {
  return at === null || at === undefined ? [] : [{ at, source, text }];
}

function reasonOf({ reason }: AttemptMark): string {
  return reason === undefined ? '' : ` (${reason})`;
}

function countsOf({ counts }: AttemptMark): string {
  return counts === undefined ? '' : `, which counts as ${counts === 'failure' ? 'a failure' : 'an interruption'}`;
}

function stagesOf({ stages = [] }: AttemptMark): string {
  return stages.length < 2 ? '' : `; its stages took ${durationOf(msOf(stages))} in all`;
}

function damageOf(unreadable: readonly string[]): string {
  return `Its record is damaged: ${unreadable.join(', ')} cannot be read`;
}

function endOf({ status, error_code, error, created_at, ended_at }: Job): string {
  if (status === 'CompletedJob')
    return `completed, ${durationOf(Math.max(0, (ended_at ?? 0) - created_at))} after it was accepted`;
  return `${status} (${error_code}), ${error}; the hold is released, and nothing is charged`;
}

/** One event for each attempt to deliver a webhook, and the state in which the last one left it. */
function deliveryEvents(delivery: StoredDelivery): TimelineEvent[][] {
  const { attempts, last_at, tried } = delivery;
  const last = tried.at(-1);
  // Otherwise it is open, or its sender died.
  const isNoted = last_at === null || last?.at === last_at;
  const endedAt = last_at === null ? null : last_at + (isNoted ? (last?.ms ?? 0) : 0);
  return [
    ...tried.map(({ at, ms, ...one }, n) => {
      const isAgain = tried.slice(1, n + 1).some(({ attempt }, m) => attempt <= tried[m]!.attempt);
      const words = `${isAgain ? 'Sent again: attempt' : 'Attempt'} ${one.attempt} to deliver its webhook`;
      return event('webhook', at, `${words} had ${answerOf(one.status)} after ${durationOf(ms)}`);
    }),
    event('webhook', isNoted ? null : last_at, `Attempt ${attempts} to deliver its webhook begins`),
    event('webhook', endedAt, standingOf(delivery)),
  ];
}

function answerOf(status: number | null): string {
  return status === null ? 'no answer' : `the answer ${status}`;
}

function standingOf({ state, last_status, next_at }: StoredDelivery): string {
  const answer = answerOf(last_status);
  if (state !== 'due') return `Its webhook is ${state} with ${answer}`;
  return `Its webhook has ${answer} so far, and is due again at ${new Date(next_at ?? 0).toISOString()}`;
}
