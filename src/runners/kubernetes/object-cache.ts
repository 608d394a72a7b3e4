import type { Log } from '../../base/log.ts';

export interface CachedObject {
  readonly name: string;
  readonly uid: string;
  /** Its `resourceVersion`: of two states of one object the one with the greater version is newer. */
  readonly version: string;
}

export type ObjectCache<T extends CachedObject> = ReturnType<typeof makeObjectCache<T>>;

/** True when one `resourceVersion` is greater: they are whole numbers of any length. */
export function isNewer(version: string, than: string): boolean {
  return version.length === than.length ? version > than : version.length > than.length;
}

/** Returns an empty cache; `onChange` is called for every change, without `after` when an object is gone. */
export function makeObjectCache<T extends CachedObject>(
  read: (raw: never) => T,
  onChange: (before: T | null, after: T | null) => void,
  log: Log,
) {
  const objects = new Map<string, T>();
  const report = (before: T | null, after: T | null) => {
    try {
      onChange(before, after);
    } catch (error) {
      log.error('a change in the cluster could not be handled', { error });
    }
  };
  /**
   * Keeps a state of an object unless a newer one is known; returns the newest. `reset`: etcd was restored from a backup;
   * overwrite the cache even with an older `resourceVersion`.
   */
  const put = (raw: object, reset = false): T => {
    const after = read(raw as never);
    const before = objects.get(after.name) ?? null;
    const isKnown = before && (reset ? after.version === before.version : !isNewer(after.version, before.version));
    if (isKnown) return before;
    objects.set(after.name, after);
    report(before, after);
    return after;
  };
  const drop = (name: string) => {
    const before = objects.get(name);
    if (before && objects.delete(name)) report(before, null);
  };
  return {
    get: (name: string) => objects.get(name),
    values: () => objects.values(),
    put,
    /** Removes a deleted object after its last state was reported: that may be the first that shows how the object ended. */
    remove: (raw: object) => drop(put(raw).name),
    /** Removes objects that a list of this version lacks, except newer ones. */
    keepOnly(names: ReadonlySet<string>, version: string, reset: boolean) {
      for (const { name, version: own } of [...objects.values()]) {
        if (!names.has(name) && (reset || !isNewer(own, version))) drop(name);
      }
    },
  };
}
