import { setTimeout as pause } from 'node:timers/promises';
import { isEnded } from '../../src/model/job.ts';
import { channels } from '../../src/store/keys.ts';
import { makeJob } from '../support/cluster/job.ts';
import { namespace, type Scene } from '../support/cluster/scene.ts';
import { until } from '../support/until.ts';
import { runMilliseconds } from './settled.ts';

/** What became of one job that had the cluster for itself: milliseconds since it was submitted. */
export interface QuietJob {
  readonly made: number;
  readonly running: number;
  readonly ended: number;
  /** Nobody settles a Job of a bare client. */
  readonly settled?: number;
}

interface Watched {
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly status?: { readonly phase?: string };
}

type Times = Partial<Record<'made' | 'Running' | 'Succeeded', number>>;

const jobLabel = 'batch.kubernetes.io/job-name';
const gapMilliseconds = 150;

/** Runs jobs one after the other, ours and bare ones in turn; when what happened is what a watch told. */
export async function runQuietly(
  scene: Scene,
  bareNamespace: string,
  count: number,
): Promise<{ ours: QuietJob[]; bare: QuietJob[] }> {
  const stop = new AbortController();
  const seen = new Map<string, Times>();
  const timesOf = (name: string) => seen.get(name) ?? seen.set(name, {}).get(name) ?? {};
  const watching = [namespace, bareNamespace].flatMap((space) => [
    follow(scene, `/apis/batch/v1/namespaces/${space}/jobs`, stop.signal, ({ metadata }) => {
      timesOf(metadata.name).made ??= performance.now();
    }),
    follow(scene, `/api/v1/namespaces/${space}/pods`, stop.signal, ({ metadata, status }) => {
      const phase = status?.phase;
      if (phase === 'Running' || phase === 'Succeeded') {
        timesOf(metadata.labels?.[jobLabel] ?? '')[phase] ??= performance.now();
      }
    }),
  ]);
  const [ours, bare]: [QuietJob[], QuietJob[]] = [[], []];
  for (let n = 0; n < count; n++) {
    bare.push(await runBareJob(scene, `/apis/batch/v1/namespaces/${bareNamespace}/jobs`, `bare-quiet-${n}`, timesOf));
    await pause(gapMilliseconds);
    ours.push(await runOurJob(scene, timesOf));
    await pause(gapMilliseconds);
  }
  stop.abort();
  await Promise.all(watching);
  return { ours, bare };
}

async function runOurJob(scene: Scene, timesOf: (name: string) => Times): Promise<QuietJob> {
  let id = '';
  let settledAt = 0;
  const began = performance.now();
  id = await scene.submit((_, delivers) => ({ runMs: runMilliseconds, ending: delivers }));
  const unsubscribe = await scene.store.connection.subscribe(channels.job(id), () => {
    const at = performance.now();
    void scene.job(id).then(({ status }) => {
      if (isEnded(status)) settledAt ||= at;
    });
  });
  const times = timesOf(`${id}-1`);
  await until(() => settledAt > 0 && times.Succeeded !== undefined, 30, `${id} is settled`);
  await unsubscribe();
  return { ...since(began, times), settled: settledAt - began };
}

async function runBareJob(
  { cluster }: Scene,
  path: string,
  name: string,
  timesOf: (name: string) => Times,
): Promise<QuietJob> {
  const began = performance.now();
  await cluster.admin.ask('POST', path, makeJob(name, { namespace: path.split('/')[5] ?? '' }));
  const times = timesOf(name);
  await until(() => times.Succeeded !== undefined, 30, `${name} has run`);
  await cluster.admin.ask('DELETE', `${path}/${name}`, { propagationPolicy: 'Background' });
  return since(began, times);
}

function since(began: number, { made = Number.NaN, Running = Number.NaN, Succeeded = Number.NaN }: Times): QuietJob {
  return { made: made - began, running: Running - began, ended: Succeeded - began };
}

async function follow(
  { cluster }: Scene,
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
