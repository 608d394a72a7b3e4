import type { FailureCode } from '../base/errors.ts';
import type { Delivered, Outcome } from './outcome.ts';

export const jobStatuses = ['QueuedJob', 'Running', 'CompletedJob', 'Error', 'NotFound', 'BadRequest'] as const;
export type JobStatus = (typeof jobStatuses)[number];
export const endpoints = ['video', 'audio', 'metadata'] as const;
/** The three operations that cost a credit. */
export type Endpoint = (typeof endpoints)[number];

/** Form of the ids of jobs and batches. Callers may also write capitals. */
export const uuidForm = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

interface JobTrace {
  /** `traceparent` of the request that started the job. */
  readonly parent: string;
}

/** One job as the record keeps it. Times are milliseconds, `null` when not reached. */
export interface Job {
  readonly id: string;
  readonly account: string;
  readonly key: string;
  readonly endpoint: Endpoint;
  /** Path under which it was asked for, as the contract spells it. */
  readonly path: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly status: JobStatus;
  /** Counts every change; the id of an event. */
  readonly revision: number;
  readonly created_at: number;
  readonly started_at: number | null;
  readonly ended_at: number | null;
  readonly progress: number;
  readonly stage: string | null;
  readonly speed_bytes: number | null;
  readonly eta_seconds: number | null;
  /** Number of the attempt that runs or ran last; 0 before the first. */
  readonly attempt: number;
  readonly failures: number;
  /** Attempts that ended as an interruption (D74). */
  readonly interruptions: number;
  /** Attempt that was interrupted for another account, at most one a job. */
  readonly preempted: number | null;
  readonly not_before: number;
  readonly deadline: number | null;
  /** Since when its worker has ended well while the object store cannot be asked (D75). */
  readonly storing_since: number | null;
  readonly verdict: Outcome | null;
  readonly error_code: FailureCode | null;
  readonly error: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly delivered: Delivered | null;
  readonly removed_at: number | null;
  readonly webhook_url: string | null;
  /** Sealed. */
  readonly webhook_authorization: string | null;
  readonly trace: JobTrace | null;
  /** Fields that cannot be read because the record is damaged, and are as if they were absent; absent where every one can be. */
  readonly unreadable?: readonly string[];
}

/** Also judges what a service of another release tells: a status that is not known here is an end. */
export function isEnded(status: unknown): boolean {
  return status !== 'QueuedJob' && status !== 'Running';
}
