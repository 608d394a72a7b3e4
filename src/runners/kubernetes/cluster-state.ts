import { isDeepStrictEqual } from 'node:util';
import type { V1Job } from '@kubernetes/client-node';
import type { Log } from '../../base/log.ts';
import { jobIdOf } from '../runner.ts';
import { type Mirror, type MirrorOptions, openMirror } from './informer.ts';
import type { Client } from './kube-client.ts';
import { makeWaits, type Waits } from './pod-latency.ts';
import {
  type LiveJob,
  type LivePod,
  ownSelector,
  type Raw,
  slimJob,
  slimPod,
  unreadOfJob,
  unreadOfPod,
} from './snapshot.ts';

export interface ViewOptions {
  readonly client: Client;
  readonly namespace: string;
  /** Told the name of an attempt of which something has changed. */
  readonly changed: (attempt: string) => void;
  readonly log: Log;
  readonly times?: MirrorOptions<LiveJob>['times'];
}

/** What is known of our Jobs and pods. What is hidden is not there any more, although it takes the cluster some time. */
export interface View {
  jobOf(attempt: string): LiveJob | null;
  podsOf(attempt: string): LivePod[];
  pod(name: string): LivePod | null;
  /** Attempts of which there is a Job or a pod, of all jobs or of one. */
  attempts(job?: string): string[];
  learnJob(raw: Raw<V1Job>): void;
  /** Takes it for gone. If it is still there after that time it is seen again. */
  hide(uid: string, milliseconds: number): void;
  /** It is not gone after all. */
  show(uid: string): void;
  reached: Waits['reached'];
  age(): number;
  refresh(): Promise<void>;
  close(): Promise<void>;
}

/** Paths of the namespace's Jobs and pods. */
export function pathsOf(namespace: string): { readonly jobs: string; readonly pods: string; readonly events: string } {
  const core = `/api/v1/namespaces/${namespace}`;
  return { jobs: `/apis/batch/v1/namespaces/${namespace}/jobs`, pods: `${core}/pods`, events: `${core}/events` };
}

/** Begins to look at the namespace. */
export function openView({ client, namespace, changed, log, times }: ViewOptions): View {
  const { jobs: jobsPath, pods: podsPath } = pathsOf(namespace);
  const hiddenUntil = new Map<string, number>();
  const attempts = makeIndex();
  const waits = makeWaits(() => performance.now());
  const isThere = ({ uid }: LiveJob | LivePod) => {
    const until = hiddenUntil.get(uid);
    return until === undefined || performance.now() >= until;
  };
  const note = (before: LiveJob | LivePod | null, after: LiveJob | LivePod | null) => {
    const one = after ?? before;
    if (!one) return;
    if (after) attempts.add(after);
    else attempts.remove(one);
    if (!before || !after) waits.note(one.attempt, jobOf(one.attempt) !== null, podsOf(one.attempt).length > 0);
    if (isThere(one) && !isSame(before, after)) changed(one.attempt);
    if (!after) hiddenUntil.delete(one.uid);
  };
  const isDone = (one: LiveJob | LivePod) => !isThere(one);
  const shared = { client, selector: ownSelector, changed: note, isDone, log, ...(times && { times }) };
  const jobs: Mirror<LiveJob> = openMirror({ ...shared, path: jobsPath, slim: slimJob, unread: unreadOfJob });
  const pods: Mirror<LivePod> = openMirror({ ...shared, path: podsPath, slim: slimPod, unread: unreadOfPod });
  const both = [jobs, pods];
  const podsOf = (attempt: string) =>
    attempts.podsOf(attempt).flatMap((name) => {
      const pod = pods.get(name);
      return pod && isThere(pod) ? [pod] : [];
    });
  const jobOf = (attempt: string) => {
    const job = jobs.get(attempt);
    return job && isThere(job) ? job : null;
  };
  return {
    jobOf,
    podsOf,
    pod: (name) => pods.get(name) ?? null,
    attempts: (job) => attempts.names(job).filter((name) => jobOf(name) !== null || podsOf(name).length > 0),
    learnJob: (raw) => jobs.learn(raw),
    hide: (uid, milliseconds) => void hiddenUntil.set(uid, performance.now() + milliseconds),
    show: (uid) => void hiddenUntil.delete(uid),
    reached: waits.reached,
    age: () => Math.max(...both.map((mirror) => mirror.age())),
    refresh: async () => void (await Promise.all(both.map((mirror) => mirror.refresh()))),
    close: async () => void (await Promise.all(both.map((mirror) => mirror.close()))),
  };
}

/** Whether nothing differs that is kept of an object, but its version. */
function isSame(before: LiveJob | LivePod | null, after: LiveJob | LivePod | null): boolean {
  return before !== null && after !== null && isDeepStrictEqual({ ...before, version: '' }, { ...after, version: '' });
}

/** Names by their job, so that what belongs to one is found without looking at all. */
function makeIndex() {
  const kept = new Map<string, Map<string, Set<string>>>();
  const ofJob = (attempt: string) => kept.get(jobIdOf(attempt));
  return {
    add({ attempt, name }: LiveJob | LivePod) {
      const job = jobIdOf(attempt);
      const named = kept.get(job) ?? new Map<string, Set<string>>();
      kept.set(job, named.set(attempt, (named.get(attempt) ?? new Set()).add(name)));
    },
    remove({ attempt, name }: LiveJob | LivePod) {
      const named = ofJob(attempt);
      named?.get(attempt)?.delete(name);
      if (named?.get(attempt)?.size === 0) named.delete(attempt);
      if (named?.size === 0) kept.delete(jobIdOf(attempt));
    },
    /** A Job has the name of its attempt, a pod never has. */
    podsOf: (attempt: string) => [...(ofJob(attempt)?.get(attempt) ?? [])].filter((name) => name !== attempt),
    names: (job?: string) =>
      job === undefined ? [...kept.values()].flatMap((named) => [...named.keys()]) : [...(kept.get(job)?.keys() ?? [])],
  };
}
