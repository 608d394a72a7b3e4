import { TrawlError } from './errors.ts';
import type { Job } from './follow-job.ts';
import { makePatience, unreachable } from './patience.ts';
import type { Transport } from './transport.ts';

/** The file of a completed job. */
export interface ResultFile {
  readonly jobId: string;
  readonly job: Job;
  /** Signed link, which works without a key until it expires; `job(jobId)` signs a new one. */
  readonly url: string;
  readonly size: number;
  /** SHA-256 in hexadecimal digits. */
  readonly sha256: string;
  readonly contentType: string;
  readonly title: string | null;
  /** Fetches the file into memory, going on where a connection broke, and compares its SHA-256. */
  readonly bytes: (options?: FetchOptions) => Promise<Uint8Array<ArrayBuffer>>;
  /** Fetches the file as a stream, going on where a connection broke; compares its length, not its SHA-256. */
  readonly stream: (options?: FetchOptions) => ReadableStream<Uint8Array>;
}

export interface FetchOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Rest of a file of `size` bytes, from the byte `start` on. */
interface FilePart {
  readonly start: number;
  readonly size: number;
}

const quietMs = 60_000;
const maxMismatches = 2;
const noFile = 'A metadata job makes no file; what it read stands in `result.metadata` of the job';

/** Returns the file of a job that has ended; throws the failure of one that made none. */
export function resultOf(transport: Transport, job: Job): ResultFile {
  const { id: jobId, result } = job;
  if (job.status !== 'CompletedJob' || !result) {
    const facts = { jobId, ...(typeof job.retryable === 'boolean' && { retryable: job.retryable }) };
    throw new TrawlError(job.error_code ?? 'unclassified', job.error ?? 'The job made no file', facts);
  }
  const { response: url, bytes: size, sha256, content_type: contentType } = result;
  if (job.endpoint.endsWith('/media/metadata')) throw new TrawlError('not_found', noFile, { jobId });
  if (url === null || size === undefined || sha256 === undefined) throw gone(jobId);
  const chunks = (signal: AbortSignal | undefined) => chunksOf(transport, { jobId, url, size }, signal);
  return {
    jobId,
    job,
    url,
    size,
    sha256,
    contentType: contentType ?? 'application/octet-stream',
    title: result.metadata?.title ?? null,
    bytes: async ({ signal } = {}) => {
      for (let mismatches = 1; ; mismatches++) {
        const bytes = await collect(chunks(signal), size);
        if ((await digest(bytes)) === sha256) return bytes;
        if (mismatches >= maxMismatches)
          throw new TrawlError('checksum_mismatch', 'The file that arrived is not the one of the job', { jobId });
      }
    },
    stream: ({ signal } = {}) => {
      const left = new AbortController();
      // Node 20 collects a signal that `AbortSignal.any` alone refers to, and never aborts then: a listener keeps it.
      const leave = () => left.abort(signal?.reason);
      if (signal?.aborted) leave();
      signal?.addEventListener('abort', leave, { signal: left.signal });
      const source = chunks(left.signal);
      return new ReadableStream({
        pull: async (sink) => {
          const { done, value } = await source.next().catch((error: unknown) => {
            leave();
            throw error;
          });
          if (!done) return sink.enqueue(value);
          // Removes the listener.
          leave();
          sink.close();
        },
        cancel: async () => {
          // A read that is under way would end with the next bytes only.
          left.abort();
          await source.return();
        },
      });
    },
  };
}

/** Yields the bytes of a file once each, through any number of connections. */
async function* chunksOf(
  transport: Transport,
  { jobId, url, size }: Pick<ResultFile, 'jobId' | 'url' | 'size'>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  const patience = makePatience(transport.patienceMs);
  let link: string | null = url;
  for (let received = 0; received < size; ) {
    try {
      link ??= await signAnew(transport, jobId, signal);
      for await (const chunk of partOf(transport, link, { start: received, size }, signal)) {
        received += chunk.length;
        if (received > size)
          throw new TrawlError('checksum_mismatch', 'The file is longer than its job says', { jobId });
        yield chunk;
        // The reader may have paused until now, which is no silence of the service.
        patience.heard();
      }
      if (received < size) throw unreachable(link, new Error('the connection broke off'));
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof TrawlError) || error.code !== 'unreachable' || !error.retryable) throw error;
      // The next try has a link of its own: this one may have expired.
      link = null;
      await patience.wait(error, signal);
    }
  }
}

async function signAnew(transport: Transport, jobId: string, signal: AbortSignal | undefined): Promise<string> {
  const job = (await transport.ask(`/v1/jobs/${encodeURIComponent(jobId)}`, 'status', { signal })) as Job;
  const link = job.result?.response;
  if (!link) throw gone(jobId);
  return link;
}

/** Yields what one connection brings from a byte on. The key is not sent: the link is signed. */
async function* partOf(
  transport: Transport,
  link: string,
  { start, size }: FilePart,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  const quiet = new AbortController();
  const abortQuiet = () => quiet.abort(new Error('nothing was heard for too long'));
  let timer = setTimeout(abortQuiet, quietMs);
  try {
    const headers: Record<string, string> = start > 0 ? { range: `bytes=${start}-` } : {};
    const signals = AbortSignal.any([quiet.signal, ...(signal ? [signal] : [])]);
    const response = await transport.reach(link, { headers, signal: signals });
    if (response.status === 404 || response.status === 410) throw gone(null);
    if (!response.ok) throw new Error(`the file was answered with status ${response.status}`);
    requirePart(response, { start, size });
    // A server that ignores the range sends the whole.
    let skip = response.status === 206 ? 0 : start;
    const reader = response.body?.getReader();
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      clearTimeout(timer);
      if (done) return;
      const fresh = value.subarray(Math.min(skip, value.length));
      skip -= value.length - fresh.length;
      if (fresh.length > 0) yield fresh;
      timer = setTimeout(abortQuiet, quietMs);
    }
  } catch (error) {
    throw error instanceof TrawlError ? error : unreachable(link, error);
  } finally {
    clearTimeout(timer);
    quiet.abort();
  }
}

/** Throws for an answer that is none of the file, such as the page of a proxy: a stream has no checksum to find that out later. */
function requirePart({ status, headers }: Response, { start, size }: FilePart): void {
  const [, first = start, whole = size] = /^bytes (\d+)-\d+\/(\d+)$/.exec(headers.get('content-range') ?? '') ?? [];
  // The length of a compressed answer is another one.
  const length = headers.has('content-encoding') ? null : headers.get('content-length');
  const isWhole = length === null || Number(length) === size;
  const isPart = Number(first) === start && Number(whole) === size;
  if (headers.get('content-type')?.startsWith('text/html') || !(status === 206 ? isPart : isWhole))
    throw new Error('something else came in place of the file');
}

async function collect(chunks: AsyncIterable<Uint8Array>, size: number): Promise<Uint8Array<ArrayBuffer>> {
  const whole = new Uint8Array(size);
  let filled = 0;
  for await (const chunk of chunks) {
    whole.set(chunk, filled);
    filled += chunk.length;
  }
  return whole;
}

async function digest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function gone(jobId: string | null): TrawlError {
  return new TrawlError('not_found', 'The service does not keep the file any more', { jobId });
}
