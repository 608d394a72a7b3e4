import type { components } from './api-types.ts';
import { type Blame, type ErrorCode, TrawlError } from './errors.ts';
import { followJob, hasEnded, type Job, type WaitOptions } from './follow-job.ts';
import { pause, within } from './patience.ts';
import { type FetchOptions, type ResultFile, resultOf } from './result-file.ts';
import { makeTransport, type Transport } from './transport.ts';
import { verifyWebhook, type WebhookEvent, type WebhookOptions } from './webhook.ts';

type Schemas = components['schemas'];
type Flags = 'query' | 'soft_fail' | 'is_async' | 'fields';

export type Metadata = Schemas['Metadata'];
export type Usage = Schemas['Usage'];
export type UsageDay = Schemas['UsageHistory']['days'][number];
export type Batch = Schemas['Batch'];
export type BatchRequest = Schemas['BatchRequest'];

export interface TrawlOptions {
  /** Address of the service, such as `https://trawl.example`. */
  readonly url: string;
  readonly key: string;
  /** Longest wait for a service that is away or busy, from its last answer; 300 unless given. */
  readonly patienceSeconds?: number;
  /** Replaces the `fetch` of the platform. */
  readonly fetch?: typeof fetch;
}

interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Makes calls with the same key one call for 24 h; each call has a random one unless given. */
  readonly idempotencyKey?: string | undefined;
}

interface HistoryOptions extends FetchOptions {
  readonly from?: string;
  readonly to?: string;
}

/** Kind of the file, and the parameters of the API for it. */
export type DownloadParameters =
  | ({ readonly kind?: 'video' } & Omit<Schemas['VideoRequest'], Flags>)
  | ({ readonly kind: 'audio' } & Omit<Schemas['AudioRequest'], Flags>);

export type DownloadOptions = DownloadParameters & CallOptions & WaitOptions;

const batchPollMs = 2_000;
const cancelMs = 10_000;

/** A service of trawl, asked with one key. */
export class Trawl {
  readonly #transport: Transport;

  constructor({ url, key, patienceSeconds = 300, fetch: given = globalThis.fetch }: TrawlOptions) {
    const bound: typeof fetch = (...args) => given(...args);
    this.#transport = makeTransport({
      url: url.replace(/\/+$/, ''),
      key,
      patienceMs: patienceSeconds * 1000,
      fetch: bound,
    });
  }

  /**
   * Asks for a file and waits until it is there. One job and one charge, however often answers are lost;
   * an abort cancels the job if that is still open when asked, and the service answers within seconds.
   */
  async download(url: string, options: DownloadOptions = {}): Promise<ResultFile> {
    options.signal?.throwIfAborted();
    const once = { ...options, idempotencyKey: options.idempotencyKey ?? crypto.randomUUID() };
    let jobId: string | null = null;
    try {
      jobId = await this.start(url, once);
      return await this.wait(jobId, options);
    } catch (error) {
      if (options.signal?.aborted) await this.#giveUp(url, once, jobId).catch(() => {});
      throw error;
    }
  }

  /** Cancels an open job; one whose id is not known yet is asked for once more, by the key of the call that was aborted. */
  #giveUp(url: string, once: DownloadOptions, known: string | null): Promise<void> {
    return within(cancelMs, undefined, async (signal) => {
      const jobId = known ?? (await this.start(url, { ...once, signal }));
      // DELETE removes the file of a job that has completed and was charged, also of one that completes after this look.
      if (!hasEnded(await this.job(jobId, { signal }))) await this.cancel(jobId, { signal });
    });
  }

  /** Asks for a file and returns the id of its job at once. */
  async start(url: string, options: DownloadOptions = {}): Promise<string> {
    const { kind = 'video', idempotencyKey = crypto.randomUUID(), signal, wait, onProgress, ...parameters } = options;
    const call = { method: 'POST', body: { query: url, ...parameters }, idempotencyKey, signal } as const;
    return ((await this.#transport.ask(`/v1/${kind}/download`, 'job_id', call)) as Schemas['Accepted']).job_id;
  }

  /** Waits for the end of a job and returns its file; throws the failure of a job that made none. */
  async wait(jobId: string, options: WaitOptions = {}): Promise<ResultFile> {
    return resultOf(this.#transport, await followJob(this.#transport, jobId, options));
  }

  /** Tells what is known of a URL, without a file. It costs one credit. */
  async metadata(url: string, { idempotencyKey = crypto.randomUUID(), signal }: CallOptions = {}): Promise<Metadata> {
    const call = { method: 'POST', body: { query: url }, idempotencyKey, signal, tryMs: 70_000 } as const;
    return ((await this.#transport.ask('/v1/media/metadata', 'metadata', call)) as { metadata: Metadata }).metadata;
  }

  async job(jobId: string, { signal }: FetchOptions = {}): Promise<Job> {
    return (await this.#transport.ask(`/v1/jobs/${encodeURIComponent(jobId)}`, 'status', { signal })) as Job;
  }

  /** Yields the jobs of the account, newest first. */
  async *jobs({ status, signal }: { readonly status?: Job['status'] } & FetchOptions = {}): AsyncGenerator<Job, void> {
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query = new URLSearchParams({ limit: '100', ...(status && { status }), ...(cursor && { cursor }) });
      const page = (await this.#transport.ask(`/v1/jobs?${query}`, 'jobs', { signal })) as Schemas['JobList'];
      yield* page.jobs;
      cursor = page.next_cursor;
    }
  }

  /** Cancels an open job, which then costs nothing; removes the file of one that has ended. */
  async cancel(jobId: string, { signal }: FetchOptions = {}): Promise<Job> {
    return (await this.#transport.ask(`/v1/jobs/${encodeURIComponent(jobId)}`, 'status', {
      method: 'DELETE',
      signal,
    })) as Job;
  }

  /** Starts up to 1,000 jobs, all or none, or one for each entry of a playlist, and returns the id of the batch at once. */
  async startBatch(
    batch: BatchRequest,
    { idempotencyKey = crypto.randomUUID(), signal }: CallOptions = {},
  ): Promise<string> {
    // The service lists a playlist for up to 50 s, and may have the call wait before.
    const call = { method: 'POST', body: batch, idempotencyKey, signal, tryMs: 75_000 } as const;
    return ((await this.#transport.ask('/v1/batches', 'batch_id', call)) as Schemas['AcceptedBatch']).batch_id;
  }

  /** Shows a batch and a page of its jobs; `next_cursor` leads to the next one. */
  async batch(batchId: string, { cursor, signal }: { readonly cursor?: string } & FetchOptions = {}): Promise<Batch> {
    const query = cursor === undefined ? '' : `?${new URLSearchParams({ cursor })}`;
    return (await this.#transport.ask(batchPath(batchId) + query, 'jobs', { signal })) as Batch;
  }

  /** Waits until every job of a batch has ended, and returns the batch with all of its jobs; a failed one is no error. */
  async waitBatch(batchId: string, { signal }: FetchOptions = {}): Promise<Batch> {
    for (;;) {
      const batch = await this.batch(batchId, { signal });
      if (batch.status !== 'Running') return this.#wholeBatch(batch, signal);
      await pause(batchPollMs, signal);
    }
  }

  async #wholeBatch(first: Batch, signal: AbortSignal | undefined): Promise<Batch> {
    const jobs = [...first.jobs];
    for (let cursor = first.next_cursor; cursor !== null; ) {
      const page: Batch = await this.batch(first.id, { cursor, signal });
      jobs.push(...page.jobs);
      cursor = page.next_cursor;
    }
    return { ...first, jobs, next_cursor: null };
  }

  /** Cancels the open jobs of a batch; what completed stays. */
  async cancelBatch(batchId: string, { signal }: FetchOptions = {}): Promise<Batch> {
    return (await this.#transport.ask(batchPath(batchId), 'jobs', {
      method: 'DELETE',
      signal,
      tryMs: 60_000,
    })) as Batch;
  }

  async usage({ signal }: FetchOptions = {}): Promise<Usage> {
    return (await this.#transport.ask('/v1/usage', 'remaining', { signal })) as Usage;
  }

  /** Tells what became of the calls, by day and key; `from` and `to` are days in UTC such as `2026-03-04`. */
  async usageHistory({ from, to, signal }: HistoryOptions = {}): Promise<UsageDay[]> {
    const query = new URLSearchParams({ ...(from && { from }), ...(to && { to }) });
    return ((await this.#transport.ask(`/v1/usage/history?${query}`, 'days', { signal })) as Schemas['UsageHistory'])
      .days;
  }
}

function batchPath(batchId: string): string {
  return `/v1/batches/${encodeURIComponent(batchId)}`;
}

export type { FetchOptions, WaitOptions, WebhookOptions };
export { type Blame, type ErrorCode, type Job, type ResultFile, TrawlError, verifyWebhook, type WebhookEvent };
