import { failures } from '../base/errors.ts';
import { isEnded, type Job } from './job.ts';
import { writeTime } from './timestamp.ts';

export interface JobJsonContext {
  readonly now: number;
  readonly link: string | null;
  /** When its file is removed for its age. */
  readonly expires_at: number | null;
  readonly queue: ReturnType<typeof queueJson> | null;
}

export interface QueuePosition {
  /** Jobs of the account that wait before it; `null` when it was taken and is about to start. */
  readonly before: number | null;
  readonly running: number;
  readonly concurrency: number | null;
}

export function jobJson(job: Job, beside: JobJsonContext) {
  const ended = isEnded(job.status);
  const tookMs = job.started_at !== null && job.ended_at !== null ? job.ended_at - job.started_at : null;
  return {
    id: job.id,
    status: job.status,
    success: ended ? job.status === 'CompletedJob' : null,
    endpoint: job.path,
    created_at: writeTime(job.created_at),
    started_at: writeTime(job.started_at),
    completed_at: ended ? writeTime(job.ended_at) : null,
    duration_ms: ended ? tookMs : null,
    progress: job.status === 'CompletedJob' ? 100 : wholeProgress(job.progress),
    args: showArgs(job.args),
    result: job.status === 'CompletedJob' ? showResult(job, beside) : null,
    error: job.error,
    error_code: job.error_code,
    retryable: job.error_code && failures[job.error_code].retryable,
    ...(job.status === 'QueuedJob' && { queue: beside.queue }),
    ...(job.status === 'Running' && {
      stage: job.stage,
      speed_bytes: job.speed_bytes,
      eta_seconds: job.eta_seconds,
    }),
  };
}

/** Returns the queue position as callers see it: among the account's own jobs, with the reason for the wait and an estimate. */
export function queueJson(
  { before, running, concurrency, stage }: Pick<Job, 'stage'> & QueuePosition,
  averageSeconds: number | null,
) {
  if (before === null) return { position: 0, eta_seconds: 0, reason: stage ?? 'It is about to start' };
  const isLimited = concurrency !== null && running >= concurrency;
  const reason = isLimited ? 'The account runs as many jobs at once as it may' : 'It waits for a free worker';
  const rounds = Math.ceil((before + 1) / Math.max(1, running));
  const eta_seconds = averageSeconds === null ? null : Math.max(1, Math.round(rounds * averageSeconds));
  return { position: before + 1, eta_seconds, reason };
}

/** Returns the body of a job's webhook, in exactly the words of the contract (D94). */
export function webhookBody(job: Job, link: string | null) {
  if (job.status === 'CompletedJob') {
    return { id: job.id, status: 'CompletedJob', result: { metadata: job.metadata, response: link } };
  }
  return { id: job.id, status: 'Error', error: job.error ?? failures[job.error_code ?? 'unclassified'].sentence };
}

/** Returns the progress of a job without a file: a whole number of at most 99 (D20). */
function wholeProgress(noted: number): number {
  const whole = Number.isNaN(noted) ? 0 : Math.floor(noted);
  return Math.max(0, Math.min(whole, 99));
}

function showResult(job: Job, { now, link, expires_at }: JobJsonContext) {
  if (job.delivered === null) return { metadata: job.metadata, response: null };
  const gone = job.removed_at !== null || (expires_at !== null && now >= expires_at);
  const { bytes, sha256, content_type } = job.delivered;
  return {
    metadata: job.metadata,
    response: gone ? null : link,
    expires_at: writeTime(expires_at),
    bytes,
    sha256,
    content_type,
  };
}

function showArgs(args: Job['args']): Job['args'] {
  return typeof args.webhook_authorization === 'string' ? { ...args, webhook_authorization: '***' } : args;
}
