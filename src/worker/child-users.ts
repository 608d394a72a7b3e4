import { readFileSync } from 'node:fs';
import { type ChildUsers, findChildUsers } from './user-id-ranges.ts';

let found: ChildUsers | undefined;

/** Returns the ids of this process's user namespace. */
export function childUsers(): ChildUsers {
  found ??= findChildUsers(['uid_map', 'gid_map'].map((file) => readFileSync(`/proc/self/${file}`, 'utf8')));
  return found;
}
