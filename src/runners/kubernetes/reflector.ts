import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../base/log.ts';
import { type Client, KubeError } from './client.ts';

/** What a mirror keeps of an object. */
export interface Kept {
  readonly name: string;
  readonly uid: string;
  readonly version: string;
}

export interface MirrorOptions<T extends Kept> {
  readonly client: Client;
  readonly path: string;
  readonly selector: string;
  readonly slim: (raw: never) => T;
  /** Told of every change; the one without `after` has gone. */
  readonly changed: (before: T | null, after: T | null) => void;
  readonly log: Log;
  readonly times?: Partial<Times>;
}

interface Times {
  /** A watch that is silent for this long is dead; bookmarks come every minute. */
  readonly silent: number;
  /** Everything is listed again after this time, whatever the watch says. */
  readonly relist: number;
  readonly firstPause: number;
}

/** Mirrors the objects of one path, for ever: no error ends it. */
export interface Mirror<T> {
  get(name: string): T | undefined;
  all(): IterableIterator<T>;
  /** Takes what the server answered to a change of ours, until the watch brings something newer. */
  learn(raw: object): void;
  /** Milliseconds since the server gave a sign of life. */
  age(): number;
  /** Lists everything anew unless the watch is alive; throws when that fails. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

interface Page {
  readonly items: readonly object[];
  readonly metadata: { readonly continue?: string; readonly resourceVersion: string };
}

interface Event {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: { readonly metadata?: { readonly resourceVersion?: string } };
}

const usual: Times = { silent: 180_000, relist: 1_800_000, firstPause: 800 };
const longestPause = 30_000;
const pageSize = 500;
const shortWatch = 1_000;

/** Begins to mirror. */
export function openMirror<T extends Kept>(options: MirrorOptions<T>): Mirror<T> {
  const { log, path } = options;
  const times = { ...usual, ...options.times };
  const store = makeStore(options);
  const closing = new AbortController();
  const waiters = new Set<(error: unknown) => void>();
  let round = new AbortController();
  let version: string | null = null;
  let listedAt = Number.NEGATIVE_INFINITY;
  let aliveAt = Number.NEGATIVE_INFINITY;
  let isWatching = false;
  const tellWaiters = (error: unknown) => {
    for (const tell of waiters) tell(error);
    waiters.clear();
  };

  const list = async (signal: AbortSignal) => {
    version = await listAll(options, store, signal);
    listedAt = performance.now();
    aliveAt = listedAt;
    tellWaiters(null);
  };
  const watch = async (signal: AbortSignal) => {
    const dead = new AbortController();
    const timer = setInterval(() => {
      if (performance.now() - aliveAt >= times.silent) dead.abort(new Error('the watch is silent'));
    }, times.silent / 10);
    const began = performance.now();
    let events = 0;
    try {
      isWatching = true;
      for await (const event of readEvents(options, version ?? '', AbortSignal.any([signal, dead.signal]))) {
        aliveAt = performance.now();
        events++;
        version = store.take(event) ?? version;
        if (aliveAt - listedAt >= times.relist) {
          version = null;
          return;
        }
      }
    } finally {
      isWatching = false;
      clearInterval(timer);
    }
    if (events === 0 && performance.now() - began < shortWatch) throw new Error('the watch ended at once');
  };
  const run = async () => {
    for (let failures = 0; !closing.signal.aborted; ) {
      round = new AbortController();
      const signal = AbortSignal.any([closing.signal, round.signal]);
      try {
        if (version === null) await list(signal);
        await watch(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) continue;
        if (isGone(error)) version = null;
        tellWaiters(error);
        const wait = Math.min(longestPause, times.firstPause * 2 ** failures++) * (0.5 + Math.random());
        log.warn('the cluster cannot be watched: again later', { path, error, again_ms: Math.round(wait) });
        // Asked for before, it ends early.
        await pause(wait, undefined, { signal }).catch(() => undefined);
      }
    }
  };
  const running = run();
  return {
    get: store.get,
    all: store.all,
    learn: store.learn,
    age: () => performance.now() - aliveAt,
    refresh: () => {
      if (isWatching && performance.now() - aliveAt < times.silent) return Promise.resolve();
      const done = new Promise<void>((resolve, reject) => {
        waiters.add((error) => (error === null ? resolve() : reject(error)));
      });
      version = null;
      round.abort();
      return done;
    },
    async close() {
      closing.abort();
      await running;
      tellWaiters(new Error('closed'));
    },
  };
}

/** Lists page by page; answers the version from which a watch goes on. */
async function listAll<T extends Kept>(
  { client, path, selector }: MirrorOptions<T>,
  store: Store<T>,
  signal: AbortSignal,
): Promise<string> {
  const seen = new Set<string>();
  for (let next: string | undefined; ; ) {
    const query = { labelSelector: selector, limit: pageSize, continue: next };
    const { items, metadata } = await client.ask<Page>('GET', path, { query, signal });
    for (const item of items) seen.add(store.learn(item).name);
    next = metadata.continue || undefined;
    if (next) continue;
    store.keepOnly(seen, metadata.resourceVersion);
    return metadata.resourceVersion;
  }
}

async function* readEvents<T extends Kept>(
  { client, path, selector }: MirrorOptions<T>,
  version: string,
  signal: AbortSignal,
): AsyncGenerator<Event> {
  const timeoutSeconds = 300 + Math.floor(Math.random() * 300);
  const query = { labelSelector: selector, watch: true, allowWatchBookmarks: true, timeoutSeconds };
  const body = await client.open(path, { ...query, resourceVersion: version }, signal);
  body.setEncoding('utf8');
  let rest: string[] = [];
  for await (const chunk of body as AsyncIterable<string>) {
    const [first = '', ...more] = chunk.split('\n');
    rest.push(first);
    for (const next of more) {
      const line = rest.join('');
      rest = [next];
      if (line) yield readEvent(line);
    }
  }
}

function readEvent(line: string): Event {
  const event = JSON.parse(line) as Event;
  if (event.type !== 'ERROR') return event;
  const status = event.object as { code?: number; message?: string; reason?: string };
  throw new KubeError(status.code ?? 500, status, null);
}

/** The version that was asked for is too old, or of another time. */
function isGone(error: unknown): boolean {
  return (
    error instanceof KubeError &&
    (error.status === 410 || /^(Gone|Expired)$/.test(error.reason) || /too large/i.test(error.message))
  );
}

type Store<T> = ReturnType<typeof makeStore<T & Kept>>;

/** The objects by name. Of two states of one object the newer counts, whichever way it came. */
function makeStore<T extends Kept>({ slim, changed, log }: MirrorOptions<T>) {
  const kept = new Map<string, T>();
  const tell = (before: T | null, after: T | null) => {
    try {
      changed(before, after);
    } catch (error) {
      log.error('a change in the cluster could not be handled', { error });
    }
  };
  const learn = (raw: object): T => {
    const after = slim(raw as never);
    const before = kept.get(after.name) ?? null;
    if (before && !isNewer(after.version, before.version)) return before;
    kept.set(after.name, after);
    tell(before, after);
    return after;
  };
  const drop = (name: string) => {
    const before = kept.get(name);
    if (!before || !kept.delete(name)) return;
    tell(before, null);
  };
  return {
    get: (name: string) => kept.get(name),
    all: () => kept.values(),
    learn,
    /** Forgets what was not listed, unless it is newer than the list. */
    keepOnly(names: ReadonlySet<string>, version: string) {
      for (const { name, version: own } of [...kept.values()]) {
        if (!names.has(name) && !isNewer(own, version)) drop(name);
      }
    },
    /** Answers the version that a watch may go on from. */
    take({ type, object }: Event): string | undefined {
      if (type !== 'BOOKMARK') {
        const { name } = learn(object);
        if (type === 'DELETED') drop(name);
      }
      return object.metadata?.resourceVersion;
    },
  };
}

/** Versions are whole numbers of any length. */
function isNewer(version: string, than: string): boolean {
  return version.length === than.length ? version > than : version.length > than.length;
}
