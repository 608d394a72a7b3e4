import { failures, refuse } from '../base/errors.ts';
import { makeLink } from '../model/file-link.ts';
import { isEnded, type Job } from '../model/job.ts';
import { jobJson, queueJson } from '../model/job-json.ts';
import { writeTime } from '../model/timestamp.ts';
import { readAccount } from '../store/accounts/read-accounts.ts';
import { cancelJob } from '../store/jobs/cancel-job.ts';
import { type AttemptMark, readAttempts, readJob, readPositions } from '../store/jobs/read-job.ts';
import { findEntry } from '../store/log/read-ledger.ts';
import type { RecordStore } from '../store/script.ts';
import { readDelivery, type StoredDelivery } from '../store/webhooks/read-deliveries.ts';
import { type CommandResult, type CommandTools, command } from './command.ts';
import { jobId } from './command-values.ts';
import { type Cell, fieldText, listResult, timeText } from './text-table.ts';

const id = { read: jobId, text: 'Id of the job.' } as const;
const json = [
  '{id, status, success, endpoint, created_at, started_at, completed_at, duration_ms, progress, args, result, error, error_code,',
  'retryable, queue, stage, speed_bytes, eta_seconds, account}',
].join(' ');

/** An event in the life of a job, and the part of the record that knows of it. */
interface TimelineEvent {
  readonly at: number;
  readonly source: 'job' | 'attempt' | 'ledger' | 'webhook';
  readonly text: string;
}

export const jobCommands = [
  command({
    group: 'job',
    verb: 'show',
    text: 'Shows a job as its caller sees it, with its account; queue, stage, speed_bytes and eta_seconds only while it has them.',
    json,
    operands: { ID: id },
    run: async (given, tools) => show(await findJob(tools.store, given.ID), tools),
  }),
  command({
    group: 'job',
    verb: 'explain',
    text: 'Shows the timeline of a job: its attempts, its money, its webhook.',
    json: '[{at, source, text}]',
    operands: { ID: id },
    run: async (given, { store }) => {
      return listResult(
        await timelineOf(store, await findJob(store, given.ID)),
        (one) => ({ ...one, at: writeTime(one.at) }),
        ({ at, source, text }) => ({ 'at (UTC)': timeText(at), source, text }),
        'Nothing has happened.',
      );
    },
  }),
  command({
    group: 'job',
    verb: 'cancel',
    text: 'Cancels a job and shows it; an ended job does not change.',
    json,
    operands: { ID: id },
    run: async (given, tools) => {
      const job = await findJob(tools.store, given.ID);
      if (!isEnded(job.status)) await cancelJob(tools.store, job, failures.cancelled.sentence);
      return show(await findJob(tools.store, given.ID), tools);
    },
  }),
];

async function findJob(store: RecordStore, id: string): Promise<Job> {
  const job = await readJob(store, id);
  if (job === null) throw refuse('not_found', `There is no job ${id}`);
  return job;
}

async function findQueue(store: RecordStore, job: Job): Promise<ReturnType<typeof queueJson> | null> {
  if (job.status !== 'QueuedJob') return null;
  const [position] = await readPositions(store, job.account, [job.id]);
  return position ? queueJson({ ...position, stage: job.stage }, null) : null;
}

async function show(job: Job, { store, config, seal }: CommandTools): Promise<CommandResult> {
  const expires_at = job.ended_at === null ? null : job.ended_at + config.fileHours * 3_600_000;
  const hasFile = job.delivered !== null && expires_at !== null;
  const link = hasFile ? makeLink(job, expires_at, config.publicUrl, (await seal()).sign) : null;
  const queue = await findQueue(store, job);
  const { slug } = await readAccount(store, job.account);
  const value = { ...jobJson(job, { now: store.clock.now(), link, expires_at, queue }), account: slug };
  const fields = Object.entries(value).map(([name, field]): [string, Cell] => [name, cellOf(field)]);
  return { value, text: fieldText(Object.fromEntries(fields)) };
}

function cellOf(value: unknown): Cell {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as Cell);
}

/** Returns the events of a job in the order of time. */
async function timelineOf(store: RecordStore, job: Job): Promise<TimelineEvent[]> {
  const [attempts, entry, delivery, queue] = await Promise.all([
    readAttempts(store, job.id),
    findEntry(store, job),
    readDelivery(store, job.id),
    findQueue(store, job),
  ]);
  const events = [
    event('job', job.created_at, `It is accepted (${job.path}), and one credit is held`),
    ...attempts.flatMap((mark) => [
      event('attempt', mark.started_at, `Attempt ${mark.attempt} begins`),
      event('attempt', mark.ended_at, `Attempt ${mark.attempt} ends: ${mark.code}${reasonOf(mark)}${countsOf(mark)}`),
    ]),
    event('job', queue && store.clock.now(), queue?.reason ?? ''),
    event('job', job.storing_since, 'Its worker has ended well, and its file is waited for'),
    event('ledger', entry?.at, entry?.kind === 'overdraft' ? overdraft : `1 credit of ${entry?.balance} is charged`),
    event('job', isEnded(job.status) ? job.ended_at : null, `It ends: ${endOf(job)}`),
    event('webhook', delivery?.created_at, 'Its webhook is due'),
    event('webhook', delivery?.last_at, `Attempt ${delivery?.attempts} to deliver its webhook begins`),
    event('webhook', delivery?.last_at, delivery ? standingOf(delivery) : ''),
    event('job', job.removed_at, 'Its file is removed'),
  ].flat();
  return events.sort((a, b) => a.at - b.at);
}

const overdraft = '1 credit is owed: every balance was empty';

function event(source: TimelineEvent['source'], at: number | null | undefined, text: string): TimelineEvent[] {
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

function standingOf({ state, last_status, next_at }: StoredDelivery): string {
  const answer = last_status === null ? 'no answer' : `the answer ${last_status}`;
  if (state !== 'due') return `Its webhook is ${state} with ${answer}`;
  return `Its webhook has ${answer} so far, and is due again at ${new Date(next_at ?? 0).toISOString()}`;
}
