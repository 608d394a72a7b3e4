import { refuse } from '../base/errors.ts';
import type { ObjectStore, StoredObject } from '../objects/object-store.ts';

/** Longest wait for a joined file to be seen: S3 tells of the join once, and perhaps told an earlier leader. */
const maxUnseenMs = 60_000;

/**
 * Joins the parts of a delivered file and sees it; `null` when there is none. `storingMs` is the time for which its job waits for it. Throws
 * `unavailable` for a file that may yet be shown: S3 may begin its answer with 200 and end it with an error, and some stores show a new
 * object late.
 */
export async function seeDelivered(
  objects: Pick<ObjectStore, 'finish' | 'see'>,
  key: string,
  storingMs: number | null,
): Promise<StoredObject | null> {
  const isJoined = await objects.finish(key);
  const found = await objects.see(key);
  const mayBeLate = isJoined || (storingMs !== null && storingMs < maxUnseenMs);
  if (found === null && mayBeLate)
    throw refuse('unavailable', 'The object store does not show the file that it has joined');
  return found;
}
