import { failures } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { isEnded, type Job } from '../model/job.ts';
import { parseJobId, parseList, parseWait } from '../model/request-parameters.ts';
import { filterFields } from '../model/select-fields.ts';
import { cancelJob } from '../store/jobs/cancel-job.ts';
import { type Cursor, listJobs } from '../store/jobs/list-jobs.ts';
import { pollJob } from '../store/jobs/read-job.ts';
import { removeFile } from '../store/jobs/remove-file.ts';
import type { RecordStore } from '../store/script.ts';
import { type Ask, type Entered, enterFree, type Handler, isRefused, judgeFlags } from './ask.ts';
import { readOwn, type Show, showAll } from './job-view.ts';
import type { Watch } from './job-watch.ts';
import { type Reply, refusal, refusedReply, type Statuses } from './reply.ts';

/** What the routes about jobs need. */
export interface JobRoutes {
  readonly store: RecordStore;
  readonly statuses: Statuses;
  readonly show: Show;
  readonly watch: (job: string) => Promise<Watch>;
  readonly log: Log;
  /** After this time who waits looks again, in case a hint was lost. */
  readonly rereadMilliseconds: number;
  /** Once it is aborted, whoever waits is answered. */
  readonly draining: AbortSignal;
}

/** GET of a job, at once or at its end (`wait`). */
export function poll(routes: JobRoutes): Handler {
  return async (ask) => {
    const id = parseJobId(String(ask.req.params.id));
    if (!id.ok) return refuseAfterEntry(routes, ask, id.sentence);
    const seen = await pollJob(routes.store, ask.key, id.id);
    if (isRefused(seen)) return refusedReply(seen, routes.statuses);
    const wait = parseWait(ask.given);
    const flags = judgeFlags(ask);
    if ('reply' in flags) return { ...flags.reply, rates: seen.rates };
    if (!wait.ok) return { ...refusal('bad_request', wait.sentence), rates: seen.rates };
    const { waitSeconds } = wait;
    const job = waitSeconds > 0 ? await ask.idle(() => waitForEnd(routes, ask, seen.job, waitSeconds)) : seen.job;
    const body = filterFields(routes.show(job, seen.place), flags.flags.fields);
    return { status: 200, body: body, rates: seen.rates };
  };
}

/** GET of the list. */
export function list(routes: JobRoutes): Handler {
  return async (ask) => {
    const answer = await enterFree(routes.store, ask, routes.statuses);
    if ('reply' in answer) return answer.reply;
    const { rates, flags } = answer.entered;
    const wanted = parseList(ask.given);
    if (!wanted.ok) return { ...refusal('bad_request', wanted.sentence), rates };
    const after = wanted.cursor === undefined ? null : readCursor(wanted.cursor);
    if (after === undefined) {
      return { ...refusal('bad_request', 'Bad Request: cursor must be the next_cursor of an earlier answer'), rates };
    }
    const { jobs, next } = await listJobs(routes.store, ask.key.account, { ...wanted, after });
    const shown = await showAll(routes.store, routes.show, ask.key.account, jobs);
    const body = { jobs: shown, next_cursor: next && writeCursor(next) };
    return { status: 200, body: filterFields(body, flags.fields), rates };
  };
}

/** DELETE of a job: cancels it, or removes the file of one that has ended. Repeating it changes nothing. */
export function remove(routes: JobRoutes): Handler {
  return async (ask) => {
    const found = await enterJob(routes, ask);
    if ('reply' in found) return found.reply;
    const { job, rates, flags } = found;
    if (!isEnded(job.status)) await cancelJob(routes.store, job, failures.cancelled.sentence);
    else if (job.delivered !== null) await removeFile(routes.store, job);
    const after = (await readOwn(routes.store, ask.key.account, job.id)) ?? job;
    return { status: 200, body: filterFields(routes.show(after, null), flags.fields), rates };
  };
}

/** A free call about one of the caller's own jobs, or the reply that refuses it. */
export async function enterJob(
  { store, statuses }: JobRoutes,
  ask: Ask,
): Promise<(Entered & { readonly job: Job }) | { readonly reply: Reply }> {
  const answer = await enterFree(store, ask, statuses);
  if ('reply' in answer) return answer;
  const { rates } = answer.entered;
  const id = parseJobId(String(ask.req.params.id));
  if (!id.ok) return { reply: { ...refusal('bad_request', id.sentence), rates } };
  const job = await readOwn(store, ask.key.account, id.id);
  return job === null ? { reply: { ...refusal('not_found'), rates } } : { ...answer.entered, job };
}

async function refuseAfterEntry(routes: JobRoutes, ask: Ask, sentence: string): Promise<Reply> {
  const answer = await enterFree(routes.store, ask, routes.statuses);
  return 'reply' in answer ? answer.reply : { ...refusal('bad_request', sentence), rates: answer.entered.rates };
}

/** Reads again at each hint, and now and then in case one was lost, until the job has ended or the time is over. */
async function waitForEnd(routes: JobRoutes, ask: Ask, first: Job, seconds: number): Promise<Job> {
  if (isEnded(first.status) || routes.draining.aborted) return first;
  const watch = await routes.watch(first.id);
  ask.res.once('close', watch.close);
  const end = performance.now() + seconds * 1000;
  let job = first;
  try {
    for (;;) {
      job = (await readOwn(routes.store, first.account, first.id)) ?? job;
      const left = end - performance.now();
      const isOver = left <= 0 || ask.res.destroyed || routes.draining.aborted;
      if (isEnded(job.status) || isOver) return job;
      await watch.changed(Math.min(left, routes.rereadMilliseconds));
    }
  } finally {
    ask.res.off('close', watch.close);
    watch.close();
  }
}

function writeCursor({ created_at, id }: Cursor): string {
  return Buffer.from(`${created_at} ${id}`).toString('base64url');
}

function readCursor(text: string): Cursor | undefined {
  const [, at, id] = /^(\d{1,15}) ([0-9a-f-]{36})$/.exec(Buffer.from(text, 'base64url').toString()) ?? [];
  return at === undefined || id === undefined ? undefined : { created_at: Number(at), id };
}
