import { CountsByName } from '../base/counts.ts';
import type { WebhookResult } from '../model/webhook-attempts.ts';
import { type DueWebhook, memberOf } from '../store/webhooks/due-webhooks.ts';

/** Due webhooks in memory, shared out fairly: accounts in turn, then the hosts of each, then the receivers of a host. */
export interface FairQueue {
  /**
   * Ignored if already queued. While its account, its host or its receiver has as many queued as there is space for, it stays in
   * Redis, and that account, host or receiver is marked for a refill.
   */
  readonly add: (due: DueWebhook, at: number) => void;
  /** Returns the next one within the limits of its account, host and receiver; `null` when none may be sent now. */
  readonly next: () => DueWebhook | null;
  /** Ends the attempt that `next` returned. A receiver that hung gets one attempt at once until it answers, however late. */
  readonly done: (due: DueWebhook, end?: WebhookResult['is'], isSlow?: boolean) => void;
  readonly isFull: () => boolean;
  /** True when an account, a host or a receiver that is marked for a refill has space again. */
  readonly needsRefill: () => boolean;
  /** Returns the time from which one of these must be read again, and when to stop reading; `null` when none needs it. */
  readonly refill: () => { readonly from: number; readonly isEnough: () => boolean } | null;
}

/** Attempts at once, and webhooks in memory; `maxKnown` counts both. */
interface QueueLimits {
  readonly maxAttempts: number;
  readonly maxAttemptsOfAccount: number;
  readonly maxAttemptsOfHost: number;
  readonly maxAttemptsOfReceiver: number;
  /** To all hosts together whose last attempt hung or was slow, whichever account named them. */
  readonly maxAttemptsOfSlow: number;
  readonly maxQueuedOfAccount: number;
  readonly maxQueuedOfHost: number;
  readonly maxKnown: number;
}

/** All webhooks, those of an account, of a host or of a receiver. Only a receiver has a queue, all others have groups in turn. */
interface Group {
  /** Of the webhooks of a host; '' above and below. */
  readonly host: string;
  readonly groups: Map<string, Group>;
  readonly queue: DueWebhook[];
  readonly maxQueued: number;
  maxAttempts: number;
  queued: number;
  busy: number;
}

export function makeFairQueue(limits: QueueLimits): FairQueue {
  const all = makeGroup('', limits.maxAttempts, limits.maxKnown);
  const maxima = maximaOf(limits);
  const known = new Set<string>();
  const late = watchLate(limits);
  /** Accounts, hosts and receivers of which webhooks stayed in Redis, and the due time of the earliest. */
  const marked = new Map<string, { readonly group: Group; readonly from: number }>();

  const isFull = () => known.size >= limits.maxKnown;
  // A group may have no more than what is still free, so that however many are long, another one finds a place.
  const roomOf = (maxQueued: number) => Math.min(maxQueued, limits.maxKnown - known.size);
  const findRefill = () =>
    isFull() ? undefined : [...marked].find(([, { group }]) => group.queued * 2 <= roomOf(group.maxQueued));
  /** Returns the groups of a webhook, new ones included; `null` when one has no place for it, which is then marked. */
  const findPath = (due: DueWebhook, at: number): readonly Group[] | null => {
    const path = [all];
    for (const [level, name] of namesOf(due).entries()) {
      const [maxAttempts = 0, maxQueued = 0] = maxima[level] ?? [];
      const host = level === 1 ? hostOf(due) : '';
      const group = path.at(-1)?.groups.get(name) ?? makeGroup(host, late.hasHung(name) ? 1 : maxAttempts, maxQueued);
      // While older ones are in Redis newer ones stay there too, so that they keep their order.
      if (group.queued >= roomOf(maxQueued) || marked.has(name)) {
        marked.set(name, { group, from: Math.min(marked.get(name)?.from ?? at, at) });
        return null;
      }
      path.push(group);
    }
    return path;
  };
  return {
    add: (due, at) => {
      const path = known.has(memberOf(due)) ? null : findPath(due, at);
      if (path === null) return;
      for (const [level, name] of namesOf(due).entries()) path[level]?.groups.set(name, path[level + 1] as Group);
      for (const group of path) group.queued += 1;
      path.at(-1)?.queue.push(due);
      known.add(memberOf(due));
    },
    next: () => late.begin(takeFrom(all, late.findHeld())),
    done: (due, end, isSlow = false) => {
      if (!known.delete(memberOf(due))) return;
      late.end(due, end, isSlow);
      release(all, namesOf(due), late.hasHung(due.receiver) ? 1 : limits.maxAttemptsOfReceiver);
    },
    isFull,
    needsRefill: () => findRefill() !== undefined,
    refill: () => {
      const found = findRefill();
      if (!found) return null;
      const [name, mark] = found;
      marked.delete(name);
      const isEnough = () => {
        // What was not read yet is read again once there is space.
        if (isFull() && !marked.has(name)) marked.set(name, mark);
        return marked.has(name);
      };
      return { from: mark.from, isEnough };
    },
  };
}

/** Returns how many attempts and queued webhooks an account, a host and a receiver may have. */
function maximaOf(limits: QueueLimits): readonly (readonly [maxAttempts: number, maxQueued: number])[] {
  return [
    [limits.maxAttemptsOfAccount, limits.maxQueuedOfAccount],
    [limits.maxAttemptsOfHost, limits.maxQueuedOfHost],
    [limits.maxAttemptsOfReceiver, limits.maxKnown],
  ];
}

const none: ReadonlySet<string> = new Set();

/** Keeps receivers that hung, and hosts that hung or were slow, until they answer in time; a host counts for all accounts together. */
function watchLate({ maxAttemptsOfSlow, maxKnown }: QueueLimits) {
  const hung = new Set<string>();
  const slow = new Set<string>();
  /** Running attempts of each host. */
  const busy = new CountsByName();
  return {
    hasHung: (receiver: string) => hung.has(receiver),
    /** Returns the hosts that may have no attempt now: those that are slow, while they have all the attempts that they may have together. */
    findHeld(): ReadonlySet<string> {
      const ofSlow = busy.list().reduce((sum, [host, running]) => (slow.has(host) ? sum + running : sum), 0);
      return ofSlow < maxAttemptsOfSlow ? none : slow;
    },
    begin(due: DueWebhook | null): DueWebhook | null {
      if (due !== null) busy.change(hostOf(due), 1);
      return due;
    },
    end(due: DueWebhook, end: WebhookResult['is'] | undefined, isSlow: boolean): void {
      const host = hostOf(due);
      busy.change(host, -1);
      if (end === 'hung') remember(hung, due.receiver, maxKnown);
      if (end === 'answered') hung.delete(due.receiver);
      // An attempt that waited for egress has not asked its host.
      if (end === 'hung' || (isSlow && end !== 'unsent')) remember(slow, host, maxKnown);
      else if (end === 'answered') slow.delete(host);
    },
  };
}

function makeGroup(host: string, maxAttempts: number, maxQueued: number): Group {
  return { host, groups: new Map(), queue: [], maxAttempts, maxQueued, queued: 0, busy: 0 };
}

/** Returns the next one of a group; `null` when all that are queued are for groups that are busy or held. */
function takeFrom(group: Group, held: ReadonlySet<string>): DueWebhook | null {
  if (group.queued === 0 || group.busy >= group.maxAttempts) return null;
  let due = group.queue.shift() ?? null;
  for (const [name, member] of due === null ? group.groups : []) {
    if (held.has(member.host)) continue;
    due = takeFrom(member, held);
    if (due === null) continue;
    group.groups.delete(name);
    group.groups.set(name, member);
    break;
  }
  if (due === null) return null;
  group.queued -= 1;
  group.busy += 1;
  return due;
}

/** Ends an attempt in a group and the groups below it, and removes those that are empty then. */
function release(group: Group, [name, ...below]: readonly string[], maxAttemptsOfReceiver: number): void {
  group.busy -= 1;
  if (name === undefined) {
    group.maxAttempts = maxAttemptsOfReceiver;
    return;
  }
  const member = group.groups.get(name);
  if (!member) return;
  release(member, below, maxAttemptsOfReceiver);
  if (member.queued === 0 && member.busy === 0) group.groups.delete(name);
}

/** Adds a name and forgets the oldest one of too many. */
function remember(names: Set<string>, name: string, max: number): void {
  names.delete(name);
  names.add(name);
  if (names.size <= max) return;
  for (const oldest of names) {
    names.delete(oldest);
    return;
  }
}

function hostOf({ receiver }: DueWebhook): string {
  const [host = ''] = receiver.slice(receiver.indexOf('@') + 1).split('/', 1);
  return host;
}

/** Returns the names of account, host and receiver (`account@host/path`). */
function namesOf({ receiver }: DueWebhook): readonly string[] {
  const hostAt = receiver.indexOf('@') + 1;
  const cut = receiver.indexOf('/', hostAt);
  const host = cut < 0 ? receiver : receiver.slice(0, cut);
  return [receiver.slice(0, hostAt), `${host}/`, receiver];
}
