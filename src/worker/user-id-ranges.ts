import { readFileSync } from 'node:fs';

/** Ids of users or groups, from the first up to `first + count`. */
interface IdRange {
  readonly first: number;
  readonly count: number;
}

/** User ids of children: of an attempt one, of the inspector one for each request. */
interface ChildUsers {
  readonly attempts: IdRange;
  readonly inspections: IdRange;
}

/** Far above the ids of people and services; as many attempts as a system has process ids. */
const defaultUsers: ChildUsers = {
  inspections: { first: 1_000_000_000, count: 1_000_000_000 },
  attempts: { first: 2_000_000_000, count: 2 ** 22 },
};
/** The kernel shows this for every id that a namespace lacks. */
const overflowId = 65_534;

/**
 * Returns ids of their own for children, by the maps of this process's user namespace: one, as of a container, may have 65,536 ids only.
 * There the upper half of them is used, where images have no users.
 */
export function findChildUsers(
  maps = ['uid_map', 'gid_map'].map((name) => readFileSync(`/proc/self/${name}`, 'utf8')),
): ChildUsers {
  const { first, count } = maps
    .map(readRanges)
    .reduce(intersect)
    .toSorted((a, b) => b.count - a.count)[0] ?? {
    first: 0,
    count: 1,
  };
  const end = first + count;
  if (first <= defaultUsers.inspections.first && end >= defaultUsers.attempts.first + defaultUsers.attempts.count)
    return defaultUsers;
  const middle = first + Math.floor(count / 2);
  const last = middle <= overflowId && overflowId < end ? overflowId : end;
  const half = Math.max(1, Math.floor((last - middle) / 2));
  return { attempts: { first: middle, count: half }, inspections: { first: middle + half, count: half } };
}

/** Each line has the first id here, the first one outside, and how many there are. */
function readRanges(map: string): IdRange[] {
  const lines = map.trim().split('\n');
  return lines.map((line) => {
    const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
    return { first, count };
  });
}

function intersect(some: readonly IdRange[], others: readonly IdRange[]): IdRange[] {
  const both = some.flatMap((one) =>
    others.map((other) => {
      const first = Math.max(one.first, other.first);
      return { first, count: Math.min(one.first + one.count, other.first + other.count) - first };
    }),
  );
  return both.filter(({ count }) => count > 0);
}
