import { keys } from '../keys.ts';
import { number, pairs, type RecordStore } from '../script.ts';

/** Times in milliseconds. */
export interface BackupNotes {
  /** When a backup was begun for the first time, or first expected of a schedule. */
  readonly firstBegun: number;
  /** When the last complete backup was taken; `null` before the first. */
  readonly lastTaken: number | null;
}

/** Notes that a backup begins or is expected: one that never succeeds, or that a schedule never begins, is told by its age, too. */
export async function noteBackupBegun({ connection, clock }: RecordStore): Promise<void> {
  await connection.send(['HSETNX', keys.backup, 'begun_first', String(clock.now())]);
}

export async function noteBackupTaken({ connection }: RecordStore, at: number): Promise<void> {
  await connection.send(['HSET', keys.backup, 'taken_at', String(at)]);
}

/** Returns what is known of the backups of the record; `null` when none was ever begun. */
export async function readBackupNotes({ connection }: Pick<RecordStore, 'connection'>): Promise<BackupNotes | null> {
  const fields = pairs(await connection.read(['HGETALL', keys.backup]));
  const firstBegun = number(fields.begun_first);
  return firstBegun === null ? null : { firstBegun, lastTaken: number(fields.taken_at) };
}
