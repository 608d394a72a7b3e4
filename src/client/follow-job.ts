import { membersOf, parseJson } from '../base/parse-json.ts';
import { printable } from '../base/terminal.ts';
import { isEnded } from '../model/job.ts';
import type { ServicePatience, Silence } from './patience.ts';
import { CallRefused, readRetryAfter, readText, refusalOf, type ServiceClient } from './service-client.ts';

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

/** A job whose end is awaited through any number of streams. */
interface AwaitedJob {
  readonly client: ServiceClient;
  readonly jobId: string;
  readonly onSeen: (job: SeenJob) => void;
  readonly signal: AbortSignal;
  readonly silence: Silence;
  /** As the service told of it last. */
  last: SeenJob | null;
  /** Id of the last event; empty before the first one. */
  lastId: string;
}

/** Follows the events of a job to its end, through any number of streams, and returns the ended job; `onAway` hears of each one refused. */
export async function followJob(
  { patience, ...followed }: Pick<AwaitedJob, 'client' | 'jobId' | 'signal'> & { readonly patience: ServicePatience },
  onSeen: (job: SeenJob) => void,
  onAway: () => void = () => {},
): Promise<SeenJob> {
  const { signal } = followed;
  const silence = patience.start();
  const job: AwaitedJob = { ...followed, onSeen, silence, last: null, lastId: '' };
  for (;;) {
    const { cause, wasOpen, leastMs } = await readStream(job);
    // An account may have only so many streams; a poll that does not wait is none.
    const isPolled = cause instanceof CallRefused && cause.status === 429;
    if (isPolled) await pollOnce(job);
    else if (!wasOpen) onAway();
    if (job.last !== null && isEnded(job.last.status)) return job.last;
    await silence.wait(cause, signal, isPolled ? Math.max(leastMs, pollMs) : leastMs);
  }
}

/**
 * Reads one stream until the job has ended or the stream breaks off; throws a refusal that no other stream would change. `wasOpen` is false
 * of a stream that was never opened; `leastMs` is the least time before the next one.
 */
async function readStream(job: AwaitedJob) {
  const { client, jobId, signal } = job;
  let wasOpen = false;
  let leastMs = 0;
  using quiet = watchQuiet();
  try {
    const headers = { accept: 'text/event-stream', ...(job.lastId && { 'last-event-id': job.lastId }) };
    const path = `/v1/jobs/${encodeURIComponent(jobId)}/events?fields=${jobFields}`;
    const response = await client.open(path, headers, AbortSignal.any([signal, quiet.signal]));
    if (!response.ok) {
      leastMs = readRetryAfter(response) ?? 0;
      throw refusalOf(response, parseJson(await readText(response)));
    }
    wasOpen = true;
    // A stream that goes on tells nothing before the next change.
    if (job.last !== null) job.onSeen(job.last);
    for await (const { id, text } of readEvents(response, quiet.heard)) {
      const told = note(job, parseJson(text));
      if (told === null) continue;
      job.lastId = id;
      if (isEnded(told.status)) break;
    }
    return { cause: new Error('the stream of events ended'), wasOpen, leastMs };
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof CallRefused && cause.status < 500 && cause.status !== 429) throw cause;
    return { cause, wasOpen, leastMs };
  }
}

async function pollOnce(job: AwaitedJob): Promise<void> {
  const path = `/v1/jobs/${encodeURIComponent(job.jobId)}?fields=${jobFields}`;
  note(job, await job.client.call(path, { signal: job.signal }));
}

/** Ends the silence with what the service told of a job; returns the job, or `null` for anything that is none. */
function note(job: AwaitedJob, json: unknown): SeenJob | null {
  job.silence.end();
  const told = readJob(json);
  if (told === null) return null;
  job.last = told;
  job.onSeen(told);
  return told;
}

/** Reads the JSON of a job; `null` for anything that is none. */
export function readJob(value: unknown): SeenJob | null {
  const { status, progress, stage, speed_bytes, eta_seconds, queue, args, result, error, error_code } =
    membersOf(value);
  if (typeof status !== 'string') return null;
  return {
    status: printable(status),
    progress: Math.min(100, Math.max(0, numberOf(progress) ?? 0)),
    stage: textOf(stage),
    speedBytes: numberOf(speed_bytes),
    etaSeconds: numberOf(eta_seconds),
    position: numberOf(membersOf(queue).position),
    args: membersOf(args),
    file: readFile(membersOf(result)),
    error: textOf(error),
    errorCode: textOf(error_code),
  };
}

function readFile({ response, bytes, sha256, content_type, metadata }: Record<string, unknown>): ResultFile | null {
  if (typeof bytes !== 'number' || typeof sha256 !== 'string') return null;
  const { title } = membersOf(metadata);
  const link = typeof response === 'string' ? response : null;
  return { link, bytes, sha256, contentType: String(content_type), title: typeof title === 'string' ? title : null };
}

/** Yields the events of a stream; calls `onHeard` for everything that arrives. */
async function* readEvents(
  response: Response,
  onHeard: () => void,
): AsyncGenerator<{ id: string; text: string }, void> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    onHeard();
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
export function watchQuiet() {
  const quiet = new AbortController();
  const timer = setTimeout(() => quiet.abort(new Error('nothing was heard for too long')), quietMs);
  return { signal: quiet.signal, heard: () => void timer.refresh(), [Symbol.dispose]: () => clearTimeout(timer) };
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? printable(value) : null;
}
