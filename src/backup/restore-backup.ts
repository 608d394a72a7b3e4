import { refuse } from '../base/errors.ts';
import { version } from '../base/version.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import {
  type KeptRevocation,
  type RevocationObjects,
  readRevocations,
  revocationLifeMs,
} from '../objects/revocations.ts';
import { readDrain } from '../store/access/drain.ts';
import { readAccount } from '../store/accounts/read-accounts.ts';
import {
  disableTopups,
  emptyRecord,
  isLeftOut,
  refusalToRestore,
  restoreEntries,
  skipInvoices,
} from '../store/backup/restore-entries.ts';
import { holdRestoreLease, type RestoreLease } from '../store/backup/restore-lease.ts';
import { listUnknownJobs } from '../store/jobs/stray-objects.ts';
import { keys } from '../store/keys.ts';
import { noteOperation } from '../store/note-operation.ts';
import { isReadableLayout, layouts } from '../store/schema.ts';
import type { RecordStore } from '../store/script.ts';
import { type AppliedRevocation, applyRevocations } from './apply-revocations.ts';
import { type Backup, isWanted, readEntries } from './backup-manifest.ts';

interface RestoreOptions {
  readonly store: RecordStore;
  readonly backup: Backup;
  /** `null` leaves out what needs the object store. */
  readonly objects: (RevocationObjects & Pick<ObjectStore, 'listNames'>) | null;
  /** Replaces a record that is not empty. */
  readonly replaces: boolean;
  /** Nothing happened after the backup: the service was stopped before it was taken. */
  readonly isLast: boolean;
  readonly progress: (keys: number) => void;
}

export interface RestoreReport {
  readonly keys: number;
  readonly revoked: readonly AppliedRevocation[];
  /** Since when the object store knows what was revoked: the begin of the backup, unless that is too old; `null` without one. */
  readonly revocationsSince: number | null;
  /** Jobs that have objects and are not in the record. */
  readonly unknownJobs: readonly string[];
  /** Slugs of the accounts whose automatic top-up was enabled. */
  readonly disabledTopups: readonly string[];
  /** Number of the next invoice, behind a gap; `null` without one. */
  readonly nextInvoice: number | null;
  /** Since when a drain lasts, in which the backup was taken; `null` without one. */
  readonly drainSince: number | null;
}

/** A change that was noted may have been carried out so much later. */
const slackMs = 60_000;

/**
 * Puts a backup in place of the record. Nothing is changed unless the backup can be read, the object store answers, no process
 * uses the record, and the record is empty or may be replaced. A restore that was broken off leaves the record closed, until it is
 * repeated.
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreReport> {
  const { store, backup, objects } = options;
  const { manifest } = backup;
  if (!isReadableLayout(manifest.layout)) {
    const readable =
      layouts.oldest === layouts.own ? `layout ${layouts.own}` : `layouts ${layouts.oldest} to ${layouts.own}`;
    throw refuse(
      'bad_request',
      `The backup of release ${manifest.release} has layout ${manifest.layout}, but release ${version} reads ${readable}: restore it with a release that reads its layout`,
    );
  }
  const begun = Date.parse(manifest.begun_at);
  const revocations = objects && (await readRevocations(objects, sinceOf(store, begun) - slackMs));
  const lease = await holdRestoreLease(store);
  try {
    return await replaceRecord(options, lease, revocations);
  } finally {
    // It ends by itself, too.
    await lease.end().catch(() => {});
  }
}

async function replaceRecord(
  options: RestoreOptions,
  lease: RestoreLease,
  revocations: readonly KeptRevocation[] | null,
): Promise<RestoreReport> {
  const { backup, objects, replaces, isLast } = options;
  const { store } = lease;
  const { manifest } = backup;
  const begun = Date.parse(manifest.begun_at);
  const refusal = await refusalToRestore(store.connection);
  if (refusal === 'running') {
    throw refuse('in_use', 'The service uses this record: stop every API and controller, wait 15 s, and try again');
  }
  if (refusal === 'not_empty' && !replaces) {
    throw refuse('already_exists', 'The record is not empty: --replace removes what is in it');
  }
  await emptyRecord(lease, backup.format);
  const { restored, topups } = await copyEntries(options, lease);
  const disabled = isLast ? [] : await disableTopups(store, topups);
  const disabledTopups = await Promise.all(disabled.map(async (id) => (await readAccount(store, id)).slug));
  const nextInvoice = isLast ? null : await skipInvoices(store, begun);
  const change = { taken_at: manifest.taken_at };
  await noteOperation(store, '', { action: 'record.restore', target: '', change });
  const revoked = await applyRevocations(store, revocations ?? []);
  const unknownJobs = objects ? await listUnknownJobs(store, objects.listNames()) : [];
  const drainSince = await readDrain(store);
  await lease.open(Date.parse(manifest.taken_at));
  const revocationsSince = objects && sinceOf(store, begun);
  return { keys: restored, revoked, revocationsSince, unknownJobs, disabledTopups, nextInvoice, drainSince };
}

/**
 * Returns since when revocations are to be known. A backup of a later time was begun while the clock was ahead: everything that is known
 * is taken away then, because nothing says what had happened by then.
 */
function sinceOf({ clock }: RecordStore, begun: number): number {
  const now = Math.floor(clock.now());
  return begun > now ? now - revocationLifeMs : Math.max(begun, now - revocationLifeMs);
}

async function copyEntries({ backup, progress }: RestoreOptions, lease: RestoreLease) {
  const topups: string[] = [];
  let restored = 0;
  await readEntries(backup.folder, async (entries) => {
    const wanted = entries.filter((entry) => isWanted(backup.manifest, entry) && !isLeftOut(entry));
    await restoreEntries(lease, wanted, backup.format);
    topups.push(...wanted.map(({ key }) => key).filter((key) => key.startsWith(keys.topup(''))));
    restored += wanted.length;
    progress(restored);
  });
  return { restored, topups };
}
