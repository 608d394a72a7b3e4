import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import { keepNodes } from './fake-node.ts';
import { type FakePod, holdPod } from './fake-pod.ts';
import type { Ending, Pod } from './pod.ts';

/**
 * A kubelet without containers: it registers nodes, holds thousands of pods and ends each as the test says.
 *
 *     const kubelet = await startFakeKubelet(cluster, { nodes: 3, plan: () => ({ runMs: 200 }) });
 *     const kubelet = await startFakeKubelet(cluster);       // pods run until the test ends them:
 *     kubelet.end(pod.metadata.name, endings.failure(65, 'gone'));      // endings: pod.ts
 *     kubelet.cutOff('fake-0');                              // a lost node; kubelet.restore('fake-0')
 *
 * A pod that is deleted ends as its plan says, is reported as ended, and then its object is removed, which waits for finalizers.
 */
export interface FakeKubelet {
  /** The names of its nodes. */
  readonly nodes: readonly string[];
  /** The pods whose containers run. */
  running(): Pod[];
  /** Ends the containers of a pod, which may not have started. */
  end(name: string, ending: Ending): void;
  /** Nothing is heard of a node any more, though its containers go on. */
  cutOff(node: string): void;
  /** Everything that happened on such a node meanwhile is reported. */
  restore(node: string): void;
  /** Goes away without a word; its nodes and pods stay as they are. */
  stop(): Promise<void>;
}

/** The course of a pod. */
export interface Plan {
  /** Its containers wait for ever, such as for an image: `{ reason: 'ImagePullBackOff', message: '…' }`. */
  readonly waits?: { readonly reason: string; readonly message: string };
  /** Start time of its containers. */
  readonly startMs?: number;
  /** Run time of its containers; without it, until the test or a deletion ends them. */
  readonly runMs?: number;
  /** The ending of its containers by themselves, a function being called at that moment; success when left out. */
  readonly ending?: Ending | (() => Promise<Ending>);
  /** The ending after SIGTERM and its delay; exit code 143 at once when left out. After the grace period they are killed. */
  readonly onTerm?: { readonly afterMs: number; readonly ending: Ending };
}

export interface KubeletOptions {
  readonly nodes?: number;
  /** The start of its nodes' names. */
  readonly prefix?: string;
  readonly plan?: (pod: Pod) => Plan;
}

/** Starts a fake kubelet, and resolves when its nodes are ready for pods. */
export async function startFakeKubelet(
  { openAs }: Cluster,
  { nodes = 1, prefix = 'fake', plan = () => ({}) }: KubeletOptions = {},
): Promise<FakeKubelet> {
  const kube = openAs({ name: `kubelet-${prefix}`, group: 'system:masters' });
  const names = Array.from({ length: nodes }, (_, n) => `${prefix}-${n}`);
  const ending = new AbortController();
  const { signal } = ending;
  const cut = new Set<string>();
  const isHeard = (node: string) => !cut.has(node);
  const pods = new Map<string, FakePod>();
  const { ended: beating } = await keepNodes(kube, names, isHeard, signal);
  const see = (pod: Pod) => {
    const { uid } = pod.metadata;
    const node = pod.spec.nodeName ?? '';
    if (!names.includes(node)) return;
    const held = pods.get(uid);
    if (held) held.see(pod);
    else
      pods.set(
        uid,
        holdPod(kube, pod, plan(pod), () => isHeard(node), signal),
      );
  };
  const forget = ({ metadata: { uid } }: Pod) => {
    pods.get(uid)?.forget();
    pods.delete(uid);
  };
  const watching = follow(kube, { see, forget, held: () => [...pods.values()].map(({ pod }) => pod()) }, signal);
  return {
    nodes: names,
    running: () => [...pods.values()].filter((pod) => pod.isRunning()).map(({ pod }) => pod()),
    end: (name, how) => {
      const found = [...pods.values()].find(({ pod }) => pod().metadata.name === name);
      if (!found) throw new Error(`The fake kubelet has no pod ${name}`);
      found.end(how);
    },
    cutOff: (node) => void cut.add(node),
    restore: (node) => void cut.delete(node),
    stop: async () => {
      ending.abort();
      for (const pod of pods.values()) pod.forget();
      await Promise.all([beating, watching]);
      kube.close();
    },
  };
}

interface Watcher {
  see(pod: Pod): void;
  forget(pod: Pod): void;
  held(): Pod[];
}

/** Lists the pods and watches them, over and over, whatever becomes of the API server. */
async function follow(kube: Cluster['admin'], watcher: Watcher, signal: AbortSignal): Promise<void> {
  const path = '/api/v1/pods?fieldSelector=spec.nodeName!%3D';
  while (!signal.aborted) {
    try {
      const { items, metadata } = await kube.ask<{ items: Pod[]; metadata: { resourceVersion: string } }>('GET', path);
      const there = new Set(items.map((pod) => pod.metadata.uid));
      for (const pod of watcher.held()) if (!there.has(pod.metadata.uid)) watcher.forget(pod);
      for (const pod of items) watcher.see(pod);
      const since = `${path}&watch=true&resourceVersion=${metadata.resourceVersion}`;
      for await (const { type, object } of kube.watch<Pod>(since, signal)) {
        if (type === 'ERROR') break;
        if (type === 'DELETED') watcher.forget(object);
        else watcher.see(object);
      }
    } catch {
      // The API server is away, or the watch was cut: both are what tests do to it.
    }
    await pause(100, undefined, { signal }).catch(() => undefined);
  }
}
