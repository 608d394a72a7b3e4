import type { V1Job, V1Pod } from '@kubernetes/client-node';
import { fewLines } from '../../base/few-lines.ts';
import type { Log } from '../../base/log.ts';
import type { Seen } from '../../model/next.ts';
import { type AttemptToRun, makeChangeListeners, type Runner, StartDelayed } from '../runner.ts';
import { type AttemptCleanup, type Leftovers, makeCleanup } from './cleanup.ts';
import { ClusterState } from './cluster-state.ts';
import { DeferredCleanup, PodWatermark } from './deferred-cleanup.ts';
import type { InformerTimes } from './informer.ts';
import { makeJob, type WorkerShape } from './job-manifest.ts';
import {
  type AttemptJudgement,
  type AttemptObjects,
  findUnprepared,
  isTerminal,
  judgeAttempt,
  lacksPod,
  ownPods,
  podLeaveMs,
} from './judge-attempt.ts';
import { apiPathsOf, type KubeClient, KubeError, metadataOnly, nullWhenMissing } from './kube-client.ts';
import { jobNameLabel } from './labels.ts';
import { exceedsQuota, findPreparationFault, noPod, quotaUsedUp } from './pending-reason.ts';
import { type RunnerMetrics, setRunnerGauges } from './runner-gauges.ts';
import {
  type ClusterReason,
  type JobSnapshot,
  type KubeJson,
  type PodSnapshot,
  readJobSnapshot,
  readPodSnapshot,
  readTime,
} from './snapshot.ts';

interface KubernetesRunnerOptions {
  /** Closed with the runner. */
  readonly client: KubeClient;
  readonly shape: WorkerShape;
  /** Milliseconds since 1970, for ages of Jobs and pods, whose times come from the cluster. */
  readonly now: () => number;
  readonly metrics: RunnerMetrics;
  readonly log: Log;
  readonly times?: Partial<InformerTimes>;
  /** False to remove what an ended attempt left at once, even while other Jobs wait for their pods. */
  readonly defersCleanup?: boolean;
}

interface CachedJudgement extends AttemptJudgement {
  readonly isPodMissing: boolean;
  /** True when events may tell more, which are not cached. */
  readonly needsEvents: boolean;
}

/** Cached state that is older than this is refreshed before it counts. */
const maxStateAgeMs = 300_000;
const metricMs = 5_000;
/** The state that the caller of `start` knows already. */
const startedText = JSON.stringify({ is: 'waiting', reason: null } satisfies Seen);

/** Runs each attempt as a Job of a cluster, which continues without this process. */
export class KubernetesRunner implements Runner {
  readonly state: ClusterState;
  readonly watch: Runner['watch'];
  readonly #options: KubernetesRunnerOptions;
  readonly #paths: ReturnType<typeof apiPathsOf>;
  readonly #cleanup: AttemptCleanup;
  readonly #complain: Log['error'];
  readonly #notify: (attemptName: string) => void;
  /** Last state of each attempt that listeners were told of, as JSON. */
  readonly #notified = new Map<string, string>();
  /** When an attempt was last seen to wait for its quota: Kubernetes writes later refusals over the event that says so. */
  readonly #quotaSeenAt = new Map<string, number>();
  readonly #stopping = new Map<string, Promise<void>>();
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(options: KubernetesRunnerOptions) {
    const { client, shape, metrics, log, times, defersCleanup = true } = options;
    const { namespace } = shape;
    const { watch, notify } = makeChangeListeners();
    const watermark = new PodWatermark();
    this.#options = options;
    this.#complain = fewLines(log.error);
    this.#paths = apiPathsOf(namespace);
    this.watch = watch;
    this.#notify = notify;
    this.state = new ClusterState({
      ...{ client, namespace, log, times },
      onChange: (attemptName) => this.#noteChange(attemptName),
      onCount: (attemptName, hasJob, hasPod) => watermark.count(attemptName, hasJob, hasPod),
    });
    const immediate = makeCleanup(client, namespace, this.state);
    const hasQueue = shape.queue !== null;
    const deferral = { immediate, watermark, hasQueue, log, state: this.state, onFailure: notify };
    this.#cleanup = defersCleanup
      ? new DeferredCleanup({ ...deferral, isExhausted: () => client.isExhausted() })
      : immediate;
    const cleanup = this.#cleanup;
    const seenOf = (attemptName: string): Seen => {
      const { seen, isPodMissing } = this.#judgeCached(attemptName);
      const isUnexplained = seen.is === 'waiting' && seen.reason === null;
      return isUnexplained && isPodMissing ? { is: 'waiting', reason: noPod } : seen;
    };
    const parts = { client, cleanup, seenOf, state: this.state, now: options.now };
    this.#timers.add(setInterval(() => setRunnerGauges(metrics, parts), metricMs));
  }

  async start(attempt: AttemptToRun): Promise<void> {
    const { client, shape } = this.#options;
    try {
      const body = makeJob(attempt, shape);
      // All that is kept of a new Job is in its metadata.
      this.state.putJob(await client.ask<KubeJson<V1Job>>('POST', this.#paths.jobs, { body, accept: metadataOnly }));
    } catch (error) {
      // An earlier try made it, or the controller that led before.
      if (error instanceof KubeError && error.reason === 'AlreadyExists') return;
      if (error instanceof KubeError && exceedsQuota(error.message)) throw new StartDelayed(quotaUsedUp, error);
      if (needsOperator(error)) this.#complain('the cluster refuses a Job', { attempt: attempt.name, cause: error });
      throw error;
    }
  }

  /** A settle and a later look at its job may stop the same worker at once: the second one waits for the first. */
  stop(attemptName: string): Promise<void> {
    const stopping = this.#stopping.get(attemptName) ?? this.#stopNow(attemptName);
    this.#stopping.set(attemptName, stopping);
    return stopping.finally(() => this.#stopping.delete(attemptName));
  }

  async see(attemptName: string): Promise<Seen> {
    const { seen, alarm, node } = await this.#judge(attemptName);
    if (alarm !== null) {
      this.#options.log.error('the cluster cannot run a worker', { attempt: attemptName, node, cause: alarm });
    }
    return seen;
  }

  async list(jobId?: string): Promise<string[]> {
    if (jobId === undefined) await this.state.refresh();
    return this.state.attemptNames(jobId);
  }

  async close(): Promise<string[]> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#cleanup.close();
    await this.state.close();
    await this.#options.client.close();
    return [];
  }

  /** Notifies listeners of a changed attempt, and once more when a pod that was told to leave should have left. */
  #noteChange(attemptName: string): void {
    if (this.#isNews(attemptName, this.#judgeCached(attemptName))) this.#notify(attemptName);
    const isLeaving = this.state.podsOf(attemptName).some((pod) => pod.deletedAt !== null && !isTerminal(pod));
    if (!isLeaving) return;
    const timer = setTimeout(() => this.#timers.delete(timer) && this.#notify(attemptName), podLeaveMs);
    this.#timers.add(timer);
  }

  /** Returns false for a certain state of which listeners know: most changes of an object change nothing about its attempt. */
  #isNews(attemptName: string, { seen, isCertain }: AttemptJudgement): boolean {
    const text = JSON.stringify(seen);
    if (isCertain && text === (this.#notified.get(attemptName) ?? startedText)) return false;
    if (seen.is === 'absent') this.#notified.delete(attemptName);
    else this.#notified.set(attemptName, text);
    return true;
  }

  #judgeCached(attemptName: string): CachedJudgement {
    const objects = { job: this.state.jobOf(attemptName), pods: this.state.podsOf(attemptName), faults: [] };
    const now = this.#options.now();
    const isPodMissing = lacksPod(objects, now);
    const needsEvents = isPodMissing || findUnprepared(objects, now) !== undefined;
    return { ...judgeAttempt(objects, this.#options.shape, now), isPodMissing, needsEvents };
  }

  /** Judges by the cached state, and by the API server where that is not certain. */
  async #judge(attemptName: string): Promise<AttemptJudgement & { readonly node?: string | undefined }> {
    const { shape } = this.#options;
    if (this.state.ageMs() > maxStateAgeMs) await this.state.refresh();
    const cached = this.#judgeCached(attemptName);
    if (cached.isCertain && !cached.needsEvents) return cached;
    const fresh = await this.#readObjects(attemptName);
    const objects = { ...fresh, ...(await this.#readFaults(attemptName, fresh)) };
    return { ...judgeAttempt(objects, shape, this.#options.now()), node: fresh.node };
  }

  async #stopNow(attemptName: string): Promise<void> {
    if (this.#cleanup.isPostponed(attemptName)) return;
    await this.#cleanup.remove(attemptName, await this.#findLeftovers(attemptName));
    this.#notified.delete(attemptName);
    this.#quotaSeenAt.delete(attemptName);
  }

  async #findLeftovers(attemptName: string): Promise<Leftovers> {
    const [job, pods] = [this.state.jobOf(attemptName), this.state.podsOf(attemptName)];
    if (job && pods.length > 0) return { job, pods };
    const read = await this.#readObjects(attemptName);
    // What an earlier stop removed may wait for the finalizers of others.
    const isLeft = (object: { readonly uid: string }) => !this.state.isHidden(object);
    return { job: read.job && isLeft(read.job) ? read.job : null, pods: read.pods.filter(isLeft) };
  }

  /** Reads the Job and the pods of an attempt, and the node of its pod, which the cached ones lack. */
  async #readObjects(
    attemptName: string,
  ): Promise<{ job: JobSnapshot | null; pods: PodSnapshot[]; node: string | undefined }> {
    const { client } = this.#options;
    const query = { labelSelector: `${jobNameLabel}=${attemptName}` };
    const [job, { items }] = await Promise.all([
      client.ask<KubeJson<V1Job>>('GET', `${this.#paths.jobs}/${attemptName}`).catch(nullWhenMissing),
      client.ask<{ items: KubeJson<V1Pod>[] }>('GET', this.#paths.pods, { query }),
    ]);
    const node = items[0]?.spec?.nodeName;
    return { job: job && readJobSnapshot(job), pods: items.map(readPodSnapshot), node };
  }

  /** Reads why the cluster could not make the pod of a Job, oldest first, or why its node cannot prepare the pod that it has. */
  async #readFaults(
    attemptName: string,
    objects: Pick<AttemptObjects, 'job' | 'pods'>,
  ): Promise<Pick<AttemptObjects, 'faults' | 'quotaAt'>> {
    if (objects.job !== null && ownPods(objects).length === 0) {
      const events = await this.#readEvents(`involvedObject.uid=${objects.job.uid},reason=FailedCreate`);
      const faults = events.map(({ message }) => message);
      if (exceedsQuota(faults.at(-1) ?? '')) this.#quotaSeenAt.set(attemptName, this.#options.now());
      const toldAt = events.findLast(({ message }) => exceedsQuota(message))?.at ?? 0;
      return { faults, quotaAt: Math.max(toldAt, this.#quotaSeenAt.get(attemptName) ?? 0) };
    }
    const pod = findUnprepared(objects, this.#options.now());
    const fault = pod && findPreparationFault(await this.#readEvents(`involvedObject.uid=${pod.uid}`));
    return { faults: fault ? [fault] : [] };
  }

  /** Reads events of the namespace, oldest first. */
  async #readEvents(fieldSelector: string): Promise<(ClusterReason & { readonly at: number | null })[]> {
    type RawEvent = Partial<ClusterReason> & { readonly lastTimestamp?: string | null };
    const path = this.#paths.events;
    const { items } = await this.#options.client.ask<{ items: RawEvent[] }>('GET', path, { query: { fieldSelector } });
    return items
      .toSorted((a, b) => (a.lastTimestamp ?? '').localeCompare(b.lastTimestamp ?? ''))
      .map(({ reason = '', message = '', lastTimestamp }) => ({
        reason,
        message,
        at: readTime(lastTimestamp ?? undefined),
      }));
  }
}

/** True for a refusal that no repetition changes. */
function needsOperator(error: unknown): boolean {
  return error instanceof KubeError && error.status >= 400 && error.status < 500 && ![409, 429].includes(error.status);
}
