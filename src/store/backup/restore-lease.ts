import { createHash, randomUUID } from 'node:crypto';
import { refuse } from '../../base/errors.ts';
import { keys } from '../keys.ts';
import { type RecordStore, run, script } from '../script.ts';

/** Longer than a command waits for a busy Redis: a restore does not lose its record to a slow disk. */
const leaseMs = 60_000;
const renewEveryMs = 10_000;

/** Answers {'done'}, as the scripts below do. */
const renewScript = script('renew-lease', 'light', ['restoreLease'], ['leaseMs'])`
redis.call('PEXPIRE', restoreLease, leaseMs)
return { 'done' }
`;

const endScript = script('end-lease', 'light', ['restoreLease'], [])`
redis.call('DEL', restoreLease)
return { 'done' }
`;

const putScript = script('put-key', 'needs memory', ['restoredKey'], ['expiresAt', 'payload'])`
redis.call('RESTORE', restoredKey, expiresAt, payload, 'REPLACE', 'ABSTTL')
return { 'done' }
`;

const removeScript = script('remove-keys', 'light', [], [])`
for n = 1, #KEYS do redis.call('UNLINK', KEYS[n]) end
return { 'done' }
`;

const openScript = script('open-restored', 'always', ['restoring', 'restored', 'backup'], ['takenAt', 'restoredAt'])`
redis.call('HSET', restored, 'taken_at', takenAt, 'restored_at', restoredAt)
redis.call('HSET', backup, 'begun_first', takenAt, 'taken_at', takenAt)
redis.call('DEL', restoring)
return { 'done' }
`;

/** Lua that stands first in every script of a restore; the lease and its token are the last key and the last argument. */
const guardLua = `if redis.call('GET', table.remove(KEYS)) ~= table.remove(ARGV) then return { 'lost' } end\n`;

/** Returns a store in which every script checks first that the lease is still held, in the same step as its writes, and else throws `in_use`. */
function guardStore(store: RecordStore, token: string): RecordStore {
  const { connection } = store;
  const evalGuarded: RecordStore['connection']['eval'] = async (lua, _sha, names, args, options) => {
    const guarded = lua.replace('\n', `\n${guardLua}`);
    const sha = createHash('sha1').update(guarded).digest('hex');
    const reply = await connection.eval(guarded, sha, [...names, keys.restoreLease], [...args, token], options);
    if (!Array.isArray(reply) || String(reply[0]) !== 'lost') return reply;
    throw refuse('in_use', `This restore stood still for more than ${leaseMs / 1000} s and was ended: repeat it`);
  };
  return { ...store, connection: { ...connection, eval: evalGuarded } };
}

/** The right of one restore to replace the record. Every step fails once the lease has ended: another restore may have begun. */
export type RestoreLease = Awaited<ReturnType<typeof holdRestoreLease>>;

/** Takes the lease, and renews it every 10 s; throws `in_use` while another restore has it. */
export async function holdRestoreLease(opened: RecordStore) {
  const token = randomUUID();
  if ((await opened.connection.send(['SET', keys.restoreLease, token, 'NX', 'PX', String(leaseMs)])) === null) {
    throw refuse(
      'in_use',
      `Another restore replaces this record: wait for its end, or for ${leaseMs / 1000} s after it was broken off`,
    );
  }
  const store = guardStore(opened, token);
  // A lease that could not be renewed ends the restore at its next step.
  const timer = setInterval(() => void renewLease(store).catch(() => undefined), renewEveryMs);
  timer.unref();
  return {
    /** Each of its scripts fails without the lease; other commands that change the record belong into none of its steps. */
    store,
    put: (key: string, expiresAt: number | null, payload: Buffer) => putKey(store, { key, expiresAt, payload }),
    remove: (names: readonly string[]) => removeKeys(store, names),
    open: (takenAt: number) => openRestored(store, takenAt),
    /** Lets the next restore begin at once. */
    async end(): Promise<void> {
      clearInterval(timer);
      await endLease(store);
    },
  };
}

async function renewLease(store: RecordStore): Promise<void> {
  await run(store, renewScript, { leaseMs });
}

async function endLease(store: RecordStore): Promise<void> {
  await run(store, endScript, {});
}

async function putKey(
  store: RecordStore,
  { key, expiresAt, payload }: { readonly key: string; readonly expiresAt: number | null; readonly payload: Buffer },
): Promise<void> {
  await run(store, putScript, { restoredKey: key, expiresAt: expiresAt ?? 0, payload });
}

async function removeKeys(store: RecordStore, names: readonly string[]): Promise<void> {
  await run(store, removeScript, {}, { moreKeys: names });
}

async function openRestored(store: RecordStore, takenAt: number): Promise<void> {
  await run(store, openScript, { takenAt, restoredAt: Math.floor(store.clock.now()) });
}

/** `broken off`: the record stays closed until the restore is repeated. */
export type RestoreState = 'none' | 'running' | 'broken off';

export async function readRestore({ connection }: Pick<RecordStore, 'connection'>): Promise<RestoreState> {
  const reads = [keys.restoring, keys.restoreLease].map((key) => ['GET', key] as const);
  const [restoring, lease] = await connection.readAll(reads);
  if (restoring === null) return 'none';
  return lease === null ? 'broken off' : 'running';
}
