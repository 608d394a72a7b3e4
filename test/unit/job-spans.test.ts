import { expect } from 'chai';
import type { EndedSpan } from '../../src/base/traces.ts';
import type { Job } from '../../src/model/job.ts';
import { jobSpanId, spansOfJob } from '../../src/model/job-spans.ts';
import { aJob } from '../support/jobs.ts';

const trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) };
const completed = { status: 'CompletedJob', ended_at: 100, attempt: 1 } as const;
type Ended = Partial<Parameters<typeof spansOfJob>[1]>;

function spansOf(job: Partial<Job>, ended: Ended = {}): EndedSpan[] {
  return spansOfJob(trace, { job: aJob(job), attempts: [], settledFrom: null, ...ended });
}

/** Each span as its name below the names of its parents, with its times and what failed. */
function shown(spans: readonly EndedSpan[]): string[] {
  const pathOf = ({ name, parentId }: EndedSpan): string => {
    const parent = spans.find(({ spanId }) => spanId === parentId);
    return parent ? `${pathOf(parent)}/${name}` : name;
  };
  return spans.map((span) => `${pathOf(span)} ${span.beganAt}-${span.endedAt} ${span.failure ?? ''}`.trim());
}

describe('spans of a job', () => {
  it('are the job, its wait, its attempt with stages, and its settling', () => {
    const stages = [
      { stage: 'inspect', at: 20, ms: 40 },
      { stage: 'upload', at: 60, ms: 30 },
    ] as const;
    const attempts = [
      { attempt: 1, started_at: 10 },
      { attempt: 1, ended_at: 100, code: 'completed', stages },
    ];
    const spans = spansOf(completed, { attempts, settledFrom: 90 });
    expect(shown(spans)).to.deep.equal([
      'job 0-100',
      'job/queue 0-10',
      'job/attempt 10-90',
      'job/attempt/start 10-20',
      'job/attempt/inspect 20-60',
      'job/attempt/upload 60-90',
      'job/settle 90-100',
    ]);
    expect(spans[0]).to.include({ parentId: trace.spanId, spanId: jobSpanId(trace, aJob().id) });
    expect(spans.map(({ traceId }) => traceId)).to.deep.equal(spans.map(() => trace.traceId));
    expect(spans.map(({ kind }) => kind)).to.deep.equal(spans.map(() => 'internal'));
    const [of, number, outcome] = [
      { 'trawl.job.id': aJob().id },
      { 'trawl.attempt': 1 },
      { 'trawl.outcome': 'completed' },
    ];
    expect(spans.map(({ attributes }) => attributes)).to.deep.equal([
      { ...of, ...outcome, 'trawl.endpoint': 'video', 'trawl.attempts': 1 },
      { ...of, ...number },
      { ...of, ...number, ...outcome, 'trawl.class': 'done' },
      ...Array(3).fill({ ...of, ...number }),
      { ...of, ...outcome },
    ]);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).to.equal(spans.length);
  });

  it('tell of each attempt, and of the wait in front of each', () => {
    const attempts = [
      { attempt: 1, started_at: 10 },
      { attempt: 1, ended_at: 30, code: 'worker_lost', counts: 'interruption' },
      { attempt: 2, started_at: 40 },
      { attempt: 2, ended_at: 100, code: 'timeout' },
    ];
    const failed = { status: 'Error', error_code: 'timeout', ended_at: 100, attempt: 2 } as const;
    const spans = spansOf(failed, { attempts, settledFrom: 100 });
    expect(shown(spans)).to.deep.equal([
      'job 0-100 timeout',
      'job/queue 0-10',
      'job/attempt 10-30 worker_lost',
      'job/attempt/start 10-30',
      'job/queue 30-40',
      'job/attempt 40-100 timeout',
      'job/attempt/start 40-100',
      'job/settle 100-100',
    ]);
    expect(spans.map(({ attributes }) => attributes['trawl.attempt'])).to.deep.equal([
      ...[undefined, 1, 1, 1, 2, 2, 2, undefined],
    ]);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).to.equal(spans.length);
  });

  const ends: [code: Job['error_code'], counts: string | undefined, told: string][] = [
    [null, undefined, 'done'],
    ['timeout', undefined, 'failed'],
    ['worker_lost', undefined, 'interrupted'],
    ['cancelled', undefined, 'interrupted'],
    // Its last attempt was counted before the job ended while it waited for the next one.
    ['cancelled', 'failure', 'failed'],
    ['cancelled', 'interruption', 'interrupted'],
  ];
  for (const [error_code, counts, told] of ends) {
    it(`call an attempt ${told} that counts as ${counts ?? 'the end'} of a job with ${error_code ?? 'its file'}`, () => {
      const end = { attempt: 1, ended_at: 100, code: error_code ?? 'completed', ...(counts && { counts }) };
      const spans = spansOf({ ...completed, error_code }, { attempts: [{ attempt: 1, started_at: 10 }, end] });
      expect(spans.find(({ name }) => name === 'attempt')?.attributes['trawl.class']).to.equal(told);
    });
  }

  it('end an attempt whose end nobody told with its job', () => {
    const cancelled = { status: 'Error', error_code: 'cancelled', ended_at: 50, attempt: 1 } as const;
    const spans = spansOf(cancelled, { attempts: [{ attempt: 1, started_at: 10 }] });
    expect(shown(spans).slice(1)).to.deep.equal([
      'job/queue 0-10',
      'job/attempt 10-50 cancelled',
      'job/attempt/start 10-50',
    ]);
    expect(spans[2]?.attributes).to.include({ 'trawl.outcome': 'cancelled', 'trawl.class': 'interrupted' });
  });

  it('end with the wait of a job that was cancelled in the queue', () => {
    const cancelled = { status: 'Error', error_code: 'cancelled', ended_at: 50 } as const;
    expect(shown(spansOf(cancelled))).to.deep.equal(['job 0-50 cancelled', 'job/queue 0-50']);
    const attempts = [
      { attempt: 1, started_at: 10 },
      { attempt: 1, ended_at: 30, code: 'timeout', counts: 'failure' },
    ];
    const later = spansOf({ ...cancelled, attempt: 1 }, { attempts });
    expect(spansOf(cancelled).at(-1)?.attributes).to.include({ 'trawl.attempt': 1 });
    expect(later.at(-1)?.attributes).to.include({ 'trawl.attempt': 2 });
    expect(shown(later).slice(1)).to.deep.equal([
      'job/queue 0-10',
      'job/attempt 10-30 timeout',
      'job/attempt/start 10-30',
      'job/queue 30-50',
    ]);
  });

  it('never end before they begin, whatever clocks did', () => {
    const stages = [
      { stage: 'inspect', at: 500, ms: 1 },
      { stage: 'upload', at: 1, ms: 1 },
      { stage: 'inspect', at: 2, ms: 1 },
    ] as const;
    const attempts = [
      { attempt: 1, started_at: 70 },
      { attempt: 1, ended_at: 60, code: 'completed', stages },
    ];
    const spans = spansOf({ ...completed, ended_at: 60 }, { attempts, settledFrom: 5 });
    expect(new Set(spans.map(({ spanId }) => spanId)).size, 'a stage that begins anew').to.equal(spans.length);
    for (const span of spans.slice(3)) expect(span.endedAt, span.name).to.be.at.least(span.beganAt);
  });

  it('hold neither a URL nor a parameter of the call', () => {
    const spans = spansOf({ ...completed, error_code: 'deleted', error: 'gone at https://example.com/?token=secret' });
    expect(JSON.stringify(spans)).not.to.match(/example|secret|https?:/);
  });
});
