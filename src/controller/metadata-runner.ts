import { retry } from '../base/backoff.ts';
import { Refusal } from '../base/errors.ts';
import { hasBrokenOff } from '../base/http-client.ts';
import type { Log } from '../base/log.ts';
import type { Inspector } from '../model/inspection-result.ts';
import type { Job } from '../model/job.ts';
import type { Seen } from '../model/next.ts';
import type { Outcome } from '../model/outcome.ts';
import { type AttemptToRun, jobIdOf, makeChangeListeners, type Runner } from '../runners/runner.ts';

interface MetadataAttempt {
  readonly stop: AbortController;
  outcome: Outcome | null;
}

const backoff = { firstMs: 200, maxMs: 5_000 };

/** Runs metadata jobs by asking the inspector (D2), again while the inspector or Redis is away. */
export function openMetadataRunner(
  inspector: Inspector,
  readJob: (jobId: string) => Promise<Job | null>,
  maxSeconds: number,
  log: Log,
): Runner {
  const attempts = new Map<string, MetadataAttempt>();
  const listeners = makeChangeListeners();

  const inspect = async (jobId: string, signal: AbortSignal): Promise<Outcome> => {
    const job = await readJob(jobId);
    if (job === null) return { is: 'interrupted', reason: 'the job is gone' };
    const found = await inspector.inspect(String(job.args.query), job.account, signal);
    if ('failure' in found) return { is: 'failed', ...found.failure };
    return { is: 'done', metadata: found.metadata, delivered: null };
  };
  const run = ({ jobId }: AttemptToRun, stop: AbortSignal): Promise<Outcome> => {
    const limit = AbortSignal.timeout(maxSeconds * 1000);
    const signal = AbortSignal.any([stop, limit]);
    const delayOf = (error: unknown, delayMs: number) => {
      log.debug('the inspector could not be asked', { job: jobId, error });
      return isAway(error) ? delayMs : null;
    };
    return retry(() => inspect(jobId, signal), { ...backoff, signal, delayOf }).catch((error) =>
      outcomeOf(error, stop, limit),
    );
  };
  return {
    async start(attempt) {
      if (attempts.has(attempt.name)) return;
      const started: MetadataAttempt = { stop: new AbortController(), outcome: null };
      attempts.set(attempt.name, started);
      void run(attempt, started.stop.signal).then((outcome) => {
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
      return attempt.outcome ? { is: 'ended', outcome: attempt.outcome } : { is: 'running' };
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

/** The inspector restarts or has no free slot for the account, or Redis does not answer. */
function isAway(error: unknown): boolean {
  return error instanceof Refusal && (error.code === 'unavailable' || error.code === 'rate_limited');
}

/** An inspector that ends during the request interrupts the attempt (D74); an answer that cannot be read fails it. */
function outcomeOf(error: unknown, stop: AbortSignal, limit: AbortSignal): Outcome {
  if (stop.aborted) return { is: 'interrupted', reason: 'it was told to stop' };
  if (limit.aborted) return { is: 'failed', code: isAway(error) ? 'worker_failed' : 'timeout' };
  if (hasBrokenOff(error)) return { is: 'interrupted', reason: 'the inspector ended' };
  return { is: 'failed', code: 'worker_failed' };
}
