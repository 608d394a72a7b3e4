import { isDeepStrictEqual } from 'node:util';
import type { V1Job } from '@kubernetes/client-node';
import type { Log } from '../../base/log.ts';
import { jobIdOf } from '../runner.ts';
import { Informer, type InformerTimes } from './informer.ts';
import { apiPathsOf, type KubeClient } from './kube-client.ts';
import { attemptSelector } from './labels.ts';
import { unreadOfJob, unreadOfPod } from './parse-event.ts';
import { type JobSnapshot, type KubeJson, type PodSnapshot, readJobSnapshot, readPodSnapshot } from './snapshot.ts';

interface ClusterStateOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  /** Called with the name of an attempt when its Job or a pod of it has changed. */
  readonly onChange: (attemptName: string) => void;
  /** Called when a Job or pod has appeared or gone, with what the attempt has now. */
  readonly onCount: (attemptName: string, hasJob: boolean, hasPod: boolean) => void;
  readonly log: Log;
  readonly times?: Partial<InformerTimes>;
}

/** Cached Jobs and pods of all workers, by attempt. Hidden objects count as gone, although they exist until the cluster has removed them. */
export class ClusterState {
  readonly #options: ClusterStateOptions;
  readonly #jobs: Informer<JobSnapshot>;
  readonly #pods: Informer<PodSnapshot>;
  /** Time until which objects are hidden, by uid. */
  readonly #hiddenUntil = new Map<string, number>();
  /** Names of the objects of each attempt, by job id: a lookup for one job reads nothing of others. */
  readonly #index = new Map<string, Map<string, Set<string>>>();

  constructor(options: ClusterStateOptions) {
    this.#options = options;
    const { client, namespace, log, times } = options;
    const paths = apiPathsOf(namespace);
    const onChange = this.#noteChange.bind(this);
    const shared = { client, log, onChange, selector: attemptSelector, times };
    this.#jobs = new Informer({ ...shared, path: paths.jobs, read: readJobSnapshot, unread: unreadOfJob });
    this.#pods = new Informer({ ...shared, path: paths.pods, read: readPodSnapshot, unread: unreadOfPod });
  }

  jobOf(attemptName: string): JobSnapshot | null {
    const job = this.#jobs.cache.get(attemptName);
    return job && !this.isHidden(job) ? job : null;
  }

  podsOf(attemptName: string): PodSnapshot[] {
    const names = this.#index.get(jobIdOf(attemptName))?.get(attemptName) ?? [];
    return [...names].flatMap((name) => {
      const pod = this.#pods.cache.get(name);
      return pod && !this.isHidden(pod) ? [pod] : [];
    });
  }

  /** Returns a pod by its own name, hidden or not. */
  pod(name: string): PodSnapshot | null {
    return this.#pods.cache.get(name) ?? null;
  }

  attemptNames(jobId?: string): string[] {
    const indexed = jobId === undefined ? [...this.#index.values()] : [this.#index.get(jobId) ?? new Map()];
    const names: string[] = indexed.flatMap((attempts) => [...attempts.keys()]);
    return names.filter((name) => this.jobOf(name) !== null || this.podsOf(name).length > 0);
  }

  /** Returns when the deletion of the Job or pod was asked for that is still there although it left first; `null` for none. */
  leavingSince(): number | null {
    const objects = [...this.#jobs.cache.values(), ...this.#pods.cache.values()];
    return objects.reduce<number | null>((first, { deletedAt }) => {
      return deletedAt !== null && (first === null || deletedAt < first) ? deletedAt : first;
    }, null);
  }

  putJob(raw: KubeJson<V1Job>): void {
    this.#jobs.cache.put(raw);
  }

  /** Counts objects as gone. Those that still exist after this time are seen again. */
  hide(objects: readonly { readonly uid: string }[], forMs: number): void {
    for (const { uid } of objects) this.#hiddenUntil.set(uid, performance.now() + forMs);
  }

  show(objects: readonly { readonly uid: string }[]): void {
    for (const { uid } of objects) this.#hiddenUntil.delete(uid);
  }

  isHidden({ uid }: { readonly uid: string }): boolean {
    const until = this.#hiddenUntil.get(uid);
    return until !== undefined && performance.now() < until;
  }

  /** Milliseconds since the API server last sent something about Jobs, or about pods. */
  ageMs(): number {
    return Math.max(this.#jobs.ageMs(), this.#pods.ageMs());
  }

  /** Lists everything again unless both watches are alive. */
  async refresh(): Promise<void> {
    await Promise.all([this.#jobs.refresh(), this.#pods.refresh()]);
  }

  async close(): Promise<void> {
    await Promise.all([this.#jobs.close(), this.#pods.close()]);
  }

  #noteChange(before: JobSnapshot | PodSnapshot | null, after: JobSnapshot | PodSnapshot | null): void {
    const object = after ?? before;
    // A pod of no Job is none of ours: without a name a path would stand for all Jobs.
    if (!object?.attemptName) return;
    const { attemptName } = object;
    if (after) this.#addToIndex(after);
    else this.#removeFromIndex(object);
    if (!before || !after) {
      this.#options.onCount(attemptName, this.jobOf(attemptName) !== null, this.podsOf(attemptName).length > 0);
    }
    if (!this.isHidden(object) && !isSame(before, after)) this.#options.onChange(attemptName);
    if (!after) this.#hiddenUntil.delete(object.uid);
  }

  #addToIndex({ attemptName, name }: JobSnapshot | PodSnapshot): void {
    const jobId = jobIdOf(attemptName);
    const attempts = this.#index.get(jobId) ?? new Map<string, Set<string>>();
    this.#index.set(jobId, attempts.set(attemptName, (attempts.get(attemptName) ?? new Set()).add(name)));
  }

  #removeFromIndex({ attemptName, name }: JobSnapshot | PodSnapshot): void {
    const jobId = jobIdOf(attemptName);
    const attempts = this.#index.get(jobId);
    const names = attempts?.get(attemptName);
    names?.delete(name);
    if (names?.size === 0) attempts?.delete(attemptName);
    if (attempts?.size === 0) this.#index.delete(jobId);
  }
}

function isSame(before: JobSnapshot | PodSnapshot | null, after: JobSnapshot | PodSnapshot | null): boolean {
  return before !== null && after !== null && isDeepStrictEqual({ ...before, version: '' }, { ...after, version: '' });
}
