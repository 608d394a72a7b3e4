import { randomUUID } from 'node:crypto';
import { refuse } from '../../base/errors.ts';
import { keys } from '../keys.ts';
import { type RecordStore, run, script } from '../script.ts';

/** Longer than a command waits for a busy Redis: a restore does not lose its record to a slow disk. */
const leaseMs = 60_000;
const renewEveryMs = 10_000;

/** Answers {'done'}, or {'lost'} when the lease ended or is that of another restore; so do the scripts below. */
const renewScript = script(
  'renew-lease',
  'light',
  ['restoreLease'] as const,
  ['token', 'leaseMs'] as const,
  /* lua */ `
if redis.call('GET', restoreLease) ~= token then return { 'lost' } end
redis.call('PEXPIRE', restoreLease, leaseMs)
return { 'done' }
`,
);

const endScript = script(
  'end-lease',
  'light',
  ['restoreLease'] as const,
  ['token'] as const,
  /* lua */ `
if redis.call('GET', restoreLease) == token then redis.call('DEL', restoreLease) end
return { 'done' }
`,
);

const putScript = script(
  'put-key',
  'needs memory',
  ['restoreLease', 'restoredKey'] as const,
  ['token', 'expiresAt', 'payload'] as const,
  /* lua */ `
if redis.call('GET', restoreLease) ~= token then return { 'lost' } end
redis.call('RESTORE', restoredKey, expiresAt, payload, 'REPLACE', 'ABSTTL')
return { 'done' }
`,
);

const removeScript = script(
  'remove-keys',
  'light',
  ['restoreLease'] as const,
  ['token'] as const,
  /* lua */ `
if redis.call('GET', restoreLease) ~= token then return { 'lost' } end
for n = 2, #KEYS do redis.call('UNLINK', KEYS[n]) end
return { 'done' }
`,
);

const openScript = script(
  'open-restored',
  'always',
  ['restoreLease', 'restoring', 'restored', 'backup'] as const,
  ['token', 'takenAt', 'restoredAt'] as const,
  /* lua */ `
if redis.call('GET', restoreLease) ~= token then return { 'lost' } end
redis.call('HSET', restored, 'taken_at', takenAt, 'restored_at', restoredAt)
redis.call('HSET', backup, 'begun_first', takenAt, 'taken_at', takenAt)
redis.call('DEL', restoring)
return { 'done' }
`,
);

/** The right of one restore to replace the record. Every step fails once the lease has ended: another restore may have begun. */
export interface RestoreLease {
  readonly store: RecordStore;
  /** Throws unless the lease is still held. */
  check(): Promise<void>;
  put(key: string, expiresAt: number | null, payload: Buffer): Promise<void>;
  remove(names: readonly string[]): Promise<void>;
  /** Opens the record again. */
  open(takenAt: number): Promise<void>;
  /** Lets the next restore begin at once. */
  end(): Promise<void>;
}

/** Takes the lease, and renews it every 10 s; throws `in_use` while another restore has it. */
export async function holdRestoreLease(store: RecordStore): Promise<RestoreLease> {
  const token = randomUUID();
  if ((await store.connection.send(['SET', keys.restoreLease, token, 'NX', 'PX', String(leaseMs)])) === null) {
    throw refuse(
      'in_use',
      `Another restore replaces this record: wait for its end, or for ${leaseMs / 1000} s after it was broken off`,
    );
  }
  const check = () => renewLease(store, token);
  // A lease that could not be renewed ends the restore at its next step.
  const timer = setInterval(() => void check().catch(() => undefined), renewEveryMs);
  timer.unref();
  return {
    store,
    check,
    put: (key, expiresAt, payload) => putKey(store, token, { key, expiresAt, payload }),
    remove: (names) => removeKeys(store, token, names),
    open: (takenAt) => openRestored(store, token, takenAt),
    async end() {
      clearInterval(timer);
      await endLease(store, token);
    },
  };
}

async function renewLease(store: RecordStore, token: string): Promise<void> {
  passOrThrow(await run(store, renewScript, { token, leaseMs }));
}

async function endLease(store: RecordStore, token: string): Promise<void> {
  await run(store, endScript, { token });
}

async function putKey(
  store: RecordStore,
  token: string,
  { key, expiresAt, payload }: { readonly key: string; readonly expiresAt: number | null; readonly payload: Buffer },
): Promise<void> {
  passOrThrow(await run(store, putScript, { token, restoredKey: key, expiresAt: expiresAt ?? 0, payload }));
}

async function removeKeys(store: RecordStore, token: string, names: readonly string[]): Promise<void> {
  passOrThrow(await run(store, removeScript, { token }, [], false, names));
}

async function openRestored(store: RecordStore, token: string, takenAt: number): Promise<void> {
  passOrThrow(await run(store, openScript, { token, takenAt, restoredAt: Math.floor(store.clock.now()) }));
}

/** `broken off`: the record stays closed until the restore is repeated. */
export type RestoreState = 'none' | 'running' | 'broken off';

/** Reads whether a restore keeps the record closed. */
export async function readRestore({ connection }: Pick<RecordStore, 'connection'>): Promise<RestoreState> {
  const reads = [keys.restoring, keys.restoreLease].map((key) => ['GET', key] as const);
  const [restoring, lease] = await connection.readAll(reads);
  if (restoring === null) return 'none';
  return lease === null ? 'broken off' : 'running';
}

function passOrThrow([word]: readonly unknown[]): void {
  if (word === 'done') return;
  throw refuse('in_use', `This restore stood still for more than ${leaseMs / 1000} s and was ended: repeat it`);
}
