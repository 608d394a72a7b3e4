import type { components } from './api-types.ts';
import { TrawlError } from './errors.ts';
import { makePatience, pause, unreachable } from './patience.ts';
import { mayRepeat, type Transport } from './transport.ts';

export type Job = components['schemas']['Job'];

export interface WaitOptions {
  /**
   * `stream` (server-sent events, the default) tells every change. `poll` passes more proxies: a call waits for a change for up to 25 s;
   * while the account has too many of those, the client asks every 5 s.
   */
  readonly wait?: 'stream' | 'poll' | undefined;
  /** Called with the job after each change. */
  readonly onProgress?: ((job: Job) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

const pollSeconds = 25;
/** Between polls that are answered at once. */
const plainPollMs = 5_000;
/** Such polls after a refused one, before a call waits again. */
const maxPlainPolls = 3;
/** The service writes to a stream every few seconds; one that is silent for so long is opened again. */
const quietMs = 60_000;
/** Streams that broke off without a word before polling takes their place. */
const maxEmptyStreams = 3;

/** Waits for the end of a job, through broken streams and restarts of the service. */
export async function followJob(transport: Transport, jobId: string, options: WaitOptions): Promise<Job> {
  let last: Job | undefined;
  for await (const job of changesOf(transport, jobId, options)) {
    last = job;
    // Outside all that repeats a call: an error of the callback ends the wait.
    options.onProgress?.(job);
  }
  return last as Job;
}

/** Yields the job after each change, until it has ended. */
async function* changesOf(transport: Transport, jobId: string, options: WaitOptions): AsyncGenerator<Job, void> {
  let isStream = options.wait !== 'poll';
  const stream = { lastId: '', empty: 0 };
  const patience = makePatience(transport.patienceMs);
  while (isStream) {
    try {
      const heard = () => {
        stream.empty = -1;
        patience.heard();
      };
      for await (const job of readStream(transport, jobId, stream, heard, options.signal)) {
        yield job;
        if (hasEnded(job)) return;
      }
      throw unreachable(transport.url, new Error('the stream of events broke off'));
    } catch (error) {
      options.signal?.throwIfAborted();
      if (!(error instanceof TrawlError) || !mayRepeat(error)) throw error;
      stream.empty += 1;
      const isCutOff = error.status === null && stream.empty >= maxEmptyStreams;
      if (!isCutOff) await patience.wait(error, options.signal);
      isStream = !isCutOff && error.code !== 'rate_limited';
    }
  }
  yield* poll(transport, jobId, options.signal);
}

export function hasEnded({ status }: Job): boolean {
  return status !== 'QueuedJob' && status !== 'Running';
}

async function* poll(transport: Transport, jobId: string, signal: AbortSignal | undefined): AsyncGenerator<Job, void> {
  let plainPolls = 0;
  for (let last = ''; ; ) {
    const isHeld = plainPolls === 0;
    const path = `/v1/jobs/${encodeURIComponent(jobId)}?wait=${isHeld ? pollSeconds : 0}`;
    const unrepeated = isHeld ? 'rate_limited' : undefined;
    let job: Job;
    try {
      job = (await transport.ask(path, 'status', { signal, tryMs: (pollSeconds + 15) * 1000, unrepeated })) as Job;
    } catch (error) {
      if (!(isHeld && error instanceof TrawlError && error.code === 'rate_limited')) throw error;
      // An account may have only so many calls that wait; those that do not are not counted.
      await makePatience(transport.patienceMs).wait(error, signal);
      plainPolls = maxPlainPolls;
      continue;
    }
    const text = JSON.stringify(job);
    if (text !== last) yield job;
    if (hasEnded(job)) return;
    last = text;
    if (isHeld) continue;
    plainPolls -= 1;
    await pause(plainPollMs, signal);
  }
}

/** Yields the job in each event of one stream. */
async function* readStream(
  transport: Transport,
  jobId: string,
  stream: { lastId: string },
  heard: () => void,
  signal: AbortSignal | undefined,
): AsyncGenerator<Job, void> {
  const quiet = new AbortController();
  const abortQuiet = () => quiet.abort(new Error('nothing was heard for too long'));
  let timer = setTimeout(abortQuiet, quietMs);
  try {
    const headers = { accept: 'text/event-stream', ...(stream.lastId && { 'last-event-id': stream.lastId }) };
    const signals = AbortSignal.any([quiet.signal, ...(signal ? [signal] : [])]);
    const response = await transport.open(`/v1/jobs/${encodeURIComponent(jobId)}/events`, headers, signals);
    if (!response.headers.get('content-type')?.startsWith('text/event-stream'))
      throw new Error('something else came in place of events');
    for await (const event of eventsOf(response)) {
      clearTimeout(timer);
      timer = setTimeout(abortQuiet, quietMs);
      const job = event.data === '' ? null : (JSON.parse(event.data) as Job);
      heard();
      if (job === null) continue;
      stream.lastId = event.id;
      yield job;
    }
  } catch (error) {
    throw error instanceof TrawlError ? error : unreachable(transport.url, error);
  } finally {
    clearTimeout(timer);
    // Ends the connection of a stream that is left early.
    quiet.abort();
  }
}

/** Yields the events of a stream; one without data is a sign of life. */
async function* eventsOf({ body }: Response): AsyncGenerator<{ id: string; data: string }, void> {
  if (body === null) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  for (let text = ''; ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (text + decoder.decode(value, { stream: true })).split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const lines = block.split('\n');
      const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? '';
      yield { id: field('id'), data: field('data') };
    }
  }
}
