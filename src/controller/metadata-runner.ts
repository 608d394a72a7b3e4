import { retry } from '../base/backoff.ts';
import { isRefusal } from '../base/errors.ts';
import { hasBrokenOff } from '../base/http-client.ts';
import type { Log } from '../base/log.ts';
import type { Inspector } from '../model/inspection-result.ts';
import { isEnded, type Job } from '../model/job.ts';
import { hasOpenAttempt, type Seen } from '../model/next.ts';
import type { Outcome } from '../model/outcome.ts';
import { type AttemptToRun, jobIdOf, makeChangeListeners, type Runner } from '../runners/runner.ts';

interface MetadataAttempt {
  readonly stop: AbortController;
  /** True while the inspector, or Redis, is away or has no free slot: nothing is inspected. */
  isWaiting: boolean;
  outcome: Outcome | null;
}

const backoff = { firstMs: 200, maxMs: 5_000 };

/**
 * Runs metadata jobs by asking the inspector (D2), again while it or Redis is away, or has no free slot. `maxSeconds` limits one
 * answer: an attempt that waits ends at its deadline, as every attempt does.
 */
export function openMetadataRunner(
  inspector: Inspector,
  readJob: (jobId: string) => Promise<Job | null>,
  maxSeconds: number,
  log: Log,
): Runner {
  const attempts = new Map<string, MetadataAttempt>();
  const listeners = makeChangeListeners();

  const run = (attempt: AttemptToRun, started: MetadataAttempt): Promise<Outcome> => {
    const { signal: stop } = started.stop;
    let limit = stop;
    const ask = () => {
      started.isWaiting = false;
      limit = AbortSignal.timeout(maxSeconds * 1000);
      return inspect(attempt, inspector, readJob, AbortSignal.any([stop, limit]));
    };
    const delayOf = (error: unknown, delayMs: number) => {
      log.debug('the inspector could not be asked', { job: attempt.jobId, error });
      // The inspector restarts or has no free slot for the account, or Redis does not answer.
      started.isWaiting = isRefusal(error, 'unavailable', 'rate_limited');
      return started.isWaiting ? delayMs : null;
    };
    return retry(ask, { ...backoff, signal: stop, delayOf }).catch((error) => outcomeOf(error, stop, limit));
  };
  return {
    async start(attempt) {
      if (attempts.has(attempt.name)) return;
      const started: MetadataAttempt = { stop: new AbortController(), isWaiting: false, outcome: null };
      attempts.set(attempt.name, started);
      void run(attempt, started).then((outcome) => {
        started.outcome = outcome;
        listeners.notify(attempt.name);
      });
    },
    async stop(name) {
      attempts.get(name)?.stop.abort();
      attempts.delete(name);
    },
    async see(name): Promise<Seen> {
      const attempt = attempts.get(name);
      if (!attempt) return { is: 'absent' };
      if (attempt.outcome) return { is: 'ended', outcome: attempt.outcome };
      return attempt.isWaiting ? { is: 'waiting', reason: null } : { is: 'running' };
    },
    watch: listeners.watch,
    list: async (jobId) => [...attempts.keys()].filter((name) => jobId === undefined || jobIdOf(name) === jobId),
    async close() {
      const names = [...attempts.keys()];
      for (const { stop } of attempts.values()) stop.abort();
      attempts.clear();
      return names;
    },
  };
}

async function inspect(
  { jobId, attempt }: AttemptToRun,
  inspector: Inspector,
  readJob: (jobId: string) => Promise<Job | null>,
  signal: AbortSignal,
): Promise<Outcome> {
  const job = await readJob(jobId);
  if (job?.attempt !== attempt || isEnded(job.status) || !hasOpenAttempt(job)) {
    return { is: 'interrupted', reason: 'the attempt is over' };
  }
  const found = await inspector.inspect(String(job.args.query), job.account, signal);
  if ('failure' in found) return { is: 'failed', ...found.failure };
  return { is: 'done', metadata: found.metadata, delivered: null };
}

/** An inspector that ends during the request interrupts the attempt (D74); an answer that cannot be read fails it. */
function outcomeOf(error: unknown, stop: AbortSignal, limit: AbortSignal): Outcome {
  if (stop.aborted) return { is: 'interrupted', reason: 'it was told to stop' };
  if (limit.aborted) return { is: 'failed', code: 'timeout' };
  if (hasBrokenOff(error)) return { is: 'interrupted', reason: 'the inspector ended' };
  return { is: 'failed', code: 'worker_failed' };
}
