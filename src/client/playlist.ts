import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { FileRow, GetTools, WantedFile } from './get-file.ts';
import { ServiceAway } from './patience.ts';
import { CallRefused } from './service-client.ts';

const pollMs = 2_000;
const cancelMs = 10_000;

/** One page of a batch. */
interface BatchPage {
  readonly status?: unknown;
  readonly jobs?: readonly { readonly query?: unknown; readonly job_id?: unknown; readonly error?: unknown }[];
  readonly next_cursor?: unknown;
}

/** Has the service expand a playlist into jobs and takes each, so many at once. Returns the row of a playlist that is refused. */
export async function expandPlaylist(
  tools: GetTools,
  query: string,
  most: number,
  parallel: number,
  take: (wanted: WantedFile) => Promise<void>,
): Promise<{ row: FileRow; cause: unknown } | null> {
  const { order, client, patience, interrupted: signal } = tools;
  const seen = new Set<string>();
  const open = new Set<Promise<void>>();
  let batch: string | null = null;
  try {
    const body = { endpoint: order.endpoint, playlist: true, max_items: most, items: [{ query, ...order.parameters }] };
    const answer = await client.call('/v1/batches', { method: 'POST', body, idempotencyKey: randomUUID(), signal });
    batch = String((answer as { batch_id?: unknown }).batch_id);
    patience.accept();
    for (let isOpen = true; isOpen; ) {
      const { jobs, isRunning } = await readBatch(tools, batch);
      for (const wanted of jobs.filter(({ jobId }) => !seen.has(String(jobId)))) {
        seen.add(String(wanted.jobId));
        while (open.size >= parallel) await Promise.race(open);
        const taken: Promise<void> = take(wanted).finally(() => open.delete(taken));
        open.add(taken);
      }
      isOpen = isRunning;
      if (isOpen) await pause(pollMs, undefined, { signal });
    }
    await Promise.all(open);
    return seen.size > 0 ? null : { row: rowOf(query, 'The playlist has no entries', 'not_found'), cause: null };
  } catch (cause) {
    await Promise.all(open);
    if (signal.aborted) {
      if (batch !== null) await cancelBatch(tools, batch);
      return null;
    }
    if (!(cause instanceof CallRefused || cause instanceof ServiceAway)) throw cause;
    const isUnknown = cause instanceof CallRefused && cause.status === 404 && batch === null;
    const sentence = isUnknown ? 'This service does not expand playlists' : cause.message;
    return { row: rowOf(query, sentence, cause instanceof CallRefused ? cause.code : 'unavailable'), cause };
  }
}

/** Reads all pages of a batch. */
async function readBatch({ client, interrupted: signal }: GetTools, batch: string) {
  const jobs: WantedFile[] = [];
  let isRunning = false;
  for (let cursor = ''; ; ) {
    const path = `/v1/batches/${encodeURIComponent(batch)}${cursor && `?cursor=${encodeURIComponent(cursor)}`}`;
    const page = (await client.call(path, { signal })) as BatchPage;
    isRunning = page.status === 'Running';
    for (const { query, job_id } of page.jobs ?? []) {
      if (typeof job_id === 'string') jobs.push({ query: String(query), jobId: job_id });
    }
    if (typeof page.next_cursor !== 'string') return { jobs, isRunning };
    cursor = page.next_cursor;
  }
}

async function cancelBatch({ client }: GetTools, batch: string): Promise<void> {
  const call = { method: 'DELETE', signal: AbortSignal.timeout(cancelMs) } as const;
  await client.call(`/v1/batches/${encodeURIComponent(batch)}`, call).catch(() => {
    // The service is away; its jobs were cancelled one by one as far as possible.
  });
}

function rowOf(query: string, error: string, code: string): FileRow {
  return { query, job_id: null, status: null, path: null, bytes: null, sha256: null, error, error_code: code };
}
