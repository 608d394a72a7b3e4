import type { V1Job, V1Pod } from '@kubernetes/client-node';
import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Seen } from '../../model/next.ts';
import { makeChangeListeners, type Runner } from '../runner.ts';
import { type Left, release } from './cleanup.ts';
import { openView, pathsOf, type View, type ViewOptions } from './cluster-state.ts';
import { type Lag, makeLag } from './deferred-cleanup.ts';
import { makeJob, type Shape } from './job-manifest.ts';
import { isTerminal, type Judged, judge, leaveMilliseconds } from './judge-attempt.ts';
import { type Client, KubeError, metadataOnly } from './kube-client.ts';
import { jobLabel, type LiveJob, type LivePod, type Raw, slimJob, slimPod } from './snapshot.ts';

export interface KubernetesOptions {
  readonly client: Client;
  readonly shape: Shape;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly metrics: Pick<Metrics, 'watch_age_seconds'>;
  readonly log: Log;
  readonly times?: ViewOptions['times'];
}

/** Runs each attempt as a Job of a cluster, which goes on without this process. */
export interface KubernetesRunner extends Runner {
  readonly view: View;
}

/** What is known must not be older than this to be acted upon. */
const oldestMilliseconds = 300_000;
/** A Job without a pod for this long is looked at closely. */
const podMilliseconds = 5_000;
const ageMilliseconds = 5_000;
/** What was let go is gone by then, or it is looked at again. */
const goneMilliseconds = 60_000;
/** Who starts an attempt knows that it waits. */
const asStarted = JSON.stringify({ is: 'waiting', reason: null } satisfies Seen);

/** Begins to look at the namespace of the workers. */
export function openKubernetesRunner(options: KubernetesOptions): KubernetesRunner {
  const { client, shape, now, metrics, log } = options;
  const { namespace } = shape;
  const { jobs: jobsPath } = pathsOf(namespace);
  const { watch, tell } = makeChangeListeners();
  const later = new Set<NodeJS.Timeout>();
  const news = makeNews();
  const view = openView({
    ...{ client, namespace, log },
    ...(options.times && { times: options.times }),
    changed: (name) => {
      if (news.isOne(name, judgeKnown(options, view, name))) tell(name);
      if (!view.podsOf(name).some((pod) => pod.deletedAt !== null && !isTerminal(pod))) return;
      const timer = setTimeout(() => later.delete(timer) && tell(name), leaveMilliseconds);
      later.add(timer);
    },
  });
  const lag = openLag(options, view, tell);
  const showAge = setInterval(() => metrics.watch_age_seconds.set(view.age() / 1000), ageMilliseconds);

  return {
    view,
    async start(attempt) {
      try {
        const body = makeJob(attempt, shape, now());
        // All that is kept of a new Job is in its metadata; of this version nothing more is read.
        view.learnJob(await client.ask<Raw<V1Job>>('POST', jobsPath, { body, accept: metadataOnly }));
      } catch (error) {
        // It was made before: by an earlier try, or by who led until now.
        if (error instanceof KubeError && error.reason === 'AlreadyExists') return;
        if (isRefused(error)) log.error('the cluster refuses a Job', { attempt: attempt.name, cause: error });
        throw error;
      }
    },
    async stop(name) {
      if (lag.has(name)) return;
      const left = await findLeft(options, view, name);
      if (mayLag(options, left) && lag.add(name, left)) hide(view, left, Number.POSITIVE_INFINITY);
      else await letGo(options, view, left);
      news.forget(name);
    },
    async see(name) {
      const judged = await look(options, view, name);
      if (judged.alarm !== null) log.error('the cluster cannot run a worker', { attempt: name, cause: judged.alarm });
      return judged.seen;
    },
    watch,
    async list(job) {
      if (job === undefined) await view.refresh();
      return view.attempts(job);
    },
    async close() {
      clearInterval(showAge);
      lag.close();
      for (const timer of later) clearTimeout(timer);
      await view.close();
      return [];
    },
  };
}

function judgeKnown({ shape, now }: KubernetesOptions, view: View, name: string): Judged {
  return judge({ job: view.jobOf(name), pods: view.podsOf(name), said: [] }, shape, now());
}

/** Remembers how attempts were last seen: most changes of an object change nothing about its attempt. */
function makeNews() {
  const told = new Map<string, string>();
  return {
    /** Whether that is worth telling: it is something else than before, or not for sure the same. */
    isOne(name: string, { seen, isProved }: Judged): boolean {
      const text = JSON.stringify(seen);
      if (isProved && text === (told.get(name) ?? asStarted)) return false;
      if (seen.is === 'absent') told.delete(name);
      else told.set(name, text);
      return true;
    },
    forget: (name: string) => void told.delete(name),
  };
}

/** Judges by what is known, and reads afresh what that does not prove. */
async function look(options: KubernetesOptions, view: View, name: string): Promise<Judged> {
  const { shape, now } = options;
  if (view.age() > oldestMilliseconds) await view.refresh();
  const job = view.jobOf(name);
  const known = judgeKnown(options, view, name);
  const lacksPod = job !== null && view.podsOf(name).length === 0 && now() - job.createdAt >= podMilliseconds;
  if (known.isProved && !lacksPod) return known;
  const fresh = await readFresh(options, name);
  const said = fresh.job !== null && fresh.pods.length === 0 ? await readFaults(options, fresh.job) : [];
  return judge({ ...fresh, said }, shape, now());
}

function openLag(options: KubernetesOptions, view: View, tell: (name: string) => void): Lag {
  return makeLag({
    // Where our own requests wait, those that let go are what keeps us from asking for more pods than there can be.
    reached: () => (options.client.isSpent() ? Number.POSITIVE_INFINITY : view.reached()),
    letGo: async (name, left) => {
      try {
        await letGo(options, view, left);
      } catch (error) {
        // Whoever looks at it next tries again.
        tell(name);
        throw error;
      }
    },
    log: options.log,
  });
}

/** Whether it harms nobody that this stays: it has ended by itself, and no queue counts it. */
function mayLag({ shape }: KubernetesOptions, { pods }: Left): boolean {
  return shape.queue === null && pods.length > 0 && pods.every((pod) => isTerminal(pod) && pod.deletedAt === null);
}

/** Releases what is left. What becomes of it meanwhile is of our own doing, and no news. */
async function letGo({ client, shape }: KubernetesOptions, view: View, left: Left): Promise<void> {
  hide(view, left, goneMilliseconds);
  try {
    await release(client, shape.namespace, left);
  } catch (error) {
    for (const uid of uidsOf(left)) view.show(uid);
    throw error;
  }
}

function hide(view: View, left: Left, milliseconds: number): void {
  for (const uid of uidsOf(left)) view.hide(uid, milliseconds);
}

function uidsOf({ job, pods }: Left): string[] {
  return [...pods, ...(job ? [job] : [])].map(({ uid }) => uid);
}

/** What there is to let go: what is known, else what the server still has. */
async function findLeft(options: KubernetesOptions, view: View, name: string): Promise<Left> {
  const [job, pods] = [view.jobOf(name), view.podsOf(name)];
  return job && pods.length > 0 ? { job, pods } : readFresh(options, name);
}

async function readFresh({ client, shape }: KubernetesOptions, name: string) {
  const paths = pathsOf(shape.namespace);
  const query = { labelSelector: `${jobLabel}=${name}` };
  const [job, pods] = await Promise.all([
    client.ask<Raw<V1Job>>('GET', `${paths.jobs}/${name}`).then(slimJob, orNothing),
    client
      .ask<{ items: Raw<V1Pod>[] }>('GET', paths.pods, { query })
      .then(({ items }): LivePod[] => items.map(slimPod)),
  ]);
  return { job: job as LiveJob | null, pods };
}

/** What the cluster said when it could not make the pod of a Job, oldest first. */
async function readFaults({ client, shape }: KubernetesOptions, job: LiveJob): Promise<string[]> {
  interface Fault {
    readonly message?: string;
    readonly lastTimestamp?: string | null;
  }
  const query = { fieldSelector: `involvedObject.uid=${job.uid},reason=FailedCreate` };
  const { items } = await client.ask<{ items: Fault[] }>('GET', pathsOf(shape.namespace).events, { query });
  return items
    .toSorted((a, b) => (a.lastTimestamp ?? '').localeCompare(b.lastTimestamp ?? ''))
    .map(({ message }) => message ?? '');
}

/** Whether only a person can change that. */
function isRefused(error: unknown): boolean {
  if (!(error instanceof KubeError) || /exceeded quota/.test(error.message)) return false;
  return error.status >= 400 && error.status < 500 && ![409, 429].includes(error.status);
}

function orNothing(error: unknown): null {
  if (error instanceof KubeError && error.status === 404) return null;
  throw error;
}
