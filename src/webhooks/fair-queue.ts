import type { DueWebhook } from '../store/webhooks/due-webhooks.ts';

/** Webhooks that are known to be due and wait here for their turn. A receiver may name its host alone, or also a path of it. */
export interface FairQueue {
  /** Lets one wait here. It stays out when it is known already, or when its host has too many here; the host then lacks it. */
  readonly add: (due: DueWebhook, at: number) => void;
  /** Gives the next one whose host and receiver have room, each host in its turn; `null` when there is none. */
  readonly next: () => DueWebhook | null;
  /** Takes note that what `next` gave is over. */
  readonly done: (due: DueWebhook) => void;
  /** Whether no more should be looked for. */
  readonly isFull: () => boolean;
  /** Whether a host lacks some and has room here again. */
  readonly lacks: () => boolean;
  /** Lets such a host look for them: from what time on, and when it has enough; `null` when there is none. */
  readonly refill: () => { readonly from: number; readonly isEnough: () => boolean } | null;
}

/** How many attempts are made at once, and how many webhooks wait here. */
export interface LineLimits {
  readonly all: number;
  readonly host: number;
  readonly receiver: number;
  readonly waitingOfHost: number;
  readonly waiting: number;
}

interface Host {
  readonly receivers: Map<string, Receiver>;
  waiting: number;
  busy: number;
  /** Time of the earliest one that stayed out. */
  lacks: number | null;
}

interface Receiver {
  readonly waiting: DueWebhook[];
  busy: number;
}

/** Gives an empty line. */
export function makeFairQueue(limits: LineLimits): FairQueue {
  const hosts = new Map<string, Host>();
  const lacking = new Set<string>();
  const known = new Set<string>();
  let busy = 0;

  const findLacking = (): [name: string, host: Host, from: number] | undefined => {
    for (const name of lacking) {
      const host = hosts.get(name);
      if (host && host.lacks !== null && host.waiting * 2 <= limits.waitingOfHost) return [name, host, host.lacks];
    }
    return undefined;
  };
  return {
    add: (due, at) => {
      if (known.has(nameOf(due))) return;
      const host = getOrAdd(hosts, hostOf(due), () => ({ receivers: new Map(), waiting: 0, busy: 0, lacks: null }));
      if (host.waiting >= limits.waitingOfHost) {
        host.lacks = Math.min(host.lacks ?? at, at);
        lacking.add(hostOf(due));
        return;
      }
      getOrAdd(host.receivers, due.receiver, () => ({ waiting: [], busy: 0 })).waiting.push(due);
      host.waiting += 1;
      known.add(nameOf(due));
    },
    // At most so many are passed over as are busy: all others have one waiting.
    next: () => {
      if (busy >= limits.all) return null;
      for (const [name, host] of hosts) {
        const due = host.waiting > 0 && host.busy < limits.host ? takeFrom(host, limits.receiver) : null;
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
      giveBack(host, due.receiver);
      if (host.receivers.size === 0 && host.lacks === null) hosts.delete(hostOf(due));
    },
    isFull: () => known.size >= limits.waiting,
    lacks: () => findLacking() !== undefined,
    refill: () => {
      const found = findLacking();
      if (!found) return null;
      const [name, host, from] = found;
      host.lacks = null;
      lacking.delete(name);
      if (host.receivers.size === 0) hosts.delete(name);
      return { from, isEnough: () => lacking.has(name) };
    },
  };
}

/** The next one of a host, each receiver in its turn; `null` when those that wait are all for receivers that are busy. */
function takeFrom(host: Host, mostOfReceiver: number): DueWebhook | null {
  for (const [name, receiver] of host.receivers) {
    const due = receiver.busy < mostOfReceiver ? receiver.waiting.shift() : undefined;
    if (!due) continue;
    receiver.busy += 1;
    host.busy += 1;
    host.waiting -= 1;
    putLast(host.receivers, name, receiver);
    return due;
  }
  return null;
}

function giveBack(host: Host, name: string): void {
  const receiver = host.receivers.get(name);
  if (!receiver) return;
  host.busy -= 1;
  receiver.busy -= 1;
  if (receiver.busy === 0 && receiver.waiting.length === 0) host.receivers.delete(name);
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
