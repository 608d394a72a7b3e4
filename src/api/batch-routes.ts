import { randomUUID } from 'node:crypto';
import { refuse } from '../base/errors.ts';
import { inParallel } from '../base/in-parallel.ts';
import { batchPageSize, batchText, countItems, expandPlaylist, parseBatch } from '../model/batch.ts';
import { batchPageParameters, parseJobId } from '../model/request-parameters.ts';
import { filterFields } from '../model/select-fields.ts';
import { admitBatch, type NewBatch, tryBatch } from '../store/access/admit-batch.ts';
import type { Repeat } from '../store/access/admit-call.ts';
import { cancelBatch } from '../store/batches/cancel-batch.ts';
import { endBatch } from '../store/batches/end-batch.ts';
import { readBatch, type StoredBatch, summarizeBatch } from '../store/batches/read-batch.ts';
import { readJob, readJobs } from '../store/jobs/read-job.ts';
import type { RecordStore } from '../store/script.ts';
import { fewAtATime } from './account-turns.ts';
import type { KeyedCall, KeyedHandler } from './api-call.ts';
import { askWithin } from './ask-inspector.ts';
import { type CreditRoutes, faultOf, idempotencyKeyOf, newJob, repeatOf, webhookOf } from './credit-routes.ts';
import { enterFree, requireFlags, requireParameters, requireParsed } from './free-call.ts';
import { cancelIfOpen, type JobRoutes } from './job-routes.ts';
import { type ApiReply, acceptedReply, failureReply, rateSentence, requireAllowed } from './reply.ts';
import { isSmallBody } from './request-syntax.ts';

/** Large bodies of one account that one API reads at the same time. */
const maxReading = 8;
const maxCancelling = 20;

/** POST of a batch: one call against the rate before its body is read, and one job for each item. */
export function startBatch(routes: CreditRoutes): KeyedHandler {
  const readLarge = fewAtATime(maxReading, rateSentence('open-batches'), 1);
  return async (early) => {
    const { req, key, readBody } = early;
    await enterFree(routes.store, early, idempotencyKeyOf(early) !== undefined);
    // A large body stays in memory until it is whole.
    const body = isSmallBody(req) ? await readBody?.() : await readLarge(key.accountId, async () => readBody?.());
    const call = { ...early, ...body };
    const fault = faultOf(call);
    const request =
      fault === null ? parseBatch(call.given, routes.exceptions) : ({ ok: false, sentence: fault } as const);
    return request.ok && request.isPlaylist ? admitPlaylist(routes, call, request) : admit(routes, call, request);
  };
}

type ReadRequest = ReturnType<typeof parseBatch>;

/** Lists a playlist and admits its entries; no list is read for a caller without a credit, nor again for a repeated call. */
async function admitPlaylist(
  routes: CreditRoutes,
  call: KeyedCall,
  request: Extract<ReadRequest, { readonly ok: true }>,
): Promise<ApiReply | null> {
  const { inspector, store, admissions, exceptions } = routes;
  const repeat = repeatOf(routes, 'batch', call, () => batchText(request));
  const tried = requireAllowed(call, await tryBatch(store, call.key, { isOpen: admissions.isOpen, repeat }));
  if ('repeated' in tried) return acceptedReply('batch', routes, tried);
  const url = String(request.items[0]?.args.query);
  const ask = (gone: AbortSignal) => inspector.list(url, request.maxItems, call.key.accountId, gone);
  const listed = await askWithin(routes, call, ask).catch((error) => {
    if (call.res.destroyed) return null;
    throw error;
  });
  // Nobody would hear of the jobs.
  if (listed === null || call.res.destroyed) return null;
  if ('failure' in listed) return failureReply(listed.failure.code, listed.failure.text);
  const expanded = expandPlaylist(request, listed.entries, exceptions);
  return admit(routes, call, expanded.ok ? { ...request, items: expanded.items } : expanded, repeat);
}

/** Has the record admit a batch; a wrong one is refused with its sentence, after the key and its quota. */
async function admit(
  routes: CreditRoutes,
  call: KeyedCall,
  request: ReadRequest,
  // An Idempotency-Key in use was used with other items, which comes before wrong ones (D10).
  repeat = repeatOf(routes, 'batch', call, () => (request.ok ? batchText(request) : `wrong: ${request.sentence}`)),
): Promise<ApiReply> {
  const admitted = await admitBatch(routes.store, call.key, newBatch(routes, call, request, repeat));
  const answer = requireAllowed(call, admitted, request.ok ? undefined : request.sentence);
  return acceptedReply('batch', routes, answer);
}

/** Returns the batch that a call asks for; of a wrong one its number of items. */
function newBatch(routes: CreditRoutes, call: KeyedCall, request: ReadRequest, repeat: Repeat | null): NewBatch {
  const wanted = { id: randomUUID(), isOpen: routes.admissions.isOpen, repeat };
  if (!request.ok) return { ...wanted, valid: false, items: [], count: countItems(call.given), webhook: null };
  const { endpoint } = request;
  const items = request.items.map((item) => {
    const webhook = endpoint === 'metadata' ? null : webhookOf(routes, call, item);
    return { jobId: randomUUID(), work: newJob(call, endpoint, item.args, webhook) };
  });
  return { ...wanted, valid: true, items, count: items.length, webhook: webhookOf(routes, call, request) };
}

/** GET of a batch: its counts, and a page of its jobs in the order of its items. */
export function getBatch({ store, takeTurn }: Pick<JobRoutes, 'store' | 'takeTurn'>): KeyedHandler {
  return async (call) => {
    const { id, fields } = await enterBatch(store, call);
    return takeTurn(call, async () => {
      const batch = await readOwnBatch(store, call, id);
      const { cursor } = requireParameters(batchPageParameters, call.given);
      const body = await viewBatch(store, batch, Number(cursor ?? 0));
      return { status: 200, body: filterFields(body, fields) };
    });
  };
}

/** DELETE of a batch: cancels its open jobs. Repeating it changes nothing. */
export function deleteBatch(routes: Pick<JobRoutes, 'store' | 'takeTurn' | 'cancelled'>): KeyedHandler {
  return async (call) => {
    const { store } = routes;
    const { id, fields } = await enterBatch(store, call);
    return routes.takeTurn(call, async () => {
      const batch = await readOwnBatch(store, call, id);
      await cancelOpen(routes, batch);
      const after = (await readBatch(store, batch.id)) ?? batch;
      return { status: 200, body: filterFields(await viewBatch(store, after, 0), fields) };
    });
  };
}

async function cancelOpen({ store, cancelled }: Pick<JobRoutes, 'store' | 'cancelled'>, batch: StoredBatch) {
  const { status } = await summarizeBatch(store, batch);
  if (status !== 'Running') return;
  // Marked first: after a failure on the way the call is repeated.
  await cancelBatch(store, batch.id);
  // The last ones first, so that fewer of them start meanwhile.
  await inParallel(maxCancelling, batch.jobIds.toReversed(), async (id) => {
    const job = await readJob(store, id);
    if (job !== null) await cancelIfOpen({ store, cancelled }, job);
  });
  await endBatch(store, batch.id);
}

/** Lets in a free call about a batch. */
async function enterBatch(store: RecordStore, call: KeyedCall) {
  await enterFree(store, call);
  const flags = requireFlags(call);
  const { jobId: id } = requireParsed(parseJobId(String(call.req.params.id)));
  return { ...flags, id };
}

/** Reads a batch at the turn of its call: a cancel or an end may come while that waits. */
async function readOwnBatch(store: RecordStore, { key }: KeyedCall, id: string): Promise<StoredBatch> {
  const batch = await readBatch(store, id);
  if (batch?.account !== key.accountId) throw refuse('not_found');
  return batch;
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
