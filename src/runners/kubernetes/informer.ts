import { setTimeout as pause } from 'node:timers/promises';
import { backoffMs } from '../../base/backoff.ts';
import type { Log } from '../../base/log.ts';
import { type KubeClient, KubeError } from './kube-client.ts';
import { type CachedObject, isNewer, makeObjectCache, type ObjectCache } from './object-cache.ts';
import { parseEvent, type UnreadPart } from './parse-event.ts';

export interface InformerOptions<T extends CachedObject> {
  readonly client: KubeClient;
  readonly path: string;
  readonly selector: string;
  /** Returns what is kept of an object of the API server. */
  readonly read: (raw: never) => T;
  /** Parts of an event that `read` does not look at. */
  readonly unread?: readonly UnreadPart[];
  /** Called for every change; `before` is `null` for a new object, `after` for one that is gone. */
  readonly onChange: (before: T | null, after: T | null) => void;
  readonly log: Log;
  readonly times?: Partial<InformerTimes>;
}

export interface InformerTimes {
  /** A watch without a line for this long is dead; the API server sends bookmarks every minute. */
  readonly silentMs: number;
  /** Everything is listed again after this time, whatever the watch sends. */
  readonly relistMs: number;
  /** First pause after an error; every further pause is twice as long. */
  readonly firstPauseMs: number;
}

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: { readonly metadata?: { readonly resourceVersion?: string } };
}

interface ListPage {
  readonly items: readonly object[];
  readonly metadata: { readonly continue?: string; readonly resourceVersion: string };
}

/** Ends a watch because everything is to be listed again. */
class RelistDue extends Error {}

const defaultTimes: InformerTimes = { silentMs: 180_000, relistMs: 1_800_000, firstPauseMs: 800 };
/** Short, because no change is seen during a pause. */
const maxPauseMs = 5_000;
const pageSize = 500;
const shortWatchMs = 1_000;

/** Keeps a cache of the objects under one path by list and watch. It runs until it is closed: no error ends it. */
export class Informer<T extends CachedObject> {
  readonly cache: ObjectCache<T>;
  readonly #options: InformerOptions<T>;
  readonly #times: InformerTimes;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  /** Ends the watch or the pause that is under way. */
  #round = new AbortController();
  /** `resourceVersion` from which the next watch continues; `null` when everything must be listed first. */
  #version: string | null = null;
  /** Newest `resourceVersion` seen so far. */
  #newest = '';
  #listedAt = Number.NEGATIVE_INFINITY;
  #aliveAt = Number.NEGATIVE_INFINITY;
  #isListing = false;
  #isWatching = false;
  /** Settled by the next list: with its error, or when it succeeded. */
  #listed = Promise.withResolvers<void>();

  constructor(options: InformerOptions<T>) {
    this.#options = options;
    this.#times = { ...defaultTimes, ...options.times };
    this.cache = makeObjectCache(options.read, options.onChange, options.log);
    this.#running = this.#run();
  }

  /** Milliseconds since the API server last sent something. */
  ageMs(): number {
    return performance.now() - this.#aliveAt;
  }

  /** Lists everything again unless a watch is alive; throws when that fails. */
  refresh(): Promise<void> {
    if (this.#isWatching && this.ageMs() < this.#times.silentMs) return Promise.resolve();
    if (!this.#isListing) {
      this.#version = null;
      this.#round.abort();
    }
    return this.#listed.promise;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { log, path } = this.#options;
    for (let failures = 0; !this.#closing.signal.aborted; ) {
      this.#round = new AbortController();
      const signal = AbortSignal.any([this.#closing.signal, this.#round.signal]);
      try {
        if (this.#version === null) await this.#list(signal);
        await this.#watch(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) continue;
        if (isExpired(error)) this.#version = null;
        this.#settleList(error);
        const pauses = { firstMs: this.#times.firstPauseMs, maxMs: maxPauseMs, hasJitter: true };
        const waitMs = backoffMs(++failures, pauses);
        log.warn('the watch of the cluster failed; it is tried again', { path, error, again_ms: waitMs });
        // `refresh` ends the pause.
        await pause(waitMs, undefined, { signal }).catch(() => undefined);
      }
    }
    this.#settleList(new Error('closed'));
  }

  /** Lists all pages and drops what is not in them. */
  async #list(signal: AbortSignal): Promise<void> {
    const { client, path, selector } = this.#options;
    const listed = new Set<string>();
    this.#isListing = true;
    try {
      for (let next: string | undefined; ; ) {
        const query = { labelSelector: selector, limit: pageSize, continue: next };
        const { items, metadata } = await client.ask<ListPage>('GET', path, { query, signal });
        const version = metadata.resourceVersion;
        // The version went back: etcd was restored from a backup, and only the list is true.
        const reset = isNewer(this.#newest, version);
        for (const item of items) listed.add(this.cache.put(item, reset).name);
        next = metadata.continue || undefined;
        if (next) continue;
        this.cache.keepOnly(listed, version, reset);
        this.#version = this.#newest = version;
        break;
      }
    } finally {
      this.#isListing = false;
    }
    this.#listedAt = this.#aliveAt = performance.now();
    this.#settleList(null);
  }

  #settleList(error: unknown): void {
    const { promise, resolve, reject } = this.#listed;
    this.#listed = Promise.withResolvers<void>();
    // Often nobody waits for the list.
    promise.catch(() => undefined);
    if (error === null) resolve();
    else reject(error);
  }

  /** Follows the changes until the API server ends the watch, or a list is due. */
  async #watch(signal: AbortSignal): Promise<void> {
    const began = performance.now();
    const ending = new AbortController();
    const timer = setInterval(() => {
      const now = performance.now();
      if (now - Math.max(began, this.#aliveAt) >= this.#times.silentMs) ending.abort(new Error('the watch is silent'));
      if (now - this.#listedAt >= this.#times.relistMs) ending.abort(new RelistDue());
    }, Math.min(this.#times.silentMs, this.#times.relistMs) / 10);
    let lines = 0;
    const { client, path, selector, unread = [] } = this.#options;
    const query = {
      ...{ labelSelector: selector, watch: true, allowWatchBookmarks: true, resourceVersion: this.#version ?? '' },
      timeoutSeconds: 300 + Math.floor(Math.random() * 300),
    };
    const onStart = () => {
      this.#isWatching = true;
    };
    const line = (text: string) => {
      lines++;
      this.#takeEvent(parseEvent(text, unread) as WatchEvent);
    };
    try {
      await client.stream(path, query, AbortSignal.any([signal, ending.signal]), { onStart, line });
    } catch (error) {
      if (!(ending.signal.reason instanceof RelistDue)) throw error;
      this.#version = null;
      return;
    } finally {
      this.#isWatching = false;
      clearInterval(timer);
    }
    if (lines === 0 && performance.now() - began < shortWatchMs) throw new Error('the watch ended at once');
  }

  #takeEvent({ type, object }: WatchEvent): void {
    this.#aliveAt = performance.now();
    if (type === 'ERROR') {
      const status = object as { code?: number; message?: string; reason?: string };
      throw new KubeError(`a watch of ${this.#options.path}`, status.code ?? 500, status);
    }
    if (type === 'DELETED') this.cache.remove(object);
    else if (type !== 'BOOKMARK') this.cache.put(object);
    this.#version = object.metadata?.resourceVersion ?? this.#version;
    this.#newest = this.#version ?? this.#newest;
  }
}

/** True when the API server does not know the version that a watch asked for. */
function isExpired(error: unknown): boolean {
  if (!(error instanceof KubeError)) return false;
  return error.status === 410 || /^(Gone|Expired)$/.test(error.reason) || /too large/i.test(error.message);
}
