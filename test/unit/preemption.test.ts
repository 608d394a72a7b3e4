import { expect } from 'chai';
import fc from 'fast-check';
import { type ActiveJob, choosePreempted, sharesOf } from '../../src/model/preemption.ts';

/** Jobs as `account`, or `account!` for one that is bound and `account>` for one that leaves, the oldest first. */
function active(jobs: string): ActiveJob[] {
  const holds = { '!': 'bound', '>': 'leaving' } as const;
  return jobs
    .split(' ')
    .filter(Boolean)
    .map((word, n) => {
      const hold = holds[word.at(-1) as keyof typeof holds] ?? 'free';
      return { id: `${n}`, account: word.replace(/[!>]$/, ''), since: n, attempt: 1, hold };
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
    ['is not there without jobs', '', 0, null],
  ] as const) {
    it(title, () => expect(choosePreempted(active(jobs), slots)?.id ?? null).to.equal(chosen));
  }

  it('never takes the last worker of an account, nor a second one at once', () => {
    const word = fc
      .tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('', '', '!', '>'))
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
