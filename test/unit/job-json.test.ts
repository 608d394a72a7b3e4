import { expect } from 'chai';
import fc from 'fast-check';
import type { Job } from '../../src/model/job.ts';
import { type JobJsonContext, jobJson, queueJson, webhookBody } from '../../src/model/job-json.ts';
import { aJob, aRunningJob, someDelivered, someMetadata } from '../support/jobs.ts';

const created_at = Date.UTC(2026, 0, 2, 3, 4, 5, 6);
const link = 'https://example.com/files/signed';
const queue = { position: 2, eta_seconds: 30, reason: 'concurrency' };
const hour = 3_600_000;
const beside: JobJsonContext = { now: created_at + hour, link, expires_at: created_at + 24 * hour, queue };

const contractKeys = [
  ...['id', 'status', 'success', 'endpoint', 'created_at', 'started_at', 'completed_at', 'duration_ms'],
  ...['progress', 'args', 'result', 'error', 'error_code', 'retryable'],
];

function completed(given: Partial<Job> = {}): Job {
  return aRunningJob({
    status: 'CompletedJob',
    created_at,
    started_at: created_at + 1000,
    ended_at: created_at + 3500,
    progress: 97,
    metadata: someMetadata,
    delivered: someDelivered(1),
    ...given,
  });
}

function failed(given: Partial<Job> = {}): Job {
  const error = 'This content is private';
  return completed({ status: 'Error', error_code: 'private', error, metadata: null, delivered: null, ...given });
}

describe('jobJson', () => {
  it('shows a completed job whole', () => {
    const job = jobJson(completed(), beside);
    expect(Object.keys(job)).to.deep.equal(contractKeys);
    expect(job).to.deep.equal({
      id: completed().id,
      status: 'CompletedJob',
      success: true,
      endpoint: '/v1/video/download',
      created_at: '2026-01-02T03:04:05.006Z',
      started_at: '2026-01-02T03:04:06.006Z',
      completed_at: '2026-01-02T03:04:08.506Z',
      duration_ms: 2500,
      progress: 100,
      args: completed().args,
      result: {
        metadata: someMetadata,
        response: link,
        expires_at: '2026-01-03T03:04:05.006Z',
        bytes: 1234,
        sha256: 'ab'.repeat(32),
        content_type: 'video/mp4',
      },
      error: null,
      error_code: null,
      retryable: null,
    });
  });

  it('job-status: shows a queued job with its place in the queue', () => {
    const job = jobJson(aJob({ created_at }), beside);
    expect(Object.keys(job)).to.deep.equal([...contractKeys, 'queue']);
    expect(job).to.deep.include({ status: 'QueuedJob', success: null, started_at: null, completed_at: null, queue });
    expect(job).to.deep.include({ duration_ms: null, progress: 0, result: null, error: null, error_code: null });
  });

  it('job-status: shows a running job with what it does', () => {
    const working = { stage: 'fetch', speed_bytes: 5000, eta_seconds: 9 };
    const job = jobJson(aRunningJob({ created_at, started_at: created_at, progress: 41, ...working }), beside);
    expect(Object.keys(job)).to.deep.equal([...contractKeys, 'stage', 'speed_bytes', 'eta_seconds']);
    expect(job).to.deep.include({ status: 'Running', success: null, progress: 41, completed_at: null, ...working });
    expect(job).to.deep.include({
      duration_ms: null,
      result: null,
      error: null,
      started_at: '2026-01-02T03:04:05.006Z',
    });
  });

  it('shows a running job that has been tried before without its delivery', () => {
    const job = aRunningJob({ storing_since: 5, metadata: someMetadata, delivered: someDelivered(1) });
    expect(jobJson(job, beside).result).to.equal(null);
  });

  for (const status of ['Error', 'NotFound', 'BadRequest'] as const) {
    it(`shows a job that ended as ${status} with its failure and its last progress`, () => {
      const job = jobJson(failed({ status }), beside);
      expect(Object.keys(job)).to.deep.equal(contractKeys);
      expect(job).to.include({ status, success: false, result: null, progress: 97, duration_ms: 2500 });
      expect(job).to.include({ error: 'This content is private', error_code: 'private', retryable: false });
    });
  }

  it('shows a failure that may pass as retryable', () => {
    expect(jobJson(failed({ error_code: 'source_error' }), beside).retryable).to.equal(true);
  });

  it('shows no duration of a job that never ran', () => {
    const job = jobJson(failed({ started_at: null }), beside);
    expect(job).to.include({ started_at: null, duration_ms: null, completed_at: '2026-01-02T03:04:08.506Z' });
  });

  const gone: [string, Job, JobJsonContext][] = [
    ['has expired', completed(), { ...beside, now: created_at + 24 * hour }],
    ['was removed', completed({ removed_at: created_at + 1 }), beside],
    ['has no link', completed(), { ...beside, link: null }],
  ];
  for (const [why, job, known] of gone) {
    it(`shows no link to a file that ${why}, and keeps the rest`, () => {
      const wanted = { ...jobJson(completed(), beside).result, response: null };
      expect(jobJson(job, known)).to.deep.include({ status: 'CompletedJob', success: true, result: wanted });
    });
  }

  it('shows a file until the very moment it expires', () => {
    expect(jobJson(completed(), { ...beside, now: created_at + 24 * hour - 1 }).result?.response).to.equal(link);
  });

  it('shows the link of a file that is kept without end', () =>
    expect(jobJson(completed(), { ...beside, expires_at: null }).result).to.include({
      response: link,
      expires_at: null,
    }));

  it('shows exactly metadata and no response for a metadata job', () => {
    const job = completed({ endpoint: 'metadata', path: '/v1/media/metadata', delivered: null });
    expect(jobJson(job, beside).result).to.deep.equal({ metadata: someMetadata, response: null });
  });

  it('never shows the authorization of a webhook', () => {
    const args = { query: 'https://example.com/film', webhook_authorization: 'Bearer secret' };
    expect(jobJson(aJob({ args }), beside).args).to.deep.equal({ ...args, webhook_authorization: '***' });
    expect(jobJson(aJob({ args: { webhook_authorization: null } }), beside).args).to.deep.equal({
      webhook_authorization: null,
    });
  });
});

describe('queueJson', () => {
  const waits = 'It waits for a free worker';
  const full = 'The account runs as many jobs at once as it may';
  const rows: [before: number, running: number, concurrency: number | null, seconds: number | null, wanted: object][] =
    [
      [0, 0, null, 60, { position: 1, eta_seconds: 60, reason: waits }],
      [4, 0, null, 60, { position: 5, eta_seconds: 300, reason: waits }],
      [4, 2, null, 60, { position: 5, eta_seconds: 180, reason: waits }],
      [3, 2, 3, 60, { position: 4, eta_seconds: 120, reason: waits }],
      [3, 2, 2, 60, { position: 4, eta_seconds: 120, reason: full }],
      [3, 2, 1, 60, { position: 4, eta_seconds: 120, reason: full }],
      [0, 0, null, 0.2, { position: 1, eta_seconds: 1, reason: waits }],
      [1, 1, null, 1.3, { position: 2, eta_seconds: 3, reason: waits }],
      [1, 1, null, null, { position: 2, eta_seconds: null, reason: waits }],
    ];
  for (const [before, running, concurrency, seconds, wanted] of rows) {
    const what = `${before} before it, ${running} of ${concurrency ?? 'any number'} running, ${seconds} s each`;
    it(`tells place, estimate and reason with ${what}`, () =>
      expect(queueJson({ before, running, concurrency, stage: null }, seconds)).to.deep.equal(wanted));
  }

  it('tells of a job that was taken what it waits for, or that it is about to start', () => {
    const taken = { before: null, running: 1, concurrency: 1 };
    const seen = [null, 'waiting for a node'].map((stage) => queueJson({ ...taken, stage }, 60));
    expect(seen).to.deep.equal([
      { position: 0, eta_seconds: 0, reason: 'It is about to start' },
      { position: 0, eta_seconds: 0, reason: 'waiting for a node' },
    ]);
  });
});

describe('webhookBody', () => {
  it('events-4 D94: tells of a completed job exactly what the contract says', () => {
    const { id } = completed();
    const result = { metadata: someMetadata, response: link };
    expect(webhookBody(completed(), link)).to.deep.equal({ id, status: 'CompletedJob', result });
  });

  it('has no link when the file is gone', () => {
    expect(webhookBody(completed(), null)).to.deep.include({ result: { metadata: someMetadata, response: null } });
  });

  for (const status of ['Error', 'NotFound', 'BadRequest'] as const) {
    it(`events-5 D94: tells of a job that ended as ${status} as Error`, () => {
      const { id, error } = failed();
      expect(webhookBody(failed({ status }), link)).to.deep.equal({ id, status: 'Error', error });
    });
  }

  it('tells of a cancelled job as Error', () => {
    const job = failed({ error_code: 'cancelled', error: null });
    expect(webhookBody(job, null)).to.deep.equal({ id: job.id, status: 'Error', error: 'Cancelled' });
  });

  it('has a sentence though the record has neither one nor a code', () => {
    const { error } = webhookBody(failed({ error_code: null, error: null }), null);
    expect(error).to.match(/^[A-Z].{10}/);
  });
});

describe('the progress that a job shows', () => {
  const shown = (progress: number) => jobJson(aRunningJob({ progress }), beside).progress;
  const rows: [number, number][] = [
    [0, 0],
    [12.9, 12],
    [41, 41],
    [99, 99],
    [99.9, 99],
    [100, 99],
    [Number.POSITIVE_INFINITY, 99],
    [Number.NEGATIVE_INFINITY, 0],
    [-5, 0],
    [Number.NaN, 0],
  ];
  for (const [noted, wanted] of rows) {
    it(`is ${wanted} when the record has ${noted}`, () => expect(shown(noted)).to.equal(wanted));
  }

  it('job-progress: is a whole number from 0 to 99 that falls only when that of the record does', () => {
    fc.assert(
      fc.property(fc.double(), fc.double({ noNaN: true }), fc.double({ noNaN: true }), (any, one, other) => {
        expect(Number.isInteger(shown(any)) && shown(any) >= 0 && shown(any) <= 99).to.equal(true);
        expect(shown(Math.max(one, other))).to.be.at.least(shown(Math.min(one, other)));
      }),
    );
  });
});
