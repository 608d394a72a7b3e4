import { isRefusal, refuse } from '../../base/errors.ts';
import { channels, keyStart, keys } from '../keys.ts';
import { sentenceForOperator } from '../redis/explain-failure.ts';
import { type RecordStore, run, script } from '../script.ts';
import { dumpPayload } from './dump-payload.ts';
import type { SnapshotEntry } from './rdb-reader.ts';
import type { RestoreLease } from './restore-lease.ts';

type RecordConnection = RecordStore['connection'];

/** With `appendfsync always` Redis waits for its disk once for each batch. */
const batchSize = 1_000;
const batchBytes = 8 * 1024 ** 2;
const minSkipped = 100;
const scanCount = '1000';

export function isOfRecord({ key }: Pick<SnapshotEntry, 'key'>): boolean {
  return key.startsWith(keyStart);
}

/**
 * Returns true for a key that a restore leaves out: nobody leads, and everybody signs in again, because sessions may have
 * been ended since.
 */
export function isLeftOut({ key }: Pick<SnapshotEntry, 'key'>): boolean {
  if ([keys.lead, keys.restoring, keys.restoreLease, keys.restored, keys.backup].some((one) => one === key))
    return true;
  return [keys.sessions(''), keys.signInLinks('')].some((start) => key.startsWith(start));
}

/** Returns what stands against replacing the record: a process of trawl uses it, or it has content; `null` for nothing. */
export async function refusalToRestore(connection: RecordConnection): Promise<'running' | 'not_empty' | null> {
  const asked = [channels.work, channels.webhooks, channels.blocks];
  const listeners = (await connection.send(['PUBSUB', 'NUMSUB', ...asked])) as (string | number)[];
  if (listeners.some((count, n) => n % 2 === 1 && Number(count) > 0)) return 'running';
  if ((await connection.read(['GET', keys.lead])) !== null) return 'running';
  // A restore that was broken off is begun again.
  if ((await connection.read(['GET', keys.restoring])) !== null) return null;
  for await (const page of scanRecord(connection)) {
    if (page.some((key) => key !== keys.restoreLease)) return 'not_empty';
  }
  return null;
}

/** `1` as a snapshot holds it: a string of one byte. */
const sampleValue = Buffer.from([0, 1, 0x31]);

/**
 * Closes the record to everything but this restore, also after a crash, and removes its content. The key that closes it is put
 * there by RESTORE: a Redis that forbids this command, or is too old for the format of the backup, refuses before anything is removed.
 */
export async function emptyRecord(lease: RestoreLease, format: number): Promise<void> {
  const payload = dumpPayload(sampleValue, format);
  await lease.put(keys.restoring, null, payload).catch((error: Error) => {
    if (isRefusal(error, 'in_use')) throw error;
    throw refuse(
      'unavailable',
      `Redis does not take the values of this backup, and nothing was changed: ${sentenceForOperator(error)}`,
    );
  });
  for await (const page of scanRecord(lease.store.connection)) {
    const others = page.filter((key) => key !== keys.restoring && key !== keys.restoreLease);
    if (others.length > 0) await lease.remove(others);
  }
}

/** Puts keys of a snapshot back, many at once; a key that is there already is replaced. */
export async function restoreEntries(
  lease: RestoreLease,
  entries: readonly SnapshotEntry[],
  format: number,
): Promise<void> {
  let [batch, bytes]: [SnapshotEntry[], number] = [[], 0];
  const send = async () => {
    await Promise.all(batch.map(({ key, value, expiresAt }) => lease.put(key, expiresAt, dumpPayload(value, format))));
    [batch, bytes] = [[], 0];
  };
  for (const entry of entries) {
    batch.push(entry);
    bytes += entry.value.length;
    if (batch.length >= batchSize || bytes >= batchBytes) await send();
  }
  await send();
}

/** Disables an automatic top-up that is enabled. Answers {'done'}, or {'off'} when it is not. */
const disableTopupScript = script('disable-topup', 'always', ['topup', 'account'], ['waitsFrom'])`
if redis.call('HGET', topup, 'enabled') ~= '1' then return { 'off' } end
redis.call('HSET', account, 'topup', '')
redis.call('HSET', topup, 'enabled', '0', 'last_purchase_at', waitsFrom)
return { 'done' }
`;

/**
 * Disables every automatic top-up that is enabled, and begins its wait after a purchase anew: the record does not know what was
 * bought and spent after the backup, nor who disabled theirs or lowered the cap. A purchase that was never tried is dropped with
 * it. Returns the ids of the accounts.
 */
export async function disableTopups(store: RecordStore, topupKeys: readonly string[]): Promise<string[]> {
  const disabled: string[] = [];
  for (const key of topupKeys) {
    const accountId = key.slice(keys.topup('').length);
    if (await disableTopup(store, accountId)) disabled.push(accountId);
  }
  return disabled;
}

async function disableTopup(store: RecordStore, accountId: string): Promise<boolean> {
  const [word] = await run(store, disableTopupScript, { accountId, waitsFrom: Math.floor(store.clock.now()) });
  return word === 'done';
}

/** Leaves out so many numbers of invoices. Answers {'done', the last number that is taken}. */
const skipInvoicesScript = script('skip-invoices', 'needs memory', ['invoices'], ['count'])`
local skipped = {}
for n = 1, tonumber(count) do skipped[n] = '' end
return { 'done', redis.call('RPUSH', invoices, unpack(skipped)) }
`;

/**
 * Leaves out the numbers of invoices that may have been given after the backup: 100, and one for each minute since it was begun.
 * Returns the number of the next invoice.
 */
export async function skipInvoices(store: RecordStore, begunAt: number): Promise<number> {
  let left = minSkipped + Math.max(0, Math.ceil((store.clock.now() - begunAt) / 60_000));
  let last = 0;
  for (; left > 0; left -= batchSize) {
    const [, taken] = await run(store, skipInvoicesScript, { count: Math.min(left, batchSize) });
    last = Number(taken);
  }
  return last + 1;
}

async function* scanRecord(connection: RecordConnection): AsyncGenerator<string[]> {
  let cursor = '0';
  do {
    const command = ['SCAN', cursor, 'MATCH', `${keyStart}*`, 'COUNT', scanCount];
    const [next, page] = (await connection.send(command)) as [string, string[]];
    yield page;
    cursor = next;
  } while (cursor !== '0');
}
