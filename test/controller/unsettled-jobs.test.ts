import { expect } from 'chai';
import { UnsettledJobs } from '../../src/controller/unsettled-jobs.ts';
import type { Job } from '../../src/model/job.ts';
import type { Seen } from '../../src/model/next.ts';

const ended: Seen = { is: 'ended', outcome: { is: 'interrupted', reason: 'its node was shut down' } };

function aJob(id: string, given: Partial<Job> = {}): Job {
  const open = { status: 'Running', attempt: 1, failures: 0, interruptions: 0, verdict: null, storing_since: null };
  return { id, ...open, ...given } as Job;
}

describe('unsettled jobs', () => {
  let jobs: UnsettledJobs;
  beforeEach(() => {
    jobs = new UnsettledJobs();
  });

  it('oldest returns null while no worker has ended', () => {
    jobs.update(aJob('a'), { is: 'running' }, 1);
    jobs.update(aJob('b'), { is: 'absent' }, 2);
    expect(jobs.oldest()).to.equal(null);
  });

  it('oldest returns the time of the first update after a worker ended, also after later updates', () => {
    jobs.update(aJob('a'), ended, 20);
    jobs.update(aJob('b'), ended, 10);
    jobs.update(aJob('b'), ended, 30);
    expect(jobs.oldest()).to.equal(10);
  });

  it('keepOnly forgets a job that was settled without a further update', () => {
    jobs.update(aJob('a'), ended, 20);
    jobs.update(aJob('b'), ended, 10);
    jobs.keepOnly(['a', 'c']);
    expect(jobs.oldest()).to.equal(20);
  });

  it('a job with a verdict counts although its worker is gone', () => {
    jobs.update(aJob('a', { verdict: { is: 'failed', code: 'private' } }), { is: 'absent' }, 5);
    expect(jobs.oldest()).to.equal(5);
  });

  it('a storing job counts from storing_since', () => {
    jobs.update(aJob('a', { storing_since: 3 }), { is: 'absent' }, 50);
    expect(jobs.oldest()).to.equal(3);
  });

  it('after the clock went back a job counts from then, and a worker that hangs is stopped a minute later', () => {
    const verdict = { is: 'failed', code: 'private' } as const;
    const storing = aJob('a', { storing_since: 3_600_000 });
    const hung = aJob('b', { verdict });
    jobs.update(hung, { is: 'running' }, 3_600_000);
    jobs.update(storing, { is: 'absent' }, 50);
    jobs.update(hung, { is: 'running' }, 50);
    expect(jobs.oldest()).to.equal(50);
    expect(jobs.endOf(hung, { is: 'running' }, 60_050)).to.deep.equal({ is: 'ended', outcome: verdict });
  });

  for (const [what, given] of [
    ['has ended', { status: 'Error' }],
    ['has no open attempt', { interruptions: 1 }],
  ] as const) {
    it(`a job that ${what} counts no more`, () => {
      jobs.update(aJob('a'), ended, 5);
      jobs.update(aJob('a', given), ended, 6);
      expect(jobs.oldest()).to.equal(null);
    });
  }

  it('a worker that runs a minute after its verdict, and no less, counts as ended with that', () => {
    const verdict = { is: 'failed', code: 'private' } as const;
    const [job, running] = [aJob('a', { verdict }), { is: 'running' } as const];
    jobs.update(job, running, 5);
    expect(jobs.endOf(job, running, 60_004)).to.equal(running);
    expect(jobs.endOf(job, running, 60_005)).to.deep.equal({ is: 'ended', outcome: verdict });
  });

  it('delete and clear remove jobs', () => {
    jobs.update(aJob('a'), ended, 1);
    jobs.update(aJob('b'), ended, 2);
    jobs.delete('a');
    expect(jobs.oldest()).to.equal(2);
    jobs.clear();
    expect(jobs.oldest()).to.equal(null);
  });
});
