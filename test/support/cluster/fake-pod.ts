import { setTimeout as pause } from 'node:timers/promises';
import type { Plan } from './fake-kubelet.ts';
import type { Kube } from './kube.ts';
import { type Ending, endings, type Pod, timestamp, writeEnded, writeRunning, writeWaiting } from './pod.ts';

/** A pod on a node of the fake kubelet. */
export interface FakePod {
  readonly pod: () => Pod;
  /** Its object has changed. */
  see(pod: Pod): void;
  isRunning(): boolean;
  end(ending: Ending): void;
  /** Its object has gone: nothing more is done for it. */
  forget(): void;
}

const defaultOnTerm = { afterMs: 0, ending: endings.failure(143) };
let count = 0;

/** Starts the containers of a pod as its plan says, and ends them. */
export function holdPod(kube: Kube, first: Pod, plan: Plan, isHeard: () => boolean, signal: AbortSignal): FakePod {
  let pod = first;
  let state: 'waiting' | 'running' | 'ended' = isEnded(first) ? 'ended' : 'waiting';
  let isStopping = false;
  let startedAt: string | null = null;
  let running: object | null = null;
  const timers = new Set<NodeJS.Timeout>();
  const reports = openReports(kube, first, isHeard, signal);
  const after = (ms: number, act: () => void) => void timers.add(setTimeout(act, ms));
  const clear = () => {
    for (const timer of timers) clearTimeout(timer);
  };

  const start = () => {
    state = 'running';
    startedAt = timestamp();
    running = writeRunning(pod, startedAt, `10.9.${(++count >> 8) & 255}.${count & 255}`);
    reports.tell(running);
    if (plan.runMs !== undefined) after(plan.runMs, () => void findEnding(plan).then(end));
    const deadline = pod.spec.activeDeadlineSeconds;
    if (deadline !== undefined)
      after(deadline * 1000, () => terminate((ending) => ({ ...endings.deadline(), ...ending })));
  };
  const end = (ending: Ending) => {
    if (state === 'ended') return;
    state = 'ended';
    clear();
    reports.tell(writeEnded(pod, startedAt, ending));
    if (isStopping) reports.remove();
  };
  const terminate = (turn: (ending: Ending) => Ending = (ending) => ending) => {
    const { afterMs, ending } = plan.onTerm ?? defaultOnTerm;
    const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds) * 1000;
    if (state === 'waiting') end(endings.unstarted());
    else if (afterMs <= graceMs) after(afterMs, () => end(turn(ending)));
    else after(graceMs, () => end(turn(endings.failure(137))));
  };
  const see = (now: Pod) => {
    pod = now;
    // The controllers have said so of a node that was not heard of.
    if (state === 'running' && running && isUnready(now)) reports.tell(running);
    if (now.metadata.deletionTimestamp === undefined || isStopping) return;
    isStopping = true;
    if (state === 'ended') reports.remove();
    else terminate();
  };

  const forget = () => {
    clear();
    reports.close();
  };

  if (plan.waits) reports.tell(writeWaiting(first, plan.waits.reason, plan.waits.message));
  else if (state === 'waiting') after(plan.startMs ?? 0, start);
  see(first);
  return { pod: () => pod, see, isRunning: () => state === 'running', end, forget };
}

interface Reports {
  /** This is its status now, and what was to be told before need not be. */
  tell(status: object): void;
  /** After the last status, its object is removed. */
  remove(): void;
  close(): void;
}

/** Tells the API server the newest status until it has it, however long that takes. */
function openReports(kube: Kube, pod: Pod, isHeard: () => boolean, signal: AbortSignal): Reports {
  const { name, namespace, uid } = pod.metadata;
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  let wanted: object | null = null;
  let isRemoving = false;
  let isTelling = false;
  let isClosed = false;
  const next = async () => {
    const status = wanted;
    if (status) await kube.ask('PATCH', `${path}/status`, { metadata: { uid }, status });
    else await kube.ask('DELETE', path, { gracePeriodSeconds: 0, preconditions: { uid } });
    if (wanted === status) wanted = null;
    if (!status) isRemoving = false;
  };
  const run = async () => {
    if (isTelling) return;
    isTelling = true;
    while ((wanted || isRemoving) && !isClosed && !signal.aborted) {
      // A failed request is repeated: an API server comes back, and the watch reports an object that is gone.
      if (isHeard()) await next().catch(() => pause(100));
      else await pause(100);
    }
    isTelling = false;
  };
  return {
    tell: (status) => {
      wanted = status;
      void run();
    },
    remove: () => {
      isRemoving = true;
      void run();
    },
    close: () => {
      isClosed = true;
    },
  };
}

async function findEnding({ ending = endings.success() }: Plan): Promise<Ending> {
  return typeof ending === 'function' ? ending() : ending;
}

function isUnready({ status }: Pod): boolean {
  return status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'False') ?? false;
}

function isEnded({ status }: Pod): boolean {
  return status.phase === 'Succeeded' || status.phase === 'Failed';
}
