import { setTimeout as pause } from 'node:timers/promises';
import { isEnded } from '../../src/model/job.ts';
import { markWatched } from '../../src/store/jobs/mark-watched.ts';
import { channels } from '../../src/store/keys.ts';
import { makeJob } from '../support/cluster/job.ts';
import { namespace, type Testbed } from '../support/cluster/testbed.ts';
import { until } from '../support/until.ts';
import { runMilliseconds } from './cluster-settles.ts';

/** The times of one job that had the cluster for itself, in milliseconds since it was submitted. */
export interface SingleJob {
  readonly made: number;
  readonly running: number;
  readonly ended: number;
  /** Nobody settles a Job of a minimal client. */
  readonly settled?: number;
}

interface Watched {
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly status?: { readonly phase?: string };
}

type Times = Partial<Record<'made' | 'Running' | 'Succeeded', number>>;

const jobLabel = 'batch.kubernetes.io/job-name';
const gapMilliseconds = 150;

/** Runs jobs one after the other, ours and minimal ones in turn; when what happened is what a watch told. */
export async function runSingleJobs(
  testbed: Testbed,
  minimalNamespace: string,
  count: number,
): Promise<{ ours: SingleJob[]; minimal: SingleJob[] }> {
  const stop = new AbortController();
  const seen = new Map<string, Times>();
  const timesOf = (name: string) => seen.get(name) ?? seen.set(name, {}).get(name) ?? {};
  const watching = [namespace, minimalNamespace].flatMap((space) => [
    follow(testbed, `/apis/batch/v1/namespaces/${space}/jobs`, stop.signal, ({ metadata }) => {
      timesOf(metadata.name).made ??= performance.now();
    }),
    follow(testbed, `/api/v1/namespaces/${space}/pods`, stop.signal, ({ metadata, status }) => {
      const phase = status?.phase;
      if (phase === 'Running' || phase === 'Succeeded') {
        timesOf(metadata.labels?.[jobLabel] ?? '')[phase] ??= performance.now();
      }
    }),
  ]);
  const [ours, minimal]: [SingleJob[], SingleJob[]] = [[], []];
  for (let n = 0; n < count; n++) {
    minimal.push(
      await runMinimalJob(testbed, `/apis/batch/v1/namespaces/${minimalNamespace}/jobs`, `minimal-quiet-${n}`, timesOf),
    );
    await pause(gapMilliseconds);
    ours.push(await runOurJob(testbed, timesOf));
    await pause(gapMilliseconds);
  }
  stop.abort();
  await Promise.all(watching);
  return { ours, minimal };
}

async function runOurJob(testbed: Testbed, timesOf: (name: string) => Times): Promise<SingleJob> {
  let id = '';
  let settledAt = 0;
  const began = performance.now();
  id = await testbed.submit((_, delivers) => ({ runMs: runMilliseconds, ending: delivers }));
  const unsubscribe = await testbed.store.connection.subscribe(channels.job(id), () => {
    const at = performance.now();
    void testbed.job(id).then(({ status }) => {
      if (isEnded(status)) settledAt ||= at;
    });
  });
  // Changes are published only for jobs that somebody watches.
  await markWatched(testbed.store, id);
  const times = timesOf(`${id}-1`);
  await until(() => settledAt > 0 && times.Succeeded !== undefined, 30, `${id} is settled`);
  await unsubscribe();
  return { ...since(began, times), settled: settledAt - began };
}

async function runMinimalJob(
  { cluster }: Testbed,
  path: string,
  name: string,
  timesOf: (name: string) => Times,
): Promise<SingleJob> {
  const began = performance.now();
  await cluster.admin.ask('POST', path, makeJob(name, { namespace: path.split('/')[5] ?? '' }));
  const times = timesOf(name);
  await until(() => times.Succeeded !== undefined, 30, `${name} has run`);
  await cluster.admin.ask('DELETE', `${path}/${name}`, { propagationPolicy: 'Background' });
  return since(began, times);
}

function since(began: number, { made = Number.NaN, Running = Number.NaN, Succeeded = Number.NaN }: Times): SingleJob {
  return { made: made - began, running: Running - began, ended: Succeeded - began };
}

async function follow(
  { cluster }: Testbed,
  path: string,
  signal: AbortSignal,
  see: (object: Watched) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const { object } of cluster.admin.watch<Watched>(`${path}?watch=true`, signal)) see(object);
    } catch {
      // The server ends a watch when it likes; the next one begins with what is there.
    }
  }
}
