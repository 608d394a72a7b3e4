import type { Log } from '../../base/log.ts';

/** What a mirror keeps of an object. */
export interface Kept {
  readonly name: string;
  readonly uid: string;
  /** Of the object; of two states the one with the greater version is newer. */
  readonly version: string;
}

/** The objects by name, of each the newest state that came in whichever way. */
export interface MirrorStore<T> {
  get(name: string): T | undefined;
  all(): IterableIterator<T>;
  /** Takes a state of an object; answers the newest. `isAnew`: what was known before belongs to a time that never was. */
  learn(raw: object, isAnew?: boolean): T;
  /** The object has gone; this was its last state. */
  lose(raw: object): void;
  /** The object has gone, and its last state is not asked for. */
  drop(name: string): void;
  /** Forgets what was not listed, unless it is newer than the list. */
  keepOnly(names: ReadonlySet<string>, version: string, isAnew: boolean): void;
}

/** Whether one version came after another: they are whole numbers of any length. */
export function isNewer(version: string, than: string): boolean {
  return version.length === than.length ? version > than : version.length > than.length;
}

/** Makes an empty one; `changed` is told of every change, without `after` when an object has gone. */
export function makeMirrorStore<T extends Kept>(
  slim: (raw: never) => T,
  changed: (before: T | null, after: T | null) => void,
  log: Log,
): MirrorStore<T> {
  const kept = new Map<string, T>();
  const tell = (before: T | null, after: T | null) => {
    try {
      changed(before, after);
    } catch (error) {
      log.error('a change in the cluster could not be handled', { error });
    }
  };
  const learn = (raw: object, isAnew = false): T => {
    const after = slim(raw as never);
    const before = kept.get(after.name) ?? null;
    const isKnown = before && (isAnew ? after.version === before.version : !isNewer(after.version, before.version));
    if (isKnown) return before;
    kept.set(after.name, after);
    tell(before, after);
    return after;
  };
  const drop = (name: string) => {
    const before = kept.get(name);
    if (before && kept.delete(name)) tell(before, null);
  };
  return {
    get: (name) => kept.get(name),
    all: () => kept.values(),
    learn,
    drop,
    // Its last state is told before: it may be the first that shows how it ended.
    lose: (raw) => drop(learn(raw).name),
    keepOnly(names, version, isAnew) {
      for (const { name, version: own } of [...kept.values()]) {
        if (!names.has(name) && (isAnew || !isNewer(own, version))) drop(name);
      }
    },
  };
}
