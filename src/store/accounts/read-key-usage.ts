import type { Key, QuotaWindow } from '../../model/account.ts';
import { keys } from '../keys.ts';
import { quotaHeads, quotaRanges, readQuotaHeads, slidingWindow } from '../lua/sliding-window.ts';
import { pairs, type RecordStore, run, script } from '../script.ts';
import { keyOf, oldestFirst } from './read-keys.ts';

/** Reads a key and counts the calls in each of its quotas. Answers {'used', fields, total, monthly, weekly, daily}. */
const readKeyUsageScript = script('read-key-usage', 'light', ['key', 'quota'], [])`${slidingWindow}
local flat, seen = redis.call('HGETALL', key), {}
for n = 1, #flat, 2 do seen[flat[n]] = flat[n + 1] end
${readQuotaHeads('seen.windows')}
return { 'used', flat, tonumber(seen.total or 0),
  read_window(quota, ${quotaRanges.month}, ${quotaHeads.month}).sum,
  read_window(quota, ${quotaRanges.week}, ${quotaHeads.week}).sum,
  read_window(quota, ${quotaRanges.day}, ${quotaHeads.day}).sum }
`;

type UsedKey = Key & { readonly used: Readonly<Record<QuotaWindow, number>> };

/** Returns the keys of an account, oldest first, each with how many calls count in its quotas now. */
export async function listUsedKeys(store: RecordStore, accountId: string): Promise<UsedKey[]> {
  const ring = pairs(await store.connection.read(['HGETALL', keys.keyring(accountId)]));
  const found = await Promise.all(Object.values(ring).map((hash) => readUsedKey(store, hash)));
  return found.filter(({ id }) => id !== '').sort(oldestFirst);
}

async function readUsedKey(store: RecordStore, hash: string): Promise<UsedKey> {
  const [, flat, total, monthly, weekly, daily] = await run(store, readKeyUsageScript, { hash });
  const used = { total: Number(total), monthly: Number(monthly), weekly: Number(weekly), daily: Number(daily) };
  return { ...keyOf(pairs(flat)), used };
}
