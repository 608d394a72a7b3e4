import { refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { isEnded, type Job } from '../model/job.ts';
import { type Flags, listParameters, parseJobId, pollParameters } from '../model/request-parameters.ts';
import { filterFields } from '../model/select-fields.ts';
import { pollJoined } from '../store/access/join-calls.ts';
import { cancelJob } from '../store/jobs/cancel-job.ts';
import { type Cursor, listJobs } from '../store/jobs/list-jobs.ts';
import { removeFile } from '../store/jobs/remove-file.ts';
import type { RecordStore } from '../store/script.ts';
import type { TakeTurn } from './account-turns.ts';
import type { KeyedCall, KeyedHandler } from './api-call.ts';
import {
  enterAgain,
  enterFree,
  requireCursor,
  requireFlags,
  requireParameters,
  requireParsed,
  writeCursor,
} from './free-call.ts';
import { readOwnJob, type ViewJob, viewJobs } from './job-view.ts';
import { followJob, type WatchJob } from './job-watch.ts';
import { requireAllowed } from './reply.ts';

export interface JobRoutes {
  readonly store: RecordStore;
  readonly viewJob: ViewJob;
  readonly watchJob: WatchJob;
  /** For pages of jobs. */
  readonly takeTurn: TakeTurn;
  readonly cancelled: (job: Job) => void;
  readonly log: Log;
  /** A stream whose caller has not read for this time is ended. */
  readonly unreadMs: number;
  /** Aborted when the process stops: then every waiting call is answered. */
  readonly draining: AbortSignal;
}

/** GET of a job, at once or at its end (`wait`). */
export function getJob(routes: JobRoutes): KeyedHandler {
  return async (call) => {
    const id = parseJobId(String(call.req.params.id));
    // Key and rate come before the parameters (D10).
    if (!id.ok) await enterFree(routes.store, call).then(() => requireFlags(call));
    const { jobId } = requireParsed(id);
    const answer = await pollJoined(routes.store, call.key, jobId);
    const isUnknown = 'refused' in answer && answer.refused === 'not_found';
    // Key and rate come before the parameters, and these before the job (D10).
    const found = requireAllowed(call, isUnknown ? { rates: answer.rates } : answer);
    const { fields } = requireFlags(call);
    const { wait } = requireParameters(pollParameters, call.given);
    if (!('job' in found)) throw refuse('not_found');
    if (wait === 0 || isEnded(found.job.status)) {
      return { status: 200, body: filterFields(routes.viewJob(found.job, found.position), fields) };
    }
    const job = await call.idle(() => waitForEnd(routes, call, found.job, wait));
    await enterAgain(routes.store, call);
    // Read anew: other jobs of the account may have left the queue meanwhile.
    const [body = {}] = await viewJobs(routes.store, routes.viewJob, job.account, [job]);
    return { status: 200, body: filterFields(body, fields) };
  };
}

/** GET of a page of the jobs of the account, newest first. */
export function getJobs(routes: JobRoutes): KeyedHandler {
  return async (call) => {
    await enterFree(routes.store, call);
    const { fields } = requireFlags(call);
    const wanted = requirePage(call.given);
    return routes.takeTurn(call, async () => {
      const body = await viewPage(routes, call.key.accountId, wanted);
      return { status: 200, body: filterFields(body, fields) };
    });
  };
}

type WantedPage = Parameters<typeof listJobs>[2];

/** Returns the page of the list that parameters ask for; refuses them for one that is wrong. */
export function requirePage(given: KeyedCall['given']): WantedPage {
  const { cursor, ...wanted } = requireParameters(listParameters, given);
  return { ...wanted, after: cursor === undefined ? null : readJobCursor(cursor) };
}

export function readJobCursor(text: string): Cursor {
  const [at, id] = requireCursor(text, /^(\d{1,15}) ([0-9a-f-]{36})$/);
  return { created_at: Number(at), id };
}

/** Returns one page of the list, with where the next one begins. */
export async function viewPage(
  { store, viewJob }: Pick<JobRoutes, 'store' | 'viewJob'>,
  accountId: string,
  wanted: WantedPage,
) {
  const { jobs, positions, next } = await listJobs(store, accountId, wanted);
  const shown = await viewJobs(store, viewJob, accountId, jobs, positions);
  return { jobs: shown, next_cursor: next && writeCursor(next.created_at, next.id) };
}

/** DELETE of a job: cancels it, or removes the file of one that has ended. Repeating it changes nothing. */
export function deleteJob(routes: JobRoutes): KeyedHandler {
  return async (call) => {
    const { job, fields } = await enterJob(routes, call);
    // One that ends meanwhile keeps its file: the caller has not seen that it is charged.
    if (isEnded(job.status) && mayHaveFile(job)) await removeFile(routes.store, job);
    else await cancelIfOpen(routes, job);
    const after = (await readOwnJob(routes.store, call.key.accountId, job.id)) ?? job;
    return { status: 200, body: filterFields(routes.viewJob(after, null), fields) };
  };
}

/** A completed job whose record is damaged may have a file that its record does not name any more. */
function mayHaveFile({ status, delivered, unreadable }: Job): boolean {
  return delivered !== null || (status === 'CompletedJob' && unreadable !== undefined);
}

export async function cancelIfOpen({ store, cancelled }: Pick<JobRoutes, 'store' | 'cancelled'>, job: Job) {
  if (!isEnded(job.status) && (await cancelJob(store, job)).done) cancelled(job);
}

/** Lets in a free call about one of the caller's own jobs, and reads the job. */
export async function enterJob({ store }: JobRoutes, call: KeyedCall): Promise<Flags & { readonly job: Job }> {
  await enterFree(store, call);
  const flags = requireFlags(call);
  const { jobId } = requireParsed(parseJobId(String(call.req.params.id)));
  const job = await readOwnJob(store, call.key.accountId, jobId);
  if (job === null) throw refuse('not_found');
  return { ...flags, job };
}

/** Returns the job at its end, or after the time. */
async function waitForEnd(routes: JobRoutes, { res }: KeyedCall, first: Job, seconds: number): Promise<Job> {
  if (routes.draining.aborted) return first;
  return (await followJob(routes, { first, res, seconds }))?.job ?? first;
}
