import { keys } from '../keys.ts';
import { number, pairs, type RecordStore, run, script } from '../script.ts';

/** Times in milliseconds. */
export interface BackupNotes {
  /** When a backup was begun for the first time; `null` before. */
  readonly firstBegun: number | null;
  /** Since when a schedule is expected to begin backups; `null` without one. */
  readonly expectedSince: number | null;
  /** When the last complete backup was taken; `null` before the first. */
  readonly lastTaken: number | null;
}

/** Notes a time, or keeps the one that is there. Answers {'done'}. A Redis whose memory is full takes it too: a backup is wanted most then. */
const noteTimeScript = script('backup-notes', 'light', ['backup'], ['field', 'at', 'keeps'])`
redis.call(keeps == '1' and 'HSETNX' or 'HSET', backup, field, at)
return { 'done' }
`;

/** Notes that a backup begins: one that never succeeds is told by its age, too. */
export async function noteBackupBegun(store: RecordStore): Promise<void> {
  await run(store, noteTimeScript, { field: 'begun_first', at: Math.floor(store.clock.now()), keeps: '1' });
}

/** Notes whether a schedule is expected to begin backups: one that never does is told by its age, too. */
export async function noteSchedule(store: RecordStore, isScheduled: boolean): Promise<void> {
  const field = 'expected_since';
  if (isScheduled) await run(store, noteTimeScript, { field, at: Math.floor(store.clock.now()), keeps: '1' });
  else await store.connection.send(['HDEL', keys.backup, field]);
}

export async function noteBackupTaken(store: RecordStore, at: number): Promise<void> {
  await run(store, noteTimeScript, { field: 'taken_at', at, keeps: '' });
}

/**
 * Counts the age of what was noted while the clock was ahead from now on. Else no alert would miss a backup until the clock is as late
 * again. Waits while the clock may be wrong.
 */
export async function boundBackupNotes(store: RecordStore, { firstBegun, expectedSince, lastTaken }: BackupNotes) {
  const { connection, clock } = store;
  const now = clock.now();
  if (!connection.clock.isSteady()) return;
  const times = { begun_first: firstBegun, expected_since: expectedSince, taken_at: lastTaken };
  for (const [field, time] of Object.entries(times)) {
    if (time !== null && time > now) await run(store, noteTimeScript, { field, at: Math.floor(now), keeps: '' });
  }
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
