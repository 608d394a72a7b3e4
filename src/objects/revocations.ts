import { randomUUID } from 'node:crypto';
import { Refusal, refuse } from '../base/errors.ts';
import { writeTime } from '../model/timestamp.ts';
import type { ObjectStore } from './object-store.ts';

/** One right that was taken away, as a restored record must know it. */
export type Revocation =
  /** `ends`: milliseconds; the key must not work from then on. */
  | { readonly kind: 'key'; readonly account: string; readonly key: string; readonly ends: number }
  /** `account` is '' for an operator. */
  | { readonly kind: 'person'; readonly account: string; readonly email: string }
  /** Suspended or removed. */
  | { readonly kind: 'account'; readonly account: string };

/** A revocation as it is kept. `at`: milliseconds. */
export type KeptRevocation = Revocation & { readonly at: number };

export type RevocationObjects = Pick<ObjectStore, 'keep' | 'read' | 'remove' | 'listNames'>;

/** When a change of a key ends it, in milliseconds; `null` when it does not. */
export function endOfKey(change: { active?: boolean | undefined; expires?: number | null | undefined }, now: number) {
  return change.active === false ? now : (change.expires ?? null);
}

const place = 'revocations/';
const note = 'note.json';
const dayMs = 86_400_000;

/** A restore of an older backup does not know everything that was revoked since. */
export const revocationLifeMs = 400 * dayMs;

/**
 * Carries out a revocation, and writes it to the object store before it is answered: a record that is restored from an older backup
 * would undo it. While the object store is away the revocation takes place all the same, and `unavailable` says what is missing.
 */
export async function revoke<T>(
  open: () => Promise<RevocationObjects>,
  now: number,
  revocation: Revocation,
  change: () => Promise<T>,
): Promise<T> {
  const at = Math.floor(now);
  const prefix = `${place}${dayNameOf(at)}/${randomUUID()}/`;
  const body = Buffer.from(JSON.stringify({ ...revocation, at } satisfies KeptRevocation));
  const write = async () => {
    const objects = await open();
    await objects.keep(`${prefix}${note}`, body);
    return null;
  };
  // An object store that hangs does not delay the revocation.
  const writing = write().catch((error: Error) => error);
  const changed = await change().catch(async (error: unknown) => {
    // Nothing was revoked. A note that stays all the same errs on the safe side.
    const isRefused = error instanceof Refusal && error.code !== 'unavailable';
    if ((await writing) === null && isRefused) await (await open()).remove(prefix).catch(() => undefined);
    throw error;
  });
  const failure = await writing;
  if (failure === null) return changed;
  const sentence = `It is revoked, but the record of an older backup would not know: ${failure.message}`;
  throw Object.assign(refuse('unavailable', sentence), { cause: failure });
}

/** Returns the revocations since a moment, oldest first. */
export async function readRevocations(objects: RevocationObjects, since: number): Promise<KeptRevocation[]> {
  const found: KeptRevocation[] = [];
  const firstDay = dayNameOf(since);
  for await (const days of objects.listNames(place)) {
    for (const day of days.filter((name) => name >= firstDay)) found.push(...(await readDay(objects, day)));
  }
  return found.filter(({ at }) => at >= since).sort((a, b) => a.at - b.at);
}

/** Removes the revocations of days that ended before a moment; returns the number of days. */
export async function removeRevocations(
  objects: Pick<RevocationObjects, 'remove' | 'listNames'>,
  before: number,
  goOn: () => boolean,
): Promise<number> {
  const lastDay = dayNameOf(before - dayMs);
  let removed = 0;
  for await (const days of objects.listNames(place)) {
    for (const day of days.filter((name) => name < lastDay)) {
      if (!goOn()) return removed;
      await objects.remove(`${place}${day}/`);
      removed++;
    }
  }
  return removed;
}

async function readDay(objects: RevocationObjects, day: string): Promise<KeptRevocation[]> {
  const found: KeptRevocation[] = [];
  for await (const names of objects.listNames(`${place}${day}/`)) {
    for (const name of names) {
      const bytes = await objects.read(`${place}${day}/${name}/${note}`);
      if (bytes !== null) found.push(JSON.parse(bytes.toString()));
    }
  }
  return found;
}

function dayNameOf(at: number): string {
  return writeTime(Math.floor(at)).slice(0, 10);
}
