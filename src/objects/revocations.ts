import { randomUUID } from 'node:crypto';
import { Refusal, refuseWithout } from '../base/errors.ts';
import { writeTime } from '../model/timestamp.ts';
import type { ObjectStore } from './object-store.ts';

/** One right that was taken away, as a restored record must know it. */
type Revocation =
  /** `ends`: milliseconds; the key must not work from then on. */
  | { readonly kind: 'key'; readonly account: string; readonly key: string; readonly ends: number }
  /** `account` is '' for an operator. */
  | { readonly kind: 'person'; readonly account: string; readonly email: string }
  /** Suspended or removed. */
  | { readonly kind: 'account'; readonly account: string };

/** A key that works again, or an account that is no longer suspended. */
interface Resumption {
  readonly kind: 'resumed';
  readonly account: string;
  /** Id of the key; `null` for the account. */
  readonly key: string | null;
  /** When the key expires now, in milliseconds. */
  readonly expires: number | null;
}

/** A revocation as it is kept. `at`: milliseconds. */
export type KeptRevocation = Revocation & { readonly at: number };

type KeptNote = KeptRevocation | (Resumption & { readonly at: number });

export type RevocationObjects = Pick<ObjectStore, 'keep' | 'read' | 'remove' | 'listNames'>;

const prefix = 'revocations/';
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
  const prefix = prefixOf(at);
  const write = async () => {
    await keepNote(await open(), prefix, { ...revocation, at });
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
  throw refuseWithout('object store', failure, sentence);
}

/**
 * Notes that an account is no longer suspended, after that was done; `since`: before it was begun, so that a revocation at the same
 * time stands.
 */
export async function noteAccountResumed(
  open: () => Promise<RevocationObjects>,
  since: number,
  account: string,
): Promise<void> {
  await noteResumed(open, since, { kind: 'resumed', account, key: null, expires: null });
}

/** Carries out a change of a key, as a revocation where that ends the key; notes afterwards that it may work again or longer. */
export async function changeKey<K extends { readonly active: boolean; readonly expires: number | null }>(
  open: () => Promise<RevocationObjects>,
  now: number,
  of: { readonly account: string; readonly key: string },
  { active, expires }: { readonly active?: boolean | undefined; readonly expires?: number | null | undefined },
  change: () => Promise<K>,
): Promise<K> {
  const ends = active === false ? now : (expires ?? null);
  const changed = await (ends === null ? change() : revoke(open, now, { kind: 'key', ...of, ends }, change));
  const mayResume = changed.active && (active === true || expires !== undefined);
  if (mayResume) await noteResumed(open, now, { kind: 'resumed', ...of, expires: changed.expires });
  return changed;
}

async function noteResumed(open: () => Promise<RevocationObjects>, since: number, resumption: Resumption) {
  const at = Math.floor(since);
  try {
    await keepNote(await open(), prefixOf(at), { ...resumption, at });
  } catch {
    // A note that is missing errs on the safe side: a restore revokes again, and names it.
  }
}

/** Returns the revocations since a moment that were not taken back later, oldest first. */
export async function readRevocations(objects: RevocationObjects, since: number): Promise<KeptRevocation[]> {
  const found: KeptNote[] = [];
  const firstDay = dayNameOf(since);
  for await (const days of objects.listNames(prefix)) {
    for (const day of days.filter((name) => name >= firstDay)) found.push(...(await readDay(objects, day)));
  }
  return findStanding(found.filter(({ at }) => at >= since).sort((a, b) => a.at - b.at));
}

function findStanding(notes: readonly KeptNote[]): KeptRevocation[] {
  let standing: KeptRevocation[] = [];
  for (const note of notes) {
    if (note.kind !== 'resumed') {
      standing.push(note);
      continue;
    }
    const { account, key, expires, at } = note;
    const isTakenBack = (one: KeptRevocation) =>
      one.at < at &&
      one.account === account &&
      (key === null ? one.kind === 'account' : one.kind === 'key' && one.key === key);
    standing = standing.filter((one) => !isTakenBack(one));
    if (key !== null && expires !== null) standing.push({ kind: 'key', account, key, ends: expires, at });
  }
  return standing;
}

/**
 * Removes the revocations of days that ended before a moment, which is asked for before each; returns the number of days. `tell` is given the
 * reason why a day cannot be removed, returns 0 for the others to follow, and throws while no object can be.
 */
export async function removeRevocations(
  objects: Pick<RevocationObjects, 'remove' | 'listNames'>,
  readBefore: () => Promise<number>,
  goOn: () => boolean,
  tell: (error: unknown) => Promise<number>,
): Promise<number> {
  let removed = 0;
  for await (const days of objects.listNames(prefix)) {
    for (const day of days) {
      if (day >= dayNameOf((await readBefore()) - dayMs)) continue;
      if (!goOn()) return removed;
      removed += await objects.remove(`${prefix}${day}/`).then(() => 1, tell);
    }
  }
  return removed;
}

async function keepNote(objects: RevocationObjects, prefix: string, kept: KeptNote): Promise<void> {
  await objects.keep(`${prefix}${note}`, Buffer.from(JSON.stringify(kept)));
}

function prefixOf(at: number): string {
  return `${prefix}${dayNameOf(at)}/${randomUUID()}/`;
}

async function readDay(objects: RevocationObjects, day: string): Promise<KeptNote[]> {
  const found: KeptNote[] = [];
  for await (const names of objects.listNames(`${prefix}${day}/`)) {
    for (const name of names) {
      const bytes = await objects.read(`${prefix}${day}/${name}/${note}`);
      if (bytes !== null) found.push(JSON.parse(bytes.toString()));
    }
  }
  return found;
}

function dayNameOf(at: number): string {
  return writeTime(Math.floor(at)).slice(0, 10);
}
