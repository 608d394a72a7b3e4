import { setTimeout as pause } from 'node:timers/promises';
import { displayName } from '../model/file-link.ts';
import { isEnded } from '../model/job.ts';
import { FetchFailed, fetchFile, refuseWrite } from './fetch-file.ts';
import { followJob, jobFields, type ResultFile, readJob, type SeenJob } from './follow-job.ts';
import type { GetOrder } from './get-order.ts';
import { choosePath, makePartialFile, requireWritable } from './partial-file.ts';
import { ServiceAway, type ServicePatience } from './patience.ts';
import type { FileProgress } from './progress-display.ts';
import { CallRefused, type ServiceCall, type ServiceClient } from './service-client.ts';

/** Parts of one `trawl get` that all of its files share. */
export interface GetTools {
  readonly order: Pick<GetOrder, 'endpoint' | 'parameters' | 'output'>;
  readonly client: ServiceClient;
  readonly patience: ServicePatience;
  /** Returns the Idempotency-Key of the next request for a URL. */
  readonly keyOf: (query: string) => string;
  /** Called for a request that the service may have accepted and whose file did not arrive: its job may go on, and be charged. */
  readonly noteUnfinished: () => void;
  /** Aborted by Ctrl-C. */
  readonly interrupted: AbortSignal;
}

/** End of one file, with the members that `--json` prints. */
export interface FileRow {
  readonly query: string;
  readonly job_id: string | null;
  readonly status: string | null;
  readonly path: string | null;
  readonly bytes: number | null;
  readonly sha256: string | null;
  readonly error: string | null;
  readonly error_code: string | null;
}

/** One URL, or a job that a playlist has started. */
export interface WantedFile {
  readonly query: string;
  readonly jobId: string | null;
}

type Note = (progress: FileProgress) => void;

/** Part of the bar that the job takes; the rest is the fetching of its file. */
const jobShare = 0.9;
/** Time that calls under way have after Ctrl-C: a request that was sent may have made a job, which is then cancelled. */
const lateMs = 5_000;
const cancelMs = 10_000;
/** Parameters that an older service ignores without a word. */
const youngParameters = ['start', 'end'];

/** Brings one file from the request to its name in the folder; throws only errors of the program itself. */
export async function getFile(
  tools: GetTools,
  wanted: WantedFile,
  note: Note,
): Promise<{ row: FileRow; cause: unknown }> {
  const row = { query: wanted.query, job_id: wanted.jobId, status: null as string | null };
  const none = { path: null, bytes: null, sha256: null };
  const noteStage = (stage: string) => note({ stage, fraction: 0, speedBytes: null, leftSeconds: null });
  const away = () => noteStage('service away');
  const stop = async (jobId: string) => {
    row.status = (await cancel(tools, jobId)) ?? row.status;
  };
  try {
    row.job_id ??= await submit(tools, wanted.query);
    await checkParameters(tools, row.job_id, stop);
    const seen = (job: SeenJob) => {
      row.status = job.status;
      // The sentence of a job that made no file tells its end.
      if (!isEnded(job.status) || job.status === 'CompletedJob') note(jobProgress(job));
    };
    const followed = { client: tools.client, patience: tools.patience, jobId: row.job_id, signal: tools.interrupted };
    const job = await followJob(followed, seen, away);
    if (job.status !== 'CompletedJob' || job.file === null) {
      return {
        row: { ...row, ...none, error: job.error ?? 'The job made no file', error_code: job.errorCode },
        cause: null,
      };
    }
    const path = await fetchResult(tools, row.job_id, job.file, note, away);
    return {
      row: { ...row, path, bytes: job.file.bytes, sha256: job.file.sha256, error: null, error_code: null },
      cause: null,
    };
  } catch (cause) {
    if (tools.interrupted.aborted && row.job_id !== null && row.status !== 'CompletedJob') {
      noteStage('cancel');
      await stop(row.job_id);
    }
    if (row.job_id !== null && isUnfinished(row.status, cause)) tools.noteUnfinished();
    return { row: { ...row, ...none, ...describeFailure(cause, tools.interrupted) }, cause };
  }
}

/** Asks for a job; the same request may be sent several times and makes one job. */
async function submit(tools: GetTools, query: string): Promise<string> {
  const { order, patience, interrupted, keyOf } = tools;
  interrupted.throwIfAborted();
  const path = `/v1/${order.endpoint}/download`;
  const call = { method: 'POST', body: { query, ...order.parameters }, idempotencyKey: keyOf(query) } as const;
  const { job_id: jobId } = (await sendOrder(tools, path, call)) as { job_id?: unknown };
  if (typeof jobId !== 'string') throw new ServiceAway('The address does not answer as trawl does');
  patience.accept();
  return jobId;
}

/**
 * Sends an order (a job or a batch) unless no file could be written then. Ctrl-C ends it late; calls `noteUnfinished` when it fails
 * although the service may have carried it out.
 */
export async function sendOrder(
  { order, client, interrupted, noteUnfinished }: GetTools,
  path: string,
  call: Omit<ServiceCall, 'signal' | 'noteMayBeDone'>,
): Promise<unknown> {
  let mayBeDone = false;
  const noteMayBeDone = () => {
    mayBeDone = true;
  };
  await requireWritable(order.output).catch(refuseWrite);
  try {
    return await client.call(path, { ...call, noteMayBeDone, signal: lateSignal(interrupted) });
  } catch (error) {
    if (mayBeDone) noteUnfinished();
    throw error;
  }
}

/** Cancels a job that would ignore a parameter, before it is charged. */
async function checkParameters(tools: GetTools, jobId: string, stop: (jobId: string) => Promise<void>): Promise<void> {
  const { order, client, interrupted } = tools;
  const young = youngParameters.filter((name) => name in order.parameters);
  if (young.length === 0) return;
  const job = readJob(await client.call(`${pathOf(jobId)}?fields=status,args`, { signal: interrupted }));
  const ignored = young.filter((name) => job?.args[name] === undefined);
  if (ignored.length === 0) return;
  await stop(jobId);
  throw new CallRefused(400, 'bad_request', `This service does not know ${ignored.join(' and ')}`);
}

async function fetchResult(
  tools: GetTools,
  jobId: string,
  file: ResultFile,
  note: Note,
  onAway: () => void,
): Promise<string> {
  const { order, client, patience, interrupted } = tools;
  const wanted = await choosePath(order.output, displayName(file.title, file.contentType)).catch(refuseWrite);
  const placed = await makePartialFile(wanted).catch(refuseWrite);
  const relink = async () => {
    const job = readJob(await client.call(`${pathOf(jobId)}?fields=${jobFields}`, { signal: interrupted }));
    return job?.file?.link ?? null;
  };
  const begun = performance.now();
  const onBytes = (bytes: number) => note(fetchProgress(file.bytes, bytes, (performance.now() - begun) / 1000));
  onBytes(0);
  try {
    await fetchFile({ file, partPath: placed.partPath, relink, patience, signal: interrupted, onBytes, onAway });
    return await placed.finish().catch(refuseWrite);
  } finally {
    await placed.remove();
  }
}

/** Cancels a job unless it has ended, and returns its status; `null` when the service does not answer soon. */
async function cancel({ client }: GetTools, jobId: string): Promise<string | null> {
  const signal = AbortSignal.timeout(cancelMs);
  const ask = async (method: 'GET' | 'DELETE') =>
    readJob(await client.call(`${pathOf(jobId)}?fields=status`, { method, signal }))?.status ?? null;
  try {
    const status = await ask('GET');
    // DELETE removes the file of a job that has completed and was charged.
    return status !== null && isEnded(status) ? status : await ask('DELETE');
  } catch {
    return null;
  }
}

/** Returns a signal that is aborted some seconds after another one. */
function lateSignal(signal: AbortSignal): AbortSignal {
  const late = new AbortController();
  const abortLate = () => void pause(lateMs, undefined, { ref: false }).then(() => late.abort());
  if (signal.aborted) abortLate();
  else signal.addEventListener('abort', abortLate, { once: true });
  return late.signal;
}

/** Returns true when a job, by the status last seen, may still be charged or have a file to fetch. */
function isUnfinished(status: string | null, cause: unknown): boolean {
  if (cause instanceof FetchFailed && cause.code === 'not_found') return false;
  return status === null || status === 'CompletedJob' || !isEnded(status);
}

/** Returns why a file or a playlist was not fetched; throws an error of the program itself. */
export function describeFailure(cause: unknown, interrupted: AbortSignal): Pick<FileRow, 'error' | 'error_code'> {
  if (interrupted.aborted) return { error: 'Interrupted', error_code: 'cancelled' };
  if (cause instanceof CallRefused || cause instanceof FetchFailed)
    return { error: cause.message, error_code: cause.code };
  if (cause instanceof ServiceAway) return { error: cause.message, error_code: 'unavailable' };
  throw cause;
}

function jobProgress(job: SeenJob): FileProgress {
  const queued = job.position === null || job.position === 0 ? 'queue' : `queue: ${job.position}`;
  const stage = isEnded(job.status) ? 'done' : job.status === 'QueuedJob' ? queued : (job.stage ?? 'start');
  return { stage, fraction: (job.progress / 100) * jobShare, speedBytes: job.speedBytes, leftSeconds: job.etaSeconds };
}

function fetchProgress(total: number, bytes: number, seconds: number): FileProgress {
  const speed = seconds < 0.5 ? null : bytes / seconds;
  const leftSeconds = speed ? (total - bytes) / speed : null;
  return {
    stage: 'save',
    fraction: jobShare + (1 - jobShare) * (bytes / Math.max(1, total)),
    speedBytes: speed,
    leftSeconds,
  };
}

function pathOf(jobId: string): string {
  return `/v1/jobs/${encodeURIComponent(jobId)}`;
}
