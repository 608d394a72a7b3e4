import { refuse } from '../base/errors.ts';
import { makeLink } from '../model/file-link.ts';
import { isEnded, type Job } from '../model/job.ts';
import { jobJson } from '../model/job-json.ts';
import { writeTime } from '../model/timestamp.ts';
import { readAccount } from '../store/accounts/read-accounts.ts';
import { readQueue, readTimeline } from '../store/job-timeline.ts';
import { cancelJob } from '../store/jobs/cancel-job.ts';
import { mendJob } from '../store/jobs/mend-job.ts';
import { readStored, type StoredJob } from '../store/jobs/read-job.ts';
import { noteOperation } from '../store/note-operation.ts';
import type { RecordStore } from '../store/script.ts';
import { type CommandResult, type CommandTools, command } from './command.ts';
import { jobId } from './command-values.ts';
import { type Cell, fieldText, listResult, timeText } from './text-table.ts';

const id = { read: jobId, text: 'Id of the job.' } as const;
const json = [
  '{id, status, success, endpoint, created_at, started_at, completed_at, duration_ms, progress, args, result, error, error_code,',
  'retryable, queue, stage, speed_bytes, eta_seconds, account}',
].join(' ');

export const jobCommands = {
  'job show': command({
    text: 'Shows a job as its caller sees it, with its account; queue, stage, speed_bytes and eta_seconds only while it has them.',
    json,
    operands: { ID: id },
    run: async (given, tools) => show((await findJob(tools.store, given.ID)).job, tools),
  }),
  'job explain': command({
    text: 'Shows the timeline of a job: its attempts, its money, its webhook.',
    json: '[{at, source, text}]',
    operands: { ID: id },
    run: async (given, { store }) => {
      return listResult(
        await readTimeline(store, await findJob(store, given.ID)),
        (one) => ({ ...one, at: writeTime(one.at) }),
        ({ at, source, text }) => ({ 'at (UTC)': timeText(at), source, text }),
        'Nothing has happened.',
      );
    },
  }),
  'job cancel': command({
    text: 'Cancels a job and shows it; an ended job does not change.',
    json,
    operands: { ID: id },
    run: async (given, tools) => {
      // Also one whose record names no account any more, or is lost.
      await mendJob(tools.store, given.ID);
      const { job } = await findJob(tools.store, given.ID);
      if (!isEnded(job.status)) {
        await noteOperation(tools.store, job.account, { action: 'job.cancel', target: job.id });
        await cancelJob(tools.store, job);
      }
      return show((await findJob(tools.store, given.ID)).job, tools);
    },
  }),
};

async function findJob(store: RecordStore, jobId: string): Promise<StoredJob> {
  const job = await readStored(store, jobId);
  if (job === null) throw refuse('not_found', `There is no job ${jobId}`);
  return job;
}

async function show(job: Job, { store, config, seal }: CommandTools): Promise<CommandResult> {
  const expires_at = job.ended_at === null ? null : job.ended_at + config.fileHours * 3_600_000;
  const hasFile = job.delivered !== null && expires_at !== null;
  const link = hasFile ? makeLink(job, expires_at, config.publicUrl, (await seal()).sign) : null;
  const queue = await readQueue(store, job);
  const { slug } = await readAccount(store, job.account);
  const value = { ...jobJson(job, { now: store.clock.now(), link, expires_at, queue }), account: slug };
  const fields = Object.entries(value).map(([name, field]): [string, Cell] => [name, cellOf(field)]);
  return { value, text: fieldText(Object.fromEntries(fields)) };
}

function cellOf(value: unknown): Cell {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as Cell);
}
