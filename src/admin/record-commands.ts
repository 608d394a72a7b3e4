import { resolve } from 'node:path';
import type { Backup } from '../backup/backup-manifest.ts';
import type { RestoreReport } from '../backup/restore-backup.ts';
import { nullWhen, refuse } from '../base/errors.ts';
import { invoiceNumber } from '../model/purchase.ts';
import { writeTime } from '../model/timestamp.ts';
import { type CommandResult, command, type ParseValue } from './command.ts';
import { flag, wholeNumber } from './command-values.ts';
import { tableText, timeText } from './text-table.ts';

const folder: ParseValue<string> = (text, subject) =>
  text === '' ? { problem: `${subject} must be the path of a folder` } : { value: resolve(text) };

export const recordCommands = {
  'record backup': command({
    text: 'Copies the whole record, as it is at one moment, into a new folder below DIR while the service runs.',
    json: '{folder, taken_at, keys, bytes, sha256, layout, release}',
    operands: { DIR: { read: folder, text: 'Folder of the backups; made when it is missing.' } },
    options: {
      keep: {
        value: 'N',
        read: wholeNumber(1, 100_000),
        text: 'Complete backups in DIR that stay, the newest ones; all unless given.',
      },
    },
    run: async (given, { store, config, progress }) => {
      // Loaded only here, so that help does not load Redis.
      const { findRecord, noRecord } = await import('../store/open-store.ts');
      const { takeBackup } = await import('../backup/take-backup.ts');
      const url = await findRecord(config);
      if (url === null) throw refuse('unavailable', noRecord(config));
      const tell = (bytes: number) => progress(`${megabytes(bytes)} are copied`);
      const taken = await takeBackup({ store, url, folder: given.DIR, keep: given.keep, progress: tell });
      const { taken_at, keys, bytes, sha256, layout, release } = taken.manifest;
      return {
        value: { folder: taken.folder, taken_at, keys, bytes, sha256, layout, release },
        text: `${taken.folder} has the record of ${taken_at}: ${keys} keys in ${megabytes(bytes)}.\n`,
      };
    },
  }),
  'record restore': command({
    text: 'Puts a backup in place of the record while the service is stopped, and names what the backup did not know.',
    json: [
      '{folder, taken_at, keys, revoked, revocations_since, unknown_jobs, disabled_topups, next_invoice, draining_since,',
      'unreadable_secrets}',
    ].join(' '),
    whileStopped: true,
    operands: { DIR: { read: folder, text: 'Folder of one backup, or of several, of which the newest is taken.' } },
    options: {
      replace: { read: flag, text: 'Removes the record that is there.' },
      'nothing-since': {
        read: flag,
        text: 'The service was stopped before the backup was taken and has not run since: automatic top-ups stay as they are, and invoices go on without a gap.',
      },
      'without-files': {
        read: flag,
        text: 'Does not ask the storage of finished files, which is lost too: revocations since the backup are not known.',
      },
    },
    run: async (given, { store, seal, objects, progress }) => {
      const { openBackup } = await import('../backup/backup-manifest.ts');
      const { restoreBackup } = await import('../backup/restore-backup.ts');
      const { listUnreadableSecrets } = await import('../store/accounts/reseal-webhook-secret.ts');
      const backup = await openBackup(given.DIR);
      const restored = await restoreBackup({
        store,
        backup,
        objects: given['without-files'] ? null : await objects(),
        replaces: given.replace ?? false,
        isLast: given['nothing-since'] ?? false,
        progress: (keys) => progress(`${keys} of ${backup.manifest.keys} keys are restored`),
      });
      const current = await seal().catch(nullWhen('unavailable'));
      return reportOf(backup, restored, current && (await listUnreadableSecrets(store, current)));
    },
  }),
};

function reportOf(
  { folder, manifest }: Backup,
  report: RestoreReport,
  /** `null` where no secret is known, so that none could be tried. */
  unreadable_secrets: readonly string[] | null,
): CommandResult {
  const { taken_at, begun_at } = manifest;
  const {
    keys,
    revocationsSince,
    revoked,
    unknownJobs: unknown_jobs,
    disabledTopups: disabled_topups,
    nextInvoice,
    drainSince,
  } = report;
  const rows = revoked.map(({ at, ...row }) => ({ 'revoked (UTC)': timeText(at), ...row }));
  const next_invoice = nextInvoice === null ? null : invoiceNumber(nextInvoice);
  const isTooOld = revocationsSince !== null && revocationsSince > Date.parse(begun_at);
  const lists = [
    isTooOld
      ? `\nRevocations are kept for 400 days, so those before ${writeTime(revocationsSince)} are missing: check keys and people.\n`
      : '',
    rows.length > 0 ? `\nRevoked after the backup, and revoked again:\n${tableText(rows, '')}` : '',
    listText(
      'Jobs that have files and are not in the record; the files stay for TRAWL_FILE_HOURS and 7 days',
      unknown_jobs,
    ),
    listText(
      'Accounts whose automatic top-up is disabled, because what was bought, spent or changed since is not known',
      disabled_topups,
    ),
    next_invoice === null
      ? ''
      : `\nThe next invoice is ${next_invoice}: the numbers before it may have been given after the backup.\n`,
    drainSince === null
      ? ''
      : `\nThe backup was taken in a drain, which lasts since ${timeText(drainSince)} UTC: new jobs and calls get 503 until \`trawl admin drain off\`.\n`,
    unreadable_secrets === null
      ? '\nNo TRAWL_SECRET is known here, so accounts whose webhook secret it does not open are not named.\n'
      : listText(
          'Accounts whose webhooks fail, because TRAWL_SECRET was changed since: name its value of then in TRAWL_SECRET_OLD before you start the service',
          unreadable_secrets,
        ),
  ];
  return {
    value: {
      ...{ folder, taken_at, keys, unknown_jobs, disabled_topups, next_invoice, unreadable_secrets },
      draining_since: writeTime(drainSince),
      revocations_since: writeTime(revocationsSince),
      revoked: revoked.map(({ at, ...row }) => ({ ...row, at: writeTime(at) })),
    },
    text: `The record of ${taken_at} is restored from ${folder}: ${keys} keys.\n${lists.join('')}`,
  };
}

function listText(heading: string, names: readonly string[]): string {
  return names.length === 0 ? '' : `\n${heading}:\n${names.map((name) => `${name}\n`).join('')}`;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
