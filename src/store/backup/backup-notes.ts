import { keys } from '../keys.ts';
import { number, pairs, type RecordStore } from '../script.ts';

/** Times in milliseconds. */
export interface BackupNotes {
  /** When a backup was begun for the first time; `null` before. */
  readonly firstBegun: number | null;
  /** Since when a schedule is expected to begin backups; `null` without one. */
  readonly expectedSince: number | null;
  /** When the last complete backup was taken; `null` before the first. */
  readonly lastTaken: number | null;
}

/** Notes that a backup begins: one that never succeeds is told by its age, too. */
export async function noteBackupBegun({ connection, clock }: RecordStore): Promise<void> {
  await connection.send(['HSETNX', keys.backup, 'begun_first', String(clock.now())]);
}

/** Notes whether a schedule is expected to begin backups: one that never does is told by its age, too. */
export async function noteSchedule({ connection, clock }: RecordStore, isScheduled: boolean): Promise<void> {
  if (isScheduled) await connection.send(['HSETNX', keys.backup, 'expected_since', String(clock.now())]);
  else await connection.send(['HDEL', keys.backup, 'expected_since']);
}

export async function noteBackupTaken({ connection }: RecordStore, at: number): Promise<void> {
  await connection.send(['HSET', keys.backup, 'taken_at', String(at)]);
}

/**
 * Counts the age of what was noted while the clock was ahead from now on. Else no alert would miss a backup until the clock is as late
 * again. Waits while the clock may be wrong.
 */
export async function boundBackupNotes(store: RecordStore, { firstBegun, expectedSince, lastTaken }: BackupNotes) {
  const { connection, clock } = store;
  const now = clock.now();
  const times = { begun_first: firstBegun, expected_since: expectedSince, taken_at: lastTaken };
  const ahead = Object.entries(times).filter(([, time]) => time !== null && time > now);
  if (ahead.length === 0 || !connection.clock.isSteady()) return;
  await connection.send(['HSET', keys.backup, ...ahead.flatMap(([name]) => [name, String(Math.floor(now))])]);
}

/** Returns what is known of the backups of the record; `null` when none was ever begun or expected. */
export async function readBackupNotes({ connection }: Pick<RecordStore, 'connection'>): Promise<BackupNotes | null> {
  const fields = pairs(await connection.read(['HGETALL', keys.backup]));
  const [firstBegun, expectedSince] = [number(fields.begun_first), number(fields.expected_since)];
  if (firstBegun === null && expectedSince === null) return null;
  return { firstBegun, expectedSince, lastTaken: number(fields.taken_at) };
}

/** Returns when the record was restored last; 0 when it never was. */
export async function readRestoredAt({ connection }: Pick<RecordStore, 'connection'>): Promise<number> {
  return number(await connection.read(['HGET', keys.restored, 'restored_at'])) ?? 0;
}
