import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../base/log.ts';
import { type Client, KubeError } from './kube-client.ts';
import { isNewer, type Kept, type MirrorStore, makeMirrorStore } from './object-cache.ts';

export interface MirrorOptions<T extends Kept> {
  readonly client: Client;
  readonly path: string;
  readonly selector: string;
  readonly slim: (raw: never) => T;
  /** What an event tells and `slim` does not keep, in the order in which it stands there. */
  readonly unread: Unread;
  /** Told of every change; without `after` the object has gone. */
  readonly changed: (before: T | null, after: T | null) => void;
  /** Whether nothing more needs to be known of an object but that it has gone. */
  readonly isDone?: (object: T) => boolean;
  readonly log: Log;
  readonly times?: Partial<Times>;
}

/** Parts of a line, each between two words that stay. */
export type Unread = readonly (readonly [first: string, last: string])[];

/** In milliseconds. */
export interface Times {
  /** A watch that is silent for this long is dead; bookmarks come every minute. */
  readonly silent: number;
  /** Everything is listed again after this time, whatever the watch says. */
  readonly relist: number;
  /** First pause after an error; every further one is twice as long. */
  readonly firstPause: number;
}

/** Mirrors the objects of one path, for ever: no error ends it. */
export interface Mirror<T> extends Pick<MirrorStore<T>, 'get' | 'all' | 'learn'> {
  /** Milliseconds since the server gave a sign of life. */
  age(): number;
  /** Lists everything anew unless a watch is alive; throws when that fails. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

interface State {
  /** From where a watch goes on; `null` when everything must be listed. */
  version: string | null;
  /** The newest version that was ever seen. */
  newest: string;
  listedAt: number;
  aliveAt: number;
  isWatching: boolean;
  isListing: boolean;
}

const never = Number.NEGATIVE_INFINITY;
const unlisted: State = {
  version: null,
  newest: '',
  listedAt: never,
  aliveAt: never,
  isWatching: false,
  isListing: false,
};
const usual: Times = { silent: 180_000, relist: 1_800_000, firstPause: 800 };
/** Short, for nothing that happens meanwhile is seen before it is over. */
const longestPause = 5_000;
const pageSize = 500;
const shortWatch = 1_000;

/** Begins to mirror. */
export function openMirror<T extends Kept>(options: MirrorOptions<T>): Mirror<T> {
  const times = { ...usual, ...options.times };
  const store = makeMirrorStore(options.slim, options.changed, options.log);
  const state = { ...unlisted };
  const closing = new AbortController();
  const waiters = makeWaiters();
  let round = new AbortController();
  const turn = async (signal: AbortSignal) => {
    if (state.version === null) {
      state.isListing = true;
      state.version = state.newest = await listAll(options, store, state.newest, signal);
      state.isListing = false;
      state.listedAt = state.aliveAt = performance.now();
      waiters.tell(null);
    }
    await watch(options, store, state, times, signal);
  };
  const run = async () => {
    for (let failures = 0; !closing.signal.aborted; ) {
      round = new AbortController();
      const signal = AbortSignal.any([closing.signal, round.signal]);
      try {
        await turn(signal);
        failures = 0;
      } catch (error) {
        state.isListing = false;
        if (signal.aborted) continue;
        if (isGone(error)) state.version = null;
        waiters.tell(error);
        const wait = Math.min(longestPause, times.firstPause * 2 ** failures++) * (0.5 + Math.random());
        options.log.warn('the cluster cannot be watched: again later', { path: options.path, error, again_ms: wait });
        // Who wants to know sooner ends the pause.
        await pause(wait, undefined, { signal }).catch(() => undefined);
      }
    }
    waiters.tell(new Error('closed'));
  };
  const running = run();
  const age = () => performance.now() - state.aliveAt;
  return {
    ...store,
    age,
    refresh: () => {
      if (state.isWatching && age() < times.silent) return Promise.resolve();
      if (!state.isListing) {
        state.version = null;
        round.abort();
      }
      return waiters.wait();
    },
    async close() {
      closing.abort();
      await running;
    },
  };
}

/** Those who wait for a list: told once, with what went wrong or with `null`. */
function makeWaiters() {
  const waiting = new Set<(error: unknown) => void>();
  return {
    wait: () =>
      new Promise<void>((resolve, reject) => {
        waiting.add((error) => (error === null ? resolve() : reject(error)));
      }),
    tell(error: unknown) {
      for (const tell of waiting) tell(error);
      waiting.clear();
    },
  };
}

/** Lists page by page; answers the version from which a watch goes on. */
async function listAll<T extends Kept>(
  { client, path, selector }: MirrorOptions<T>,
  store: MirrorStore<T>,
  newest: string,
  signal: AbortSignal,
): Promise<string> {
  interface Page {
    readonly items: readonly object[];
    readonly metadata: { readonly continue?: string; readonly resourceVersion: string };
  }
  const seen = new Set<string>();
  for (let next: string | undefined; ; ) {
    const query = { labelSelector: selector, limit: pageSize, continue: next };
    const { items, metadata } = await client.ask<Page>('GET', path, { query, signal });
    // A backup came back: only what it holds is true.
    const isAnew = isNewer(newest, metadata.resourceVersion);
    for (const item of items) seen.add(store.learn(item, isAnew).name);
    next = metadata.continue || undefined;
    if (next) continue;
    store.keepOnly(seen, metadata.resourceVersion, isAnew);
    return metadata.resourceVersion;
  }
}

/** Follows the changes until the server ends the watch, or it is time to list everything again. */
async function watch<T extends Kept>(
  options: MirrorOptions<T>,
  store: MirrorStore<T>,
  state: State,
  times: Times,
  signal: AbortSignal,
): Promise<void> {
  const began = performance.now();
  const dead = new AbortController();
  const timer = setInterval(() => {
    if (performance.now() - Math.max(began, state.aliveAt) >= times.silent)
      dead.abort(new Error('the watch is silent'));
    if (performance.now() - state.listedAt >= times.relist) dead.abort(new Relist());
  }, times.silent / 10);
  let events = 0;
  const { client, path, selector } = options;
  const timeoutSeconds = 300 + Math.floor(Math.random() * 300);
  const query = { labelSelector: selector, watch: true, allowWatchBookmarks: true, timeoutSeconds };
  try {
    await client.follow(
      path,
      { ...query, resourceVersion: state.version ?? '' },
      AbortSignal.any([signal, dead.signal]),
      {
        begun() {
          state.isWatching = true;
        },
        line(text) {
          events++;
          state.aliveAt = performance.now();
          const version = passOver(options, store, text) ?? take(store, readEvent(path, text, options.unread));
          state.version = version ?? state.version;
          state.newest = state.version ?? state.newest;
        },
      },
    );
  } catch (error) {
    if (!(dead.signal.reason instanceof Relist)) throw error;
    state.version = null;
    return;
  } finally {
    state.isWatching = false;
    clearInterval(timer);
  }
  if (events === 0 && performance.now() - began < shortWatch) throw new Error('the watch ended at once');
}

class Relist extends Error {}

/** Takes an event in; answers the version that it leads to. */
function take<T extends Kept>(store: MirrorStore<T>, { type, object }: WatchEvent): string | undefined {
  if (type === 'DELETED') store.lose(object);
  else if (type !== 'BOOKMARK') store.learn(object);
  return object.metadata?.resourceVersion;
}

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: { readonly metadata?: { readonly resourceVersion?: string } };
}

/** How the API server begins what it tells of an object. */
const beginning =
  /^\{"type":"(ADDED|MODIFIED|DELETED)","object":\{"kind":"\w+","apiVersion":"[\w./]+","metadata":\{"name":"([^"]+)"(?:,"(?:generateName|namespace)":"[^"]*")*,"uid":"([^"]+)","resourceVersion":"(\d+)"/;

/**
 * Passes over what is known, and what is told of a thing that is done: more than half of all that is told, and reading it is most of
 * the work of a watch. Answers the version that it leads to, `null` when it is to be read.
 */
function passOver<T extends Kept>({ isDone }: MirrorOptions<T>, store: MirrorStore<T>, line: string): string | null {
  const [, type, name = '', uid, version = ''] = beginning.exec(line) ?? [];
  const known = store.get(name);
  if (!known || known.uid !== uid) return null;
  if (type !== 'DELETED' && version === known.version) return version;
  if (type === 'ADDED' || !isDone?.(known)) return null;
  if (type === 'DELETED') store.drop(name);
  return version;
}

function readEvent(path: string, line: string, unread: Unread): WatchEvent {
  const { type, object } = readLine(line, unread);
  if (type !== 'ERROR') return { type, object } as WatchEvent;
  const status = object as { code?: number; message?: string; reason?: string };
  throw new KubeError(`a watch of ${path}`, status.code ?? 500, status);
}

/** Of a server that writes in another order, so that the wrong part was cut out, the whole line counts. */
function readLine(line: string, unread: Unread): { type: string; object: object } {
  try {
    const read = JSON.parse(without(line, unread));
    const isWhole = 'status' in read.object === line.includes('"status":{');
    if (isWhole && read.object.metadata.resourceVersion) return read;
  } catch {
    // Not even JSON is left.
  }
  return JSON.parse(line);
}

/** Cuts out what stands between each two words: reading it would be most of the work. A text of JSON has no bare quote in it. */
export function without(line: string, unread: Unread): string {
  const kept: string[] = [];
  let at = 0;
  for (const [first, last] of unread) {
    const from = line.indexOf(first, at);
    const to = line.indexOf(last, from);
    if (from < 0 || to < 0) continue;
    kept.push(line.slice(at, from + first.length));
    at = to;
  }
  return kept.join('') + line.slice(at);
}

/** The version that was asked for is too old, or of another time. */
function isGone(error: unknown): boolean {
  if (!(error instanceof KubeError)) return false;
  return error.status === 410 || /^(Gone|Expired)$/.test(error.reason) || /too large/i.test(error.message);
}
