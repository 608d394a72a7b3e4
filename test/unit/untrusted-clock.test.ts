import { expect } from 'chai';
import type { Job } from '../../src/model/job.ts';
import { next, type Seen, type Step, withoutAges } from '../../src/model/next.ts';
import { jobLimits as limits } from '../support/job-limits.ts';
import { aJob, aRunningJob as run, someDelivered, someMetadata } from '../support/jobs.ts';

const hour = 3_600_000;
const absent: Seen = { is: 'absent' };
const running: Seen = { is: 'running' };
const waiting: Seen = { is: 'waiting', reason: 'no room' };
const delivered = someDelivered(1);
const whole = { ...someMetadata, original_url: 'https://example.com/film' };
const doneWell = { is: 'done', metadata: someMetadata, delivered } as const;
const confirm: Step = { do: 'confirm', delivered, metadata: whole };
const start = (attempt: number): Step => ({ do: 'start', attempt });

/** [situation, job, seen, now, the step while the clock cannot be trusted] */
const unsteady: [string, Job, Seen, number, Step][] = [
  ['a job waits in the queue for longer than the limit', aJob(), absent, 48 * hour, start(1)],
  ['a running worker is let alone after its deadline', run(), running, 48 * hour, { do: 'nothing' }],
  [
    'a waiting worker is let alone after its deadline',
    run({ stage: 'no room' }),
    waiting,
    48 * hour,
    { do: 'nothing' },
  ],
  ['a worker that has told of its end at its deadline is judged', run({ verdict: doneWell }), running, 60_000, confirm],
  [
    'a job waits for the object store for longer than the limit',
    run({ storing_since: 0, delivered, metadata: whole }),
    absent,
    48 * hour,
    confirm,
  ],
];
const wentBack: [string, Job, Seen, number, Step][] = [
  [
    'a job waits for its next attempt for at most the longest wait',
    run({ failures: 1, not_before: 1_202_000 }),
    absent,
    2000,
    { do: 'nothing', until: 1_202_000 },
  ],
  [
    'a longer wait is over, because the clock went back',
    run({ failures: 1, not_before: 1_202_001 }),
    absent,
    2000,
    start(2),
  ],
];

describe('a job and a clock that cannot be trusted', () => {
  for (const [title, job, seen, now, step] of unsteady) {
    it(`while the clock has jumped, ${title}`, () => {
      expect(next(job, seen, now, withoutAges(limits))).to.deep.equal(step);
    });
  }

  for (const [title, job, seen, now, step] of wentBack) {
    it(title, () => {
      expect(next(job, seen, now, limits)).to.deep.equal(step);
    });
  }
});
