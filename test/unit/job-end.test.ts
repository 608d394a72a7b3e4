import { expect } from 'chai';
import { failures } from '../../src/base/errors.ts';
import { endOf, failAttempt } from '../../src/model/next.ts';
import { jobLimits } from '../support/job-limits.ts';
import { aRunningJob as run } from '../support/jobs.ts';

describe('an attempt that failed', () => {
  it('a file that the object store does not have is a failed attempt', () => {
    expect(failAttempt(run(), { code: 'worker_failed', text: 'No file.' }, 2000, jobLimits)).to.deep.equal({
      do: 'retry',
      counts: 'failure',
      code: 'worker_failed',
      text: 'No file.',
      notBefore: 7000,
    });
  });

  it('the back-off grows threefold up to ten minutes', () => {
    const waits = [1, 2, 3, 4, 5, 6, 50].map((failed) => {
      const step = failAttempt(run({ failures: failed - 1 }), { code: 'timeout' }, 2000, {
        ...jobLimits,
        maxAttempts: 99,
      });
      return step.do === 'retry' && step.notBefore - 2000;
    });
    expect(waits).to.deep.equal([5_000, 15_000, 45_000, 135_000, 405_000, 600_000, 600_000]);
  });
});

describe('endOf', () => {
  it('a completed job is logged as 201', () => {
    const end = { status: 'CompletedJob', code: null, text: null, log: 201, success: true, blame: null };
    expect(endOf(null)).to.deep.equal(end);
  });

  it('a failure ends with the status, sentence and blame of its table', () => {
    const text = failures.deleted.sentence;
    const end = { status: 'NotFound', code: 'deleted', text, log: 404, success: false, blame: 'caller' };
    expect(endOf('deleted')).to.deep.equal(end);
  });

  it('the words of a worker replace the sentence of the table', () => {
    expect(endOf('source_error', 'It said 503.')).to.include({
      status: 'Error',
      text: 'It said 503.',
      log: 500,
      blame: 'site',
    });
  });

  it('a cancelled job is logged as 400', () => {
    expect(endOf('cancelled')).to.include({ status: 'Error', text: 'Cancelled', log: 400, success: false });
  });
});
