import { makeMetrics } from '../../src/base/metrics.ts';
import { type AdvanceOptions, JobAdvancer } from '../../src/controller/advance-job.ts';
import { StorageLane } from '../../src/controller/storage-lane.ts';
import { StorageProbe } from '../../src/controller/storage-probe.ts';
import type { Outcome } from '../../src/model/outcome.ts';
import { jobIdOf, type Runner } from '../../src/runners/runner.ts';
import { jobLimits } from './job-limits.ts';
import { holder, type TestStore } from './record.ts';
import { aLog } from './redis.ts';

export interface PlayedRunner extends Runner {
  readonly started: string[];
  readonly stopped: string[];
  /** The error of `start`, as long as it is set. */
  refuse: string | null;
}

/** A runner whose workers a test plays: those that run, and those that have ended in some way. */
export function aRunner(ended: Readonly<Record<string, Outcome>>, running: readonly string[] = []): PlayedRunner {
  const there = new Set([...Object.keys(ended), ...running]);
  const runner: PlayedRunner = {
    started: [],
    stopped: [],
    refuse: null,
    start: async ({ name }) => {
      if (runner.refuse !== null) throw new Error(runner.refuse);
      runner.started.push(name);
      there.add(name);
    },
    stop: async (name) => {
      if (there.delete(name)) runner.stopped.push(name);
    },
    see: async (name) => {
      if (!there.has(name)) return { is: 'absent' };
      const outcome = ended[name];
      return outcome ? { is: 'ended', outcome } : { is: 'running' };
    },
    watch: () => () => {},
    list: async (job) => [...there].filter((name) => job === undefined || jobIdOf(name) === job),
    close: async () => [],
  };
  return runner;
}

/** An object store that has nothing, and keeps nothing. */
export const emptyObjects = {
  finish: async () => false,
  see: async () => null,
  keep: async () => {},
  remove: async () => {},
};

/** Returns how a leading controller advances a job of this runner, with an object store that has nothing. */
export function advanceWith(
  store: TestStore,
  runner: Runner,
  given: Partial<Omit<AdvanceOptions, 'objects'>> & {
    readonly objects?: Partial<AdvanceOptions['objects']>;
    readonly holder?: string;
  } = {},
) {
  const objects = { ...emptyObjects, ...given.objects };
  const [metrics, { log }] = [makeMetrics(), aLog()];
  const probe = new StorageProbe({ objects, metrics, log });
  const lane = new StorageLane({ probe, log, again: () => {}, firstMs: 1 });
  const advancer = new JobAdvancer({
    ...{ store, limits: jobLimits, metrics, traces: null, log, lane, probe },
    term: () => given.holder ?? holder,
    runners: [runner],
    runnerOf: () => runner,
    mayStart: () => true,
    ...given,
    objects,
  });
  return async (jobId: string, mayClaim = true) => {
    if (probe.isAway()) await probe.check();
    const delay = await advancer.advance(jobId, () => mayClaim);
    await lane.settled();
    lane.forget(jobId);
    probe.close();
    return delay;
  };
}
