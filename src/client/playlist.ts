import { inParallel } from '../base/in-parallel.ts';
import { describeFailure, type FileRow, type GetTools, sendOrder, type WantedFile } from './get-file.ts';
import { CallRefused } from './service-client.ts';

/** The service reads the list for up to 50 s, and may have the call wait for a free inspector before. */
const listMs = 75_000;
const cancelMs = 10_000;

interface BatchPage {
  readonly jobs?: readonly { readonly query?: unknown; readonly job_id?: unknown; readonly status?: unknown }[];
  readonly next_cursor?: unknown;
}

/** Has the service expand a playlist into jobs and takes each, so many at once. Returns the row of a playlist that is refused. */
export async function expandPlaylist(
  tools: GetTools,
  query: string,
  maxItems: number,
  parallel: number,
  take: (wanted: WantedFile) => Promise<void>,
): Promise<{ row: FileRow; cause: unknown } | null> {
  const { interrupted: signal } = tools;
  const takenIds = new Set<unknown>();
  let batch: string | null = null;
  try {
    batch = await startBatch(tools, query, maxItems);
    await inParallel(parallel, await readJobs(tools, batch), async (wanted) => {
      if (signal.aborted) return;
      takenIds.add(wanted.jobId);
      await take(wanted);
    });
    signal.throwIfAborted();
    return null;
  } catch (cause) {
    if (signal.aborted) {
      if (batch !== null) await cancelBatch(tools, batch, takenIds);
      return null;
    }
    // Its jobs go on.
    if (batch !== null) tools.noteUnfinished();
    const failure = describeFailure(cause, signal);
    const isUnknown = batch === null && cause instanceof CallRefused && cause.status === 404;
    const error = isUnknown && cause.message === 'Not Found' ? 'This service does not expand playlists' : failure.error;
    const none = { job_id: null, status: null, path: null, bytes: null, sha256: null };
    return { row: { query, ...none, ...failure, error }, cause };
  }
}

/** Orders the jobs of a playlist and returns the id of their batch. */
async function startBatch(tools: GetTools, query: string, maxItems: number): Promise<string> {
  const { order, client, patience, interrupted: signal } = tools;
  // The first contact: reading the list takes longer than the service may be silent before.
  await client.call('/v1/usage?view=reduced', { signal });
  patience.accept();
  const body = {
    endpoint: order.endpoint,
    playlist: true,
    max_items: maxItems,
    items: [{ query, ...order.parameters }],
  };
  const call = { method: 'POST', body, idempotencyKey: tools.keyOf(query), answerMs: listMs } as const;
  const made = await sendOrder(tools, '/v1/batches', call);
  return String((made as { batch_id?: unknown }).batch_id);
}

/** Returns the jobs of a batch, which has all of them from its beginning. */
async function readJobs({ client, interrupted: signal }: GetTools, batch: string): Promise<WantedFile[]> {
  const jobs: WantedFile[] = [];
  for (let cursor = ''; ; ) {
    const path = `/v1/batches/${encodeURIComponent(batch)}${cursor && `?cursor=${encodeURIComponent(cursor)}`}`;
    const page = (await client.call(path, { signal })) as BatchPage;
    for (const { query, job_id } of page.jobs ?? []) {
      if (typeof job_id === 'string') jobs.push({ query: String(query), jobId: job_id });
    }
    if (typeof page.next_cursor !== 'string') return jobs;
    cursor = page.next_cursor;
  }
}

/** Cancels the open jobs of a batch; notes it as unfinished unless every job without a row of its own is known to be cancelled. */
async function cancelBatch(
  { client, noteUnfinished }: GetTools,
  batch: string,
  takenIds: ReadonlySet<unknown>,
): Promise<void> {
  const call = { method: 'DELETE', signal: AbortSignal.timeout(cancelMs) } as const;
  try {
    const { jobs = [], next_cursor: next } = (await client.call(
      `/v1/batches/${encodeURIComponent(batch)}`,
      call,
    )) as BatchPage;
    // A job that completed before is charged and keeps its file; further pages are not read, they may have one.
    const isLeft = jobs.some(({ status, job_id: id }) => status === 'CompletedJob' && !takenIds.has(id));
    if (isLeft || typeof next === 'string') noteUnfinished();
  } catch {
    // Some jobs may go on: they were cancelled one by one as far as possible.
    noteUnfinished();
  }
}
