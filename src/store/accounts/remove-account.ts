import { refuse } from '../../base/errors.ts';
import { keys } from '../keys.ts';
import { countOpenJobs } from '../lua/job-index.ts';
import { removePeople } from '../people/remove-person.ts';
import { notedScript, type RecordStore, runNoted } from '../script.ts';
import { deleteKey } from './delete-key.ts';
import { listKeys } from './read-keys.ts';

/**
 * Removes an account without open jobs or holds and frees its slug; its people and keys are deleted next, its record and ledger stay.
 * A purchase that was never tried is dropped; a tried one may be paid, so it must end first.
 * Answers {'removed'}, {'not_found'}, {'has_open_jobs'} or {'in_use'}.
 */
const removeAccountScript = notedScript(
  'remove-account',
  'always',
  ['account', 'jobs', 'slugs', 'removed', 'leaving', 'planUsers', 'periods', 'ready', 'topup', 'purchases'],
  ['accountId', 'slug'],
)`
local seen = redis.call('HMGET', account, 'held', 'plan', 'period_end', 'topup')
if redis.call('HGET', slugs, slug) ~= accountId then return { 'not_found' } end
if ${countOpenJobs} > 0 or tonumber(seen[1]) > 0 then return { 'has_open_jobs' } end
if redis.call('ZSCORE', purchases, accountId) and redis.call('HGET', topup, 'purchase_attempts') ~= '0' then return { 'in_use' } end
if note_change() then return { 'audit_full' } end
local earlier = redis.call('HGET', removed, slug)
local is_counted = true
undos[#undos + 1] = function()
  if seen[2] ~= '' then
    redis.pcall('ZADD', periods, seen[3], accountId)
    if not is_counted then redis.pcall('HINCRBY', planUsers, seen[2], 1) end
  end
  redis.pcall('HSET', account, 'removed_at', '', 'plan', seen[2], 'period_end', seen[3], 'topup', seen[4] or '')
  if earlier then redis.pcall('HSET', removed, slug, earlier) else redis.pcall('HDEL', removed, slug) end
  redis.pcall('SREM', leaving, accountId)
end
-- These three may be done alone: the account has no job that waits, and its removal will be asked for again.
redis.call('HSET', topup, 'enabled', '0', 'purchase', '')
redis.call('ZREM', purchases, accountId)
redis.call('ZREM', ready, accountId, '@' .. accountId)
redis.call('ZREM', periods, accountId)
if seen[2] ~= '' then
  redis.call('HINCRBY', planUsers, seen[2], -1)
  is_counted = false
end
redis.call('HSET', account, 'removed_at', now, 'plan', '', 'period_end', '', 'topup', '')
redis.call('HSET', removed, slug, earlier and accountId .. ' ' .. earlier or accountId)
redis.call('SADD', leaving, accountId)
redis.call('HDEL', slugs, slug)
return { 'removed' }
`;

/** Removes an account, its people and its keys; its ledger stays. Throws `in_use` during a purchase, `has_open_jobs` or `not_found`. */
export async function removeAccount(store: RecordStore, accountId: string, slug: string): Promise<void> {
  const note = { accountId, action: 'account.remove', target: slug } as const;
  const [word] = await runNoted(store, removeAccountScript, { accountId, slug }, note);
  if (word === 'in_use') throw refuse('in_use', 'A purchase of the account is under way: try again when it has ended');
  if (word !== 'removed') throw refuse(word === 'has_open_jobs' ? 'has_open_jobs' : 'not_found');
  await deleteRest(store, accountId);
}

/**
 * Deletes people and keys of accounts whose removal was interrupted after its first script; returns the number of accounts. One that
 * fails is reported and stops no other.
 */
export async function finishRemovals(store: RecordStore, report: (error: unknown) => void): Promise<number> {
  const leaving = await store.connection.read(['SMEMBERS', keys.leaving]);
  for (const id of leaving) await deleteRest(store, id).catch(report);
  return leaving.length;
}

/** Notes nothing more: the removal of the account says all of it. */
async function deleteRest({ actor: _, ...store }: RecordStore, accountId: string): Promise<void> {
  await removePeople(store, accountId);
  for (const { alias } of await listKeys(store, accountId)) await deleteKey(store, accountId, alias, true);
  await store.connection.send(['SREM', keys.leaving, accountId]);
}
