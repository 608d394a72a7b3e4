import type { EndedSpan } from '../base/traces.ts';
import type { StageMark } from './attempt-stages.ts';
import type { Job } from './job.ts';
import { spanIdOf, type TraceContext } from './trace-context.ts';

export interface AttemptTimes {
  readonly attempt: number;
  readonly started_at?: number;
  readonly ended_at?: number;
  /** `completed`, or why it ended. */
  readonly code?: string;
  readonly counts?: string;
  /** Stages that its worker told: with the end of the attempt, or with the beginning of one that goes on. */
  readonly stages?: readonly StageMark[];
}

interface TracedEnd {
  readonly job: Job;
  readonly attempts: readonly AttemptTimes[];
  /** When the controller began to settle the job; `null` when nothing was settled. */
  readonly settledFrom: number | null;
}

type SpanFacts = Pick<EndedSpan, 'name' | 'beganAt' | 'endedAt' | 'failure'> & {
  /** Words that no other span of the job has. */
  readonly words: string;
  readonly parentId: string;
  readonly attributes?: EndedSpan['attributes'];
};

/** Id of the span of a whole job, whose children all others of the job are. */
export function jobSpanId(trace: TraceContext, jobId: string): string {
  return spanIdOf(trace, jobId, 'job');
}

/** Returns the spans of an ended job out of what the record knows of it: the job, each wait in the queue, attempts, their stages, settle. */
export function spansOfJob(trace: TraceContext, ended: TracedEnd): EndedSpan[] {
  const { job, settledFrom } = ended;
  const jobId = job.id;
  const endedAt = job.ended_at ?? job.created_at;
  const of = ({ words, attributes = {}, ...facts }: SpanFacts): EndedSpan => ({
    ...facts,
    ...{ kind: 'internal', traceId: trace.traceId, spanId: spanIdOf(trace, jobId, words) },
    attributes: { 'trawl.job.id': jobId, ...attributes },
  });
  const parentId = jobSpanId(trace, jobId);
  const outcome = job.error_code ?? 'completed';
  const whole = {
    'trawl.endpoint': job.endpoint,
    'trawl.outcome': outcome,
    'trawl.attempts': job.attempt,
  };
  const facts = { beganAt: job.created_at, endedAt, failure: job.error_code, attributes: whole };
  const spans: EndedSpan[] = [of({ name: 'job', words: 'job', parentId: trace.spanId, ...facts })];
  // The settling follows the last attempt, though both end with the job.
  const workedUntil = Math.min(endedAt, settledFrom ?? endedAt);
  let waitsFrom = job.created_at;
  for (const { attempt, started_at: startedAt } of ended.attempts) {
    if (startedAt === undefined) continue;
    const end = ended.attempts.find((mark) => mark.attempt === attempt && mark.ended_at !== undefined);
    const until = Math.max(startedAt, Math.min(end?.ended_at ?? workedUntil, workedUntil));
    const number = { 'trawl.attempt': attempt };
    spans.push(of({ ...queued(attempt, waitsFrom, startedAt), parentId }));
    const attributes = { ...number, 'trawl.outcome': end?.code ?? outcome, 'trawl.class': classOf(end, job) };
    const words = `attempt ${attempt}`;
    const failure = attributes['trawl.outcome'] === 'completed' ? null : attributes['trawl.outcome'];
    spans.push(of({ name: 'attempt', words, parentId, beganAt: startedAt, endedAt: until, failure, attributes }));
    const within = stagesOf(end?.stages ?? [], attempt, startedAt, until);
    spans.push(...within.map((stage) => of({ ...stage, attributes: number, parentId: spanIdOf(trace, jobId, words) })));
    waitsFrom = until;
  }
  const last = ended.attempts.at(-1);
  // Of a job that ended while it waited.
  if (last === undefined || last.counts !== undefined) {
    spans.push(of({ ...queued((last?.attempt ?? 0) + 1, waitsFrom, workedUntil), parentId }));
  }
  if (settledFrom !== null) {
    const settle = { name: 'settle', words: 'settle', parentId, beganAt: workedUntil, endedAt, failure: null };
    spans.push(of({ ...settle, attributes: { 'trawl.outcome': outcome } }));
  }
  return spans;
}

function queued(attempt: number, beganAt: number, endedAt: number) {
  const attributes = { 'trawl.attempt': attempt };
  return { name: 'queue', words: `queue ${attempt}`, beganAt, endedAt, failure: null, attributes };
}

/** Each stage lasts until the next one; until the first one, the worker starts. */
function stagesOf(stages: readonly StageMark[], attempt: number, startedAt: number, until: number) {
  const begun = [{ stage: 'start', at: startedAt }, ...stages];
  return begun.map(({ stage, at }, n) => {
    const beganAt = Math.min(Math.max(at, startedAt), until);
    const endedAt = Math.min(Math.max(begun[n + 1]?.at ?? until, beganAt), until);
    return { name: stage, words: `stage ${attempt} ${n}`, beganAt, endedAt, failure: null };
  });
}

function classOf(end: AttemptTimes | undefined, { error_code }: Job): string {
  if (end?.counts !== undefined) return end.counts === 'failure' ? 'failed' : 'interrupted';
  if (error_code === null) return 'done';
  return error_code === 'worker_lost' || error_code === 'cancelled' ? 'interrupted' : 'failed';
}
