import { expect } from 'chai';
import { type FailureCode, failures } from '../../src/base/errors.ts';
import type { Job } from '../../src/model/job.ts';
import { attemptMsOf, endOf, type JobLimits, next, type Seen, type Step } from '../../src/model/next.ts';
import type { Outcome } from '../../src/model/outcome.ts';
import { aJob, aRunningJob as run, someDelivered, someMetadata } from '../support/jobs.ts';

const hour = 3_600_000;
const limits: JobLimits = {
  maxAttempts: 3,
  maxInterruptions: 10,
  maxQueueMs: 24 * hour,
  maxStoringMs: 24 * hour,
  maxAttemptMs: 2 * hour,
};

const absent: Seen = { is: 'absent' };
const running: Seen = { is: 'running' };
const waiting: Seen = { is: 'waiting', reason: 'no room' };
const delivered = someDelivered(1);
/** Of a worker's last word, which holds no URL, and of the record, which holds the caller's. */
const whole = { ...someMetadata, original_url: 'https://example.com/film' };
const doneWell = { is: 'done', metadata: someMetadata, delivered } as const;
const done = ended(doneWell);
const described = ended({ is: 'done', metadata: someMetadata, delivered: null });
const interrupted = ended({ is: 'interrupted', reason: 'evicted' });

function ended(outcome: Outcome): Seen {
  return { is: 'ended', outcome };
}

function failed(code: FailureCode): Seen {
  return ended({ is: 'failed', code });
}

function start(attempt: number): Step {
  return { do: 'start', attempt };
}

function until(time: number): Step {
  return { do: 'nothing', until: time };
}

function retry(code: FailureCode, notBefore: number, text: string | null = null): Step & { readonly do: 'retry' } {
  return { do: 'retry', counts: 'failure', code, text, notBefore };
}

function lost(reason: string | null): Step {
  return { do: 'retry', counts: 'interruption', code: 'worker_lost', text: reason, notBefore: 2000 };
}

function settle(code: FailureCode | null, text?: string): Step & { readonly do: 'settle' } {
  return { do: 'settle', end: endOf(code, text), metadata: code === null ? whole : null };
}

/** A step that is carried out for an age alone, and never before this time of Redis. */
function due(dueAt: number, step: ReturnType<typeof retry> | ReturnType<typeof settle>): Step {
  return { ...step, dueAt };
}

/** [situation, job, seen, the step, now when it is not 2000] */
type Row = [string, Job, Seen, Step, number?];

const eleventh = run({ attempt: 11, interruptions: 10 });
const again = run({ failures: 1 });
const againAtOne = run({ failures: 1, not_before: hour });
const queued: Row[] = [
  ['a new job is started', aJob(), absent, start(1), 0],
  ['a job is not started before its time', aJob({ not_before: 5000 }), absent, until(5000), 4999],
  ['a job is started at its time', aJob({ not_before: 5000 }), absent, start(1), 5000],
  ['after a failure the next attempt is started', again, absent, start(2)],
  ['after an interruption the next attempt is started', run({ interruptions: 1 }), absent, start(2)],
  ['the running worker of a counted attempt is stopped', again, running, { do: 'stop' }],
  ['the ended worker of a counted attempt is stopped', again, done, { do: 'stop' }],
  ['a job may wait in the queue up to its limit', aJob(), absent, start(1), 24 * hour - 1],
  [
    'D72: a job that waits longer than the queue allows ends',
    aJob(),
    absent,
    due(24 * hour, settle('queue_timeout')),
    24 * hour,
  ],
  ['the queue is timed from the creation', aJob({ created_at: 5 }), absent, start(1), 24 * hour],
  ['a job that waits again is timed from its back-off', againAtOne, absent, start(2), 25 * hour - 1],
  ['a job that waits again too long ends', againAtOne, absent, due(25 * hour, settle('queue_timeout')), 26 * hour],
];

const unseen = run({ status: 'QueuedJob' });
const becomesRunning: Step = { do: 'note', running: true, stage: null };
const unbegun = run({ status: 'QueuedJob', created_at: 0, deadline: null, stage: 'no room' });
const begun = run({ attempt: 2, failures: 1, deadline: null });
const waitsAgain = run({ attempt: 2, failures: 1, not_before: hour, deadline: null, stage: 'no room' });
const preempted = run({ preempted: 1 });
const preemptedLast = run({ attempt: 11, interruptions: 10, preempted: 11 });
const [forAnother, surplus] = ['another account waited for a worker', 'its account would record on every worker'];
const givenUp: Seen = { is: 'ended', outcome: { is: 'failed', code: 'worker_failed' }, neverRan: true };
const failsOnce = retry('worker_failed', 7000);
const confirm: Step = { do: 'confirm', delivered, metadata: whole };
const watched: Row[] = [
  ['the first sight of its running worker makes a job Running', unseen, running, becomesRunning],
  ['a worker that ended well before it was seen makes the job Running', unseen, done, becomesRunning],
  ['a worker that failed before it was seen makes the job Running', unseen, failed('private'), becomesRunning],
  ['a worker that the cluster gave up before it ran does not make the job Running', unseen, givenUp, failsOnce],
  ['a worker interrupted before it was seen does not make the job Running', unseen, interrupted, lost('evicted')],
  ['a running worker is let alone until its deadline', run(), running, until(50_000), 49_999],
  ['a passed deadline is a failure that may pass', run(), running, due(50_000, retry('timeout', 56_000)), 51_000],
  [
    'the last passed deadline ends the job',
    run({ attempt: 3, failures: 2 }),
    running,
    due(50_000, settle('timeout')),
    50_000,
  ],
  [
    'a worker that waits at its deadline has timed out',
    unseen,
    waiting,
    due(50_000, retry('queue_timeout', 55_000)),
    50_000,
  ],
  ['the first sight of the running worker of a later attempt begins its time', begun, running, becomesRunning],
  ['an attempt that waits uses up none of its time', unbegun, waiting, until(24 * hour), 9 * hour],
  ['a later attempt may wait as long as a job may', waitsAgain, waiting, until(25 * hour), 24 * hour],
  [
    'D72: a job whose worker has not run when its wait is over ends',
    unbegun,
    waiting,
    due(24 * hour, settle('queue_timeout')),
    24 * hour,
  ],
  ['the reason why a worker waits is noted', unseen, waiting, { do: 'note', running: false, stage: 'no room' }],
  ['a reason that is noted already is not noted again', run({ stage: 'no room' }), waiting, until(50_000)],
  ['D74: a running worker is interrupted for another account', preempted, running, lost(forAnother)],
  ['a worker that waits is interrupted for another account', { ...unbegun, preempted: 1 }, waiting, lost(forAnother)],
  [
    'a recording that leaves none to others is interrupted',
    run({ preempted: 1, stage: 'record' }),
    running,
    lost(surplus),
  ],
  ['the eleventh interruption is survived when it is for another account', preemptedLast, running, lost(forAnother)],
  ['the attempt after it is let alone', run({ attempt: 2, interruptions: 1, preempted: 1 }), running, until(50_000)],
  ['a worker that ended meanwhile is confirmed', preempted, done, confirm],
  ['a worker that has told of its end is let alone', run({ preempted: 1, verdict: doneWell }), running, until(50_000)],
  [
    'a passed deadline counts before another account',
    preempted,
    running,
    due(50_000, retry('timeout', 55_000)),
    50_000,
  ],
];

const second = run({ attempt: 2, failures: 1 });
const third = run({ attempt: 3, failures: 2 });
const slow = ended({ is: 'failed', code: 'too_slow', text: 'Slow.' });
const secret = ended({ is: 'failed', code: 'private', text: 'It is private.' });
const failing: Row[] = [
  ['D61: a failure that may pass is tried again after 5 s', run(), failed('source_error'), retry('source_error', 7000)],
  ['the attempt after the second failure waits 15 s', second, failed('source_error'), retry('source_error', 17_000)],
  ['the third failure ends the job', third, failed('source_error'), settle('source_error')],
  ['D74: interruptions are no failures', run({ attempt: 5, interruptions: 4 }), slow, retry('too_slow', 7000, 'Slow.')],
  ['D97: an extractor that fails is tried again', run(), failed('extractor_failed'), retry('extractor_failed', 7000)],
  [
    'D16: a permanent failure ends the job in the words of the worker',
    run(),
    secret,
    settle('private', 'It is private.'),
  ],
  ['D61: a permanent failure of the source ends the job', run(), failed('source_blocked'), settle('source_blocked')],
  ['D59: a premiere that has not started ends the job', run(), failed('not_started'), settle('not_started')],
  ['D97: a damaged file is tried once more', run(), failed('file_damaged'), retry('file_damaged', 7000)],
  ['a file that is damaged again ends the job', second, failed('file_damaged'), settle('file_damaged')],
  ['a file that is too large is tried once more', run(), failed('file_too_large'), retry('file_too_large', 7000)],
  ['a file that is too large again ends the job', second, failed('file_too_large'), settle('file_too_large')],
  ['an absent worker of an open attempt is an interruption', run(), absent, lost(null)],
  ['an interrupted attempt is tried again at once', run(), interrupted, lost('evicted')],
  ['the tenth interruption is survived', run({ attempt: 10, interruptions: 9 }), absent, lost(null)],
  ['D74: the eleventh interruption ends the job', eleventh, absent, settle('worker_lost')],
  [
    'a job that interruptions end tells why the last one happened',
    eleventh,
    interrupted,
    { do: 'settle', end: endOf('worker_lost'), metadata: null, reason: 'evicted' },
  ],
  ['failures are no interruptions', run({ attempt: 12, failures: 2, interruptions: 9 }), absent, lost(null)],
];

const fuller = { ...someMetadata, description: 'All of it' };
const cutOff = { is: 'interrupted', reason: 'evicted' } as const;
const inFull: Step = { do: 'confirm', delivered, metadata: { ...fuller, original_url: whole.original_url } };
const told = run({ verdict: doneWell });
const toldPrivate = run({ verdict: { is: 'failed', code: 'private' } });
const storing = run({ storing_since: 1500, delivered, metadata: whole });
const foreign = { ...someMetadata, original_url: 'https://other.example/' };
const astray = { ...delivered, key: `other/${delivered.key}` };
const inspecting = run({ endpoint: 'metadata' });
const finished: Row[] = [
  ['a worker that ended well is confirmed', run(), done, confirm],
  ['the metadata show the URL of the caller', run(), ended({ ...doneWell, metadata: foreign }), confirm],
  ['a worker that ended well is confirmed after its deadline too', run(), done, confirm, 9 * hour],
  ['a job with a verdict of success is confirmed although its worker ended as interrupted', told, interrupted, confirm],
  [
    'the metadata of a verdict win over those of the termination message',
    run({ verdict: { ...doneWell, metadata: fuller } }),
    done,
    inFull,
  ],
  ['a job with a verdict of success is confirmed although its worker is gone', told, absent, confirm],
  ['a job with a verdict of failure ends although its worker is gone', toldPrivate, absent, settle('private')],
  ['a verdict of interruption is tried again', run({ verdict: cutOff }), absent, lost('evicted')],
  [
    'the outcome of the runner wins over a verdict of interruption',
    run({ verdict: cutOff }),
    failed('drm_protected'),
    settle('drm_protected'),
  ],
  ['a running worker with a verdict is left alone until its deadline', told, running, until(50_000)],
  ['a running worker with a verdict of success is confirmed at its deadline', told, running, confirm, 50_000],
  ['the verdict of a counted attempt does not count', run({ verdict: doneWell, failures: 1 }), absent, start(2)],
  ['a storing job asks the object store again', storing, done, confirm, 9 * hour],
  ['a storing job is confirmed without its worker', storing, absent, confirm, 9 * hour],
  ['a storing job is confirmed although its worker fails later', storing, failed('timeout'), confirm, 9 * hour],
  ['D75: a job may be storing up to 24 h', storing, absent, confirm, 1499 + 24 * hour],
  [
    'a job that is storing for 24 h ends',
    storing,
    done,
    due(1500 + 24 * hour, settle('storage_unavailable')),
    1500 + 24 * hour,
  ],
  ['metadata alone completes at once', inspecting, described, settle(null)],
  ['a download without a file fails as worker_failed', run(), described, retry('worker_failed', 7000)],
  ['metadata with a file fail as worker_failed', inspecting, done, retry('worker_failed', 7000)],
  [
    'a file of another attempt fails as worker_failed',
    run({ attempt: 2, failures: 1 }),
    done,
    retry('worker_failed', 17_000),
  ],
  ['a file of another job fails as worker_failed', run({ id: 'another' }), done, retry('worker_failed', 7000)],
  [
    'a foreign key fails as worker_failed',
    run(),
    ended({ ...doneWell, delivered: astray }),
    retry('worker_failed', 7000),
  ],
];

const over: Row[] = (['CompletedJob', 'Error', 'NotFound', 'BadRequest'] as const).flatMap((status) => [
  [`nothing is left to do for ${status} without a worker`, run({ status }), absent, { do: 'nothing' }],
  [`the running worker of ${status} is stopped`, run({ status }), running, { do: 'stop' }],
  [`the waiting worker of ${status} is stopped`, run({ status }), waiting, { do: 'stop' }],
  [`the ended worker of ${status} is stopped, however it ended`, run({ status }), done, { do: 'stop' }],
]);

describe('next', () => {
  for (const [title, job, seen, step, now = 2000] of [...queued, ...watched, ...failing, ...finished, ...over]) {
    it(title, () => {
      expect(next(job, seen, now, limits)).to.deep.equal(step);
    });
  }

  it('TRAWL_ATTEMPTS=1 leaves no further try, not even for a damaged file', () => {
    for (const code of ['source_error', 'file_damaged'] as const) {
      expect(next(run(), failed(code), 2000, { ...limits, maxAttempts: 1 })).to.deep.equal(settle(code));
    }
  });

  it('many attempts give a damaged file one more try only', () => {
    const step = next(run({ attempt: 2, failures: 1 }), failed('file_damaged'), 2000, {
      ...limits,
      maxAttempts: 9,
    });
    expect(step).to.deep.equal(settle('file_damaged'));
  });

  it('D60: a failure that the caller caused is never tried again', () => {
    const codes = (Object.keys(failures) as FailureCode[]).filter((code) => failures[code].blame === 'caller');
    expect(codes).to.include('private');
    for (const code of codes) expect(next(run(), failed(code), 2000, limits)).to.deep.equal(settle(code));
  });
});

describe('the deadline of an attempt', () => {
  it('the deadline of an attempt is one job time limit after its start', () => {
    expect(attemptMsOf(aJob(), limits)).to.equal(2 * hour);
  });

  it('D65: the deadline of a recording is later by its max_duration', () => {
    expect(attemptMsOf(aJob({ args: { max_duration: 90.0005 } }), limits)).to.equal(2 * hour + 90_001);
    expect(attemptMsOf(aJob({ args: { end: 90 } }), limits)).to.equal(2 * hour + 90_000);
  });

  it('the deadline of a job without max_duration is not later', () => {
    expect(attemptMsOf(aJob({ args: { max_duration: null } }), limits)).to.equal(2 * hour);
  });
});
