import type { Job } from '../../src/model/job.ts';
import { type Metadata, readMetadata } from '../../src/model/metadata.ts';
import type { Delivered } from '../../src/model/outcome.ts';

const jobId = '11111111-2222-4333-8444-555555555555';

export const someMetadata = readMetadata({ id: 'abc', ext: 'mp4', title: 'A film', duration: 12.5 }) as Metadata;

/** The file that the worker of this attempt may name as delivered. */
export function someDelivered(attempt: number): Delivered {
  const key = `${jobId}/${attempt}/file.mp4`;
  return { key, bytes: 1234, sha256: 'ab'.repeat(32), content_type: 'video/mp4' };
}

/** A video job that was created at 0 and waits for its first start, but for what is given. */
export function aJob(given: Partial<Job> = {}): Job {
  return {
    id: jobId,
    account: 'account',
    key: 'key',
    endpoint: 'video',
    path: '/v1/video/download',
    args: { query: 'https://example.com/film', is_async: true },
    status: 'QueuedJob',
    revision: 1,
    created_at: 0,
    started_at: null,
    ended_at: null,
    progress: 0,
    stage: null,
    speed_bytes: null,
    eta_seconds: null,
    attempt: 0,
    failures: 0,
    interruptions: 0,
    preempted: null,
    not_before: 0,
    deadline: null,
    storing_since: null,
    verdict: null,
    error_code: null,
    error: null,
    metadata: null,
    delivered: null,
    removed_at: null,
    webhook_url: null,
    webhook_authorization: null,
    trace: null,
    ...given,
  };
}

/** A job whose first attempt was started at 1000, runs and has until 50,000. */
export function aRunningJob(given: Partial<Job> = {}): Job {
  return aJob({ status: 'Running', started_at: 1000, attempt: 1, deadline: 50_000, ...given });
}
