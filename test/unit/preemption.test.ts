import { expect } from 'chai';
import fc from 'fast-check';
import {
  type ActiveJob,
  choosePreempted,
  chooseSurplusRecording,
  maxLostRecordingMs,
  sharesOf,
} from '../../src/model/preemption.ts';

/**
 * Jobs as `account`, the oldest first; `!` after it: bound, `>`: leaving, `.`: idle, `*`: recording. Recordings began at the
 * time that their place gives.
 */
function active(jobs: string): ActiveJob[] {
  const holds = { '!': 'bound', '>': 'leaving', '.': 'idle', '*': 'recording' } as const;
  return jobs
    .split(' ')
    .filter(Boolean)
    .map((word, n) => {
      const hold = holds[word.at(-1) as keyof typeof holds] ?? 'free';
      const recordedAt = hold === 'recording' ? n : null;
      return { id: `${n}`, account: word.replace(/[!>.*]$/, ''), since: n, attempt: 1, hold, recordedAt };
    });
}

describe('the workers that accounts share', () => {
  for (const [slots, reserved, kept] of [
    [1, 1, 0],
    [2, 1, 0],
    [3, 1, 1],
    [100, 1, 1],
    [100, 7, 7],
    [100, 0, 0],
  ] as const) {
    it(`of ${slots} keep ${kept} when ${reserved} is set`, () => {
      expect(sharesOf(slots, reserved, 30)).to.deep.equal({ slots, kept, maxWaitMs: 30_000 });
    });
  }
});

describe('the job that is interrupted for an account without a worker', () => {
  for (const [title, jobs, slots, chosen] of [
    ['is the youngest of the account that has all workers', 'a a', 2, '1'],
    ['is that of the only worker', 'a', 1, '0'],
    ['is of the account that holds most', 'b a b a b', 5, '4'],
    ['is the younger one of two accounts that hold the same', 'a a b b', 4, '3'],
    ['is not one that was interrupted before', 'a a!', 2, '0'],
    ['is of another account when those of the first were all interrupted before', 'a! a! a! b b', 5, '4'],
    ['is not there while a worker is free', 'a', 2, null],
    ['is not there when each account has one worker', 'a b', 2, null],
    ['is not there while another job leaves', 'a a>', 2, null],
    ['is not there when all were interrupted before', 'a! a!', 2, null],
    ['is not there when one records and its worker is the only one', 'a*', 1, null],
    ['is not one that records', 'a a*', 2, '0'],
    ['is not one whose worker is done', 'a a.', 2, '0'],
    ['is not there without jobs', '', 0, null],
  ] as const) {
    it(title, () => expect(choosePreempted(active(jobs), slots)?.id ?? null).to.equal(chosen));
  }

  it('never takes the last worker of an account, nor a second one at once', () => {
    const word = fc
      .tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('', '', '!', '>', '.', '*'))
      .map((both) => both.join(''));
    fc.assert(
      fc.property(fc.array(word, { minLength: 2, maxLength: 9 }), fc.boolean(), (words, isFull) => {
        const jobs = active(words.join(' '));
        const chosen = choosePreempted(jobs, isFull ? jobs.length : jobs.length + 1);
        if (chosen === null) return;
        expect(isFull && jobs.every(({ hold }) => hold !== 'leaving')).to.equal(true);
        expect(chosen.hold).to.equal('free');
        const own = jobs.filter(({ account }) => account === chosen.account);
        expect(own.length).to.be.above(1);
        expect(own.filter(({ hold }) => hold === 'free').at(-1)).to.equal(chosen);
      }),
    );
  });
});

describe('the recording that is interrupted when it begins', () => {
  it('is not a job that has recorded before and does something else now', () => {
    const [first, second] = active('a! a*') as [ActiveJob, ActiveJob];
    expect(chooseSurplusRecording([{ ...first, recordedAt: 4 }, second], 2, 5)).to.equal(second);
  });

  for (const [title, jobs, slots, chosen, now = 5] of [
    ['is the younger one of an account that records on both workers', 'a* a*', 2, '1'],
    ['is the only one beside a job that was interrupted before', 'a! a*', 2, '1'],
    ['is the older job when that one begins to record last', 'a* a!', 2, '0'],
    ['is the last one of many', 'a* a! a* a*', 4, '3'],
    ['is not there while another job of the account can be interrupted', 'a a*', 2, null],
    ['is not there while another job of the account is about to end', 'a. a*', 2, null],
    ['is not there while another job leaves', 'a> a*', 2, null],
    ['is not there while a worker is free', 'a* a*', 3, null],
    ['is not there while another account has a worker', 'a* b*', 2, null],
    ['is not there with a single worker', 'a*', 1, null],
    ['is not there when none records', 'a! a!', 2, null],
    ['is not there without jobs', '', 0, null],
    ['is the younger one until it would lose a minute', 'a* a*', 2, '1', maxLostRecordingMs],
    ['is not there when it would lose a minute', 'a* a*', 2, null, maxLostRecordingMs + 1],
  ] as const) {
    it(title, () => {
      const found = chooseSurplusRecording(active(jobs), slots, now);
      expect(found?.id ?? null).to.equal(chosen);
    });
  }
});
