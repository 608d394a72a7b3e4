import { printable } from '../base/terminal.ts';
import type { ServicePatience } from './patience.ts';
import { CallRefused, parseJson, readRetryAfter, readText, refusalOf, type ServiceClient } from './service-client.ts';

/** A job as the service shows it, with the fields that are asked for. */
export interface SeenJob {
  readonly status: string;
  readonly progress: number;
  readonly stage: string | null;
  readonly speedBytes: number | null;
  readonly etaSeconds: number | null;
  /** Position in the queue while it waits there. */
  readonly position: number | null;
  readonly args: Readonly<Record<string, unknown>>;
  readonly file: ResultFile | null;
  readonly error: string | null;
  readonly errorCode: string | null;
}

/** The finished file of a job. */
export interface ResultFile {
  /** `null` when the file is no longer kept. */
  readonly link: string | null;
  readonly bytes: number;
  readonly sha256: string;
  readonly contentType: string;
  readonly title: string | null;
}

export const jobFields = [
  ...['status', 'progress', 'stage', 'speed_bytes', 'eta_seconds', 'queue', 'args', 'error', 'error_code'],
  ...['response', 'bytes', 'sha256', 'content_type', 'metadata.title'].map((name) => `result.${name}`),
].join(',');

const quietMs = 60_000;
/** Between polls of a job whose stream is refused, at least. */
const pollMs = 1_000;
const openStatuses = ['QueuedJob', 'Running'];

export function hasEnded({ status }: Pick<SeenJob, 'status'>): boolean {
  return !openStatuses.includes(status);
}

/** Follows the events of a job to its end, through any number of streams, and returns the ended job; `away` hears of each one refused. */
export async function followJob(
  client: ServiceClient,
  patience: ServicePatience,
  jobId: string,
  seen: (job: SeenJob) => void,
  signal: AbortSignal,
  away: () => void = () => {},
): Promise<SeenJob> {
  const silence = patience.start();
  let last: SeenJob | null = null;
  for (let lastId = ''; ; ) {
    let isOpen = false;
    let cause: unknown = new Error('the stream of events ended');
    let leastMs = 0;
    const quiet = watchQuiet();
    try {
      const headers = { accept: 'text/event-stream', ...(lastId && { 'last-event-id': lastId }) };
      const path = `/v1/jobs/${encodeURIComponent(jobId)}/events?fields=${jobFields}`;
      const response = await client.open(path, headers, AbortSignal.any([signal, quiet.signal]));
      if (!response.ok) {
        leastMs = readRetryAfter(response) ?? 0;
        throw refusalOf(response, parseJson(await readText(response)));
      }
      isOpen = true;
      // A stream that goes on tells nothing before the next change.
      if (last !== null) seen(last);
      for await (const { id, text } of readEvents(response, quiet.heard)) {
        silence.end();
        const job = readJob(parseJson(text));
        if (job === null) continue;
        lastId = id;
        last = job;
        seen(job);
        if (hasEnded(job)) return job;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof CallRefused && error.status < 500 && error.status !== 429) throw error;
      cause = error;
    } finally {
      quiet.close();
    }
    if (cause instanceof CallRefused && cause.status === 429) {
      // An account may have only so many streams; a poll that does not wait is none.
      const path = `/v1/jobs/${encodeURIComponent(jobId)}?fields=${jobFields}`;
      const job = readJob(await client.call(path, { signal }));
      silence.end();
      if (job !== null) {
        last = job;
        seen(job);
        if (hasEnded(job)) return job;
      }
      leastMs = Math.max(leastMs, pollMs);
    } else if (!isOpen) away();
    await silence.wait(cause, signal, leastMs);
  }
}

/** Reads the JSON of a job; `null` for anything that is none. */
export function readJob(value: unknown): SeenJob | null {
  const { status, progress, stage, speed_bytes, eta_seconds, queue, args, result, error, error_code } = fieldsOf(value);
  if (typeof status !== 'string') return null;
  return {
    status: printable(status),
    progress: Math.min(100, Math.max(0, numberOf(progress) ?? 0)),
    stage: textOf(stage),
    speedBytes: numberOf(speed_bytes),
    etaSeconds: numberOf(eta_seconds),
    position: numberOf(fieldsOf(queue).position),
    args: fieldsOf(args),
    file: readFile(fieldsOf(result)),
    error: textOf(error),
    errorCode: textOf(error_code),
  };
}

function readFile({ response, bytes, sha256, content_type, metadata }: Record<string, unknown>): ResultFile | null {
  if (typeof bytes !== 'number' || typeof sha256 !== 'string') return null;
  const { title } = fieldsOf(metadata);
  const link = typeof response === 'string' ? response : null;
  return { link, bytes, sha256, contentType: String(content_type), title: typeof title === 'string' ? title : null };
}

/** Yields the events of a stream; calls `heard` for everything that arrives. */
async function* readEvents(response: Response, heard: () => void): AsyncGenerator<{ id: string; text: string }, void> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    heard();
    const blocks = (text + decoder.decode(chunk, { stream: true })).split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line) ?? []);
      const fieldOf = (name: string) => fields.find(([, field]) => field === name)?.[2] ?? '';
      if (fieldOf('data')) yield { id: fieldOf('id'), text: fieldOf('data') };
    }
  }
}

/** Aborts its signal when `heard` is not called for a minute: the service and its files say something every few seconds. */
export function watchQuiet(): { signal: AbortSignal; heard: () => void; close: () => void } {
  const quiet = new AbortController();
  const timer = setTimeout(() => quiet.abort(new Error('nothing was heard for too long')), quietMs);
  return { signal: quiet.signal, heard: () => timer.refresh(), close: () => clearTimeout(timer) };
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? printable(value) : null;
}
