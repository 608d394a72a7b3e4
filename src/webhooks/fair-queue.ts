import type { DueWebhook } from '../store/webhooks/due-webhooks.ts';

/** Due webhooks in memory, shared out fairly. A receiver is a host, or a host with a path. */
export interface FairQueue {
  /** Ignored if already queued. If too many of its host are queued, it stays in Redis and the host is marked for a refill. */
  readonly add: (due: DueWebhook, at: number) => void;
  /** Returns the next one within the limits of its host and receiver, the hosts in turn; `null` when none may be sent now. */
  readonly next: () => DueWebhook | null;
  /** Ends the attempt that `next` returned. */
  readonly done: (due: DueWebhook) => void;
  readonly isFull: () => boolean;
  /** True when a host that is marked for a refill has space again. */
  readonly needsRefill: () => boolean;
  /** Returns the time from which one such host must be read again, and when to stop reading; `null` when none needs it. */
  readonly refill: () => { readonly from: number; readonly isEnough: () => boolean } | null;
}

/** Attempts at once, and webhooks in memory; `maxKnown` counts both. */
interface QueueLimits {
  readonly maxAttempts: number;
  readonly maxAttemptsOfHost: number;
  readonly maxAttemptsOfReceiver: number;
  readonly maxQueuedOfHost: number;
  readonly maxKnown: number;
}

interface Host {
  readonly receivers: Map<string, Receiver>;
  queued: number;
  busy: number;
  /** Due time of the earliest webhook that stayed in Redis. */
  refillFrom: number | null;
}

interface Receiver {
  readonly queued: DueWebhook[];
  busy: number;
}

export function makeFairQueue(limits: QueueLimits): FairQueue {
  const hosts = new Map<string, Host>();
  const marked = new Set<string>();
  const known = new Set<string>();
  let busy = 0;

  const findRefill = (): [name: string, host: Host, from: number] | undefined => {
    for (const name of marked) {
      const host = hosts.get(name);
      if (host && host.refillFrom !== null && host.queued * 2 <= limits.maxQueuedOfHost)
        return [name, host, host.refillFrom];
    }
    return undefined;
  };
  return {
    add: (due, at) => {
      if (known.has(nameOf(due))) return;
      const host = getOrAdd(hosts, hostOf(due), () => ({ receivers: new Map(), queued: 0, busy: 0, refillFrom: null }));
      if (host.queued >= limits.maxQueuedOfHost) {
        host.refillFrom = Math.min(host.refillFrom ?? at, at);
        marked.add(hostOf(due));
        return;
      }
      getOrAdd(host.receivers, due.receiver, () => ({ queued: [], busy: 0 })).queued.push(due);
      host.queued += 1;
      known.add(nameOf(due));
    },
    // Skips at most `maxAttempts` hosts: every idle host has a webhook queued.
    next: () => {
      if (busy >= limits.maxAttempts) return null;
      for (const [name, host] of hosts) {
        const due =
          host.queued > 0 && host.busy < limits.maxAttemptsOfHost ? takeFrom(host, limits.maxAttemptsOfReceiver) : null;
        if (due === null) continue;
        busy += 1;
        putLast(hosts, name, host);
        return due;
      }
      return null;
    },
    done: (due) => {
      const host = hosts.get(hostOf(due));
      if (!host || !known.delete(nameOf(due))) return;
      busy -= 1;
      release(host, due.receiver);
      if (host.receivers.size === 0 && host.refillFrom === null) hosts.delete(hostOf(due));
    },
    isFull: () => known.size >= limits.maxKnown,
    needsRefill: () => findRefill() !== undefined,
    refill: () => {
      const found = findRefill();
      if (!found) return null;
      const [name, host, from] = found;
      host.refillFrom = null;
      marked.delete(name);
      if (host.receivers.size === 0) hosts.delete(name);
      return { from, isEnough: () => marked.has(name) };
    },
  };
}

/** Returns the next one of a host, its receivers in turn; `null` when all that are queued are for busy receivers. */
function takeFrom(host: Host, maxOfReceiver: number): DueWebhook | null {
  for (const [name, receiver] of host.receivers) {
    const due = receiver.busy < maxOfReceiver ? receiver.queued.shift() : undefined;
    if (!due) continue;
    receiver.busy += 1;
    host.busy += 1;
    host.queued -= 1;
    putLast(host.receivers, name, receiver);
    return due;
  }
  return null;
}

function release(host: Host, name: string): void {
  const receiver = host.receivers.get(name);
  if (!receiver) return;
  host.busy -= 1;
  receiver.busy -= 1;
  if (receiver.busy === 0 && receiver.queued.length === 0) host.receivers.delete(name);
}

function nameOf(due: DueWebhook): string {
  return `${due.receiver}/${due.jobId}`;
}

function hostOf({ receiver }: DueWebhook): string {
  const cut = receiver.indexOf('/');
  return cut < 0 ? receiver : receiver.slice(0, cut);
}

function getOrAdd<V>(map: Map<string, V>, name: string, make: () => V): V {
  const found = map.get(name) ?? make();
  map.set(name, found);
  return found;
}

function putLast<V>(map: Map<string, V>, name: string, value: V): void {
  map.delete(name);
  map.set(name, value);
}
