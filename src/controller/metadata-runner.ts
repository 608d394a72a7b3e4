import { setTimeout as pause } from 'node:timers/promises';
import { Refusal } from '../base/errors.ts';
import { hasBrokenOff } from '../base/http-client.ts';
import type { Log } from '../base/log.ts';
import type { Inspector } from '../model/inspection-result.ts';
import type { Job } from '../model/job.ts';
import type { Seen } from '../model/next.ts';
import type { Outcome } from '../model/outcome.ts';
import { type AttemptToRun, jobIdOf, makeChangeListeners, type Runner } from '../runners/runner.ts';

interface MetadataAttempt {
  readonly leave: AbortController;
  outcome: Outcome | null;
}

const firstPauseMilliseconds = 200;
const longestPauseMilliseconds = 5_000;

/** Runs metadata jobs: no worker, the inspector is asked (D2), again while it or the record is away. */
export function openMetadataRunner(
  inspector: Inspector,
  readJob: (id: string) => Promise<Job | null>,
  seconds: number,
  log: Log,
): Runner {
  const inspections = new Map<string, MetadataAttempt>();
  const watchers = makeChangeListeners();

  const askOnce = async (id: string, signal: AbortSignal): Promise<Outcome> => {
    const job = await readJob(id);
    if (job === null) return { is: 'interrupted', reason: 'the job is gone' };
    const found = await inspector.inspect(String(job.args.query), signal);
    if ('failure' in found) return { is: 'failed', code: found.failure, text: found.text };
    return { is: 'done', metadata: found.metadata, delivered: null };
  };
  const ask = async ({ jobId }: AttemptToRun, leave: AbortSignal): Promise<Outcome> => {
    const limit = AbortSignal.timeout(seconds * 1000);
    const signal = AbortSignal.any([leave, limit]);
    for (let wait = firstPauseMilliseconds; ; wait = Math.min(2 * wait, longestPauseMilliseconds)) {
      try {
        return await askOnce(jobId, signal);
      } catch (error) {
        log.debug('the inspector could not be asked', { job: jobId, error });
        // A pause ends early only because the attempt does.
        const mayAgain = isAway(error) && (await pause(wait, true, { signal }).catch(() => false));
        if (!mayAgain) return outcomeOf(error, leave, limit);
      }
    }
  };
  return {
    async start(attempt) {
      if (inspections.has(attempt.name)) return;
      const inspection: MetadataAttempt = { leave: new AbortController(), outcome: null };
      inspections.set(attempt.name, inspection);
      void ask(attempt, inspection.leave.signal).then((outcome) => {
        inspection.outcome = outcome;
        watchers.tell(attempt.name);
      });
    },
    async stop(name) {
      inspections.get(name)?.leave.abort();
      inspections.delete(name);
    },
    async see(name): Promise<Seen> {
      const inspection = inspections.get(name);
      if (!inspection) return { is: 'absent' };
      return inspection.outcome ? { is: 'ended', outcome: inspection.outcome } : { is: 'running' };
    },
    watch: watchers.watch,
    list: async (job) => [...inspections.keys()].filter((name) => job === undefined || jobIdOf(name) === job),
    async close() {
      const names = [...inspections.keys()];
      for (const { leave } of inspections.values()) leave.abort();
      inspections.clear();
      return names;
    },
  };
}

/** Whoever was asked starts again, or can take no more now. */
function isAway(error: unknown): boolean {
  return error instanceof Refusal && error.code === 'unavailable';
}

/** An inspector that ends in the middle is not the job's failure (D74); one that says nonsense is a fault of ours. */
function outcomeOf(error: unknown, leave: AbortSignal, limit: AbortSignal): Outcome {
  if (leave.aborted) return { is: 'interrupted', reason: 'it was told to stop' };
  if (limit.aborted) return { is: 'failed', code: isAway(error) ? 'worker_failed' : 'timeout' };
  if (hasBrokenOff(error)) return { is: 'interrupted', reason: 'the inspector ended' };
  return { is: 'failed', code: 'worker_failed' };
}
