import { randomUUID } from 'node:crypto';
import { failures, refuse } from '../base/errors.ts';
import { batchPageSize, batchText, countItems, parseBatch } from '../model/batch.ts';
import { batchPageParameters, parseJobId } from '../model/request-parameters.ts';
import { filterFields } from '../model/select-fields.ts';
import { admitBatch, type NewBatch } from '../store/batches/admit-batch.ts';
import { cancelBatch } from '../store/batches/cancel-batch.ts';
import { endBatch } from '../store/batches/end-batch.ts';
import { readBatch, type StoredBatch, summarizeBatch } from '../store/batches/read-batch.ts';
import { cancelJob } from '../store/jobs/cancel-job.ts';
import { readJob, readJobs } from '../store/jobs/read-job.ts';
import type { RecordStore } from '../store/script.ts';
import type { KeyedCall, KeyedHandler } from './app.ts';
import { type CreditRoutes, faultOf, newJob, repeatOf, webhookOf } from './credit-routes.ts';
import { enterFree, requireFlags, requireParameters, requireParsed } from './free-call.ts';
import type { JobRoutes } from './job-routes.ts';
import { rateSentence, requireAllowed } from './reply.ts';

type BatchRoutes = Pick<CreditRoutes, 'store' | 'seal' | 'asyncStatus' | 'exceptions' | 'admissions'>;

/** Bodies of one account that one API reads at the same time. */
const maxReading = 8;
/** Jobs that are cancelled at the same time. */
const maxCancelling = 20;

/** POST of a batch: one call against the rate before its body is read, and one job for each item. */
export function startBatch(routes: BatchRoutes): KeyedHandler {
  const reading = new Map<string, number>();
  return async (early) => {
    await enterFree(routes.store, early);
    const call = { ...early, ...(await readOneOfFew(reading, early)) };
    const fault = faultOf(call);
    const batch = newBatch(routes, call, fault);
    const admitted = await admitBatch(routes.store, call.key, batch.wanted);
    const answer = requireAllowed(call.res, admitted, batch.sentence);
    const id = 'admitted' in answer ? answer.admitted : answer.repeated;
    const headers: Record<string, string> = { location: `/v1/batches/${id}` };
    if ('admitted' in answer) headers['x-credits-held'] = String(answer.held);
    return { status: routes.asyncStatus, loggedStatus: 202, body: { batch_id: id }, headers };
  };
}

/** Reads the body of a call, unless as many of its account are on their way: they stay in memory until they are whole. */
async function readOneOfFew(reading: Map<string, number>, { key, readBody }: KeyedCall) {
  const { accountId } = key;
  const before = reading.get(accountId) ?? 0;
  if (before >= maxReading) throw refuse('rate_limited', rateSentence('open-batches'), 1);
  reading.set(accountId, before + 1);
  try {
    return await readBody?.();
  } finally {
    const left = (reading.get(accountId) ?? 1) - 1;
    if (left > 0) reading.set(accountId, left);
    else reading.delete(accountId);
  }
}

/** Returns the batch that a call asks for; of a wrong one its number of items, and the sentence that refuses it. */
function newBatch(
  routes: BatchRoutes,
  call: KeyedCall,
  fault: string | null,
): { readonly wanted: NewBatch; readonly sentence?: string } {
  const { exceptions, admissions } = routes;
  const request = fault === null ? parseBatch(call.given, exceptions) : ({ ok: false, sentence: fault } as const);
  const wanted = { id: randomUUID(), isOpen: admissions.isOpen(), count: countItems(call.given) };
  if (!request.ok) {
    return { wanted: { ...wanted, valid: false, repeat: null, items: [], webhook: null }, sentence: request.sentence };
  }
  const { endpoint } = request;
  const items = request.items.map((item) => {
    const webhook = endpoint === 'metadata' ? null : webhookOf(routes, call, item);
    return { jobId: randomUUID(), work: newJob(call, endpoint, item.args, webhook) };
  });
  const repeat = repeatOf(routes, 'batch', call, () => batchText(request));
  return { wanted: { ...wanted, valid: true, repeat, items, webhook: webhookOf(routes, call, request) } };
}

/** GET of a batch: its counts, and a page of its jobs in the order of its items. */
export function getBatch(store: RecordStore): KeyedHandler {
  return async (call) => {
    const { batch, fields } = await enterBatch(store, call);
    const { cursor } = requireParameters(batchPageParameters, call.given);
    return { status: 200, body: filterFields(await viewBatch(store, batch, Number(cursor ?? 0)), fields) };
  };
}

/** DELETE of a batch: cancels its open jobs. Repeating it changes nothing. */
export function deleteBatch({ store, cancelled }: Pick<JobRoutes, 'store' | 'cancelled'>): KeyedHandler {
  return async (call) => {
    const { batch, fields } = await enterBatch(store, call);
    const { status } = await summarizeBatch(store, batch);
    if (status === 'Running') {
      // Marked first: after a failure on the way the call is repeated.
      await cancelBatch(store, batch.id);
      // The last ones first, so that fewer of them start meanwhile.
      const ids = batch.jobIds.toReversed();
      for (let from = 0; from < ids.length; from += maxCancelling) {
        await Promise.all(ids.slice(from, from + maxCancelling).map((id) => cancelOpen(store, id, cancelled)));
      }
      await endBatch(store, batch.id);
    }
    const after = (await readBatch(store, batch.id)) ?? batch;
    return { status: 200, body: filterFields(await viewBatch(store, after, 0), fields) };
  };
}

async function cancelOpen(store: RecordStore, jobId: string, cancelled: JobRoutes['cancelled']): Promise<void> {
  const job = await readJob(store, jobId);
  if (job === null || job.ended_at !== null) return;
  const { done } = await cancelJob(store, job, failures.cancelled.sentence);
  if (done) cancelled(job);
}

/** Lets in a free call about one of the caller's own batches, and reads the batch. */
async function enterBatch(store: RecordStore, call: KeyedCall) {
  await enterFree(store, call);
  const flags = requireFlags(call);
  const { jobId: id } = requireParsed(parseJobId(String(call.req.params.id)));
  const batch = await readBatch(store, id);
  if (batch?.account !== call.key.accountId) throw refuse('not_found');
  return { ...flags, batch };
}

async function viewBatch(store: RecordStore, batch: StoredBatch, from: number) {
  const ids = batch.jobIds.slice(from, from + batchPageSize);
  const [summary, jobs] = [await summarizeBatch(store, batch), await readJobs(store, ids)];
  const next = from + batchPageSize;
  return {
    ...summary,
    jobs: jobs.map((job, n) => ({
      query: job?.args.query ?? null,
      job_id: ids[n],
      status: job?.status ?? null,
      error: job?.error ?? null,
      error_code: job?.error_code ?? null,
    })),
    next_cursor: next < batch.jobIds.length ? String(next) : null,
  };
}
