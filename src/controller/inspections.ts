import type { Log } from '../base/log.ts';
import type { Inspector } from '../model/inspected.ts';
import type { Job } from '../model/job.ts';
import type { Seen } from '../model/next.ts';
import type { Outcome } from '../model/outcome.ts';
import { type AttemptToRun, jobIn, type Runner } from '../runners/runner.ts';

interface Inspection {
  readonly leave: AbortController;
  outcome: Outcome | null;
}

/** Runs metadata jobs: no worker, the inspector is asked (D2). */
export function runInspections(
  inspector: Inspector,
  readJob: (id: string) => Promise<Job | null>,
  seconds: number,
  log: Log,
): Runner {
  const inspections = new Map<string, Inspection>();
  const watchers = new Set<(name: string) => void>();

  const ask = async ({ job: id }: AttemptToRun, signal: AbortSignal): Promise<Outcome> => {
    const job = await readJob(id);
    if (job === null) return { is: 'interrupted', reason: 'the job is gone' };
    const limit = AbortSignal.timeout(seconds * 1000);
    try {
      const found = await inspector.inspect(String(job.args.query), AbortSignal.any([signal, limit]));
      if ('failure' in found) return { is: 'failed', code: found.failure, text: found.text };
      return { is: 'done', metadata: found.metadata, delivered: null };
    } catch (error) {
      if (limit.aborted) return { is: 'failed', code: 'timeout' };
      log.debug('the inspector could not be asked', { job: id, error });
      return { is: 'failed', code: 'worker_failed' };
    }
  };
  return {
    async start(attempt) {
      if (inspections.has(attempt.name)) return;
      const inspection: Inspection = { leave: new AbortController(), outcome: null };
      inspections.set(attempt.name, inspection);
      void ask(attempt, inspection.leave.signal).then((outcome) => {
        inspection.outcome = outcome;
        for (const changed of watchers) changed(attempt.name);
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
    watch(changed) {
      watchers.add(changed);
      return () => watchers.delete(changed);
    },
    list: async (job) => [...inspections.keys()].filter((name) => job === undefined || jobIn(name) === job),
    async close() {
      for (const { leave } of inspections.values()) leave.abort();
      inspections.clear();
    },
  };
}
