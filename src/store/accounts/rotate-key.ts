import { refuse } from '../../base/errors.ts';
import { quotaWindows } from '../../model/account.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { keys } from '../keys.ts';
import { notedScript, type RecordStore, runNoted } from '../script.ts';
import { expiryMember, watchExpiry } from './key-expiry.ts';
import { findKeyHash } from './read-keys.ts';

/**
 * Gives an alias a new secret, which begins with the settings and the counts of the old one. The old secret gets another
 * alias and works until a moment; one with quotas stops at once, since both would count them apart (D35).
 * Answers {'rotated', end of the old one}, {'not_found'}, {'too_many'} or {'already_exists'}.
 */
const rotateKeyScript = notedScript(
  'rotate-key',
  'needs memory',
  ['keyring', 'oldKey', 'oldQuota', 'newKey', 'newQuota', 'expiringKeys'],
  ['alias', 'oldHash', 'newHash', 'newId', 'oldAlias', 'overlap', 'oldMember', 'newMember'],
)`${watchExpiry}
if redis.call('HGET', keyring, alias) ~= oldHash then return { 'not_found' } end
if redis.call('HEXISTS', keyring, oldAlias) == 1 then return { 'already_exists' } end
if redis.call('HLEN', keyring) >= ${recordLimits.keysOfAccount} then return { 'too_many' } end
local flat, old = redis.call('HGETALL', oldKey), {}
for n = 1, #flat, 2 do old[flat[n]] = flat[n + 1] end
local ends = now + tonumber(overlap)
for _, window in ipairs({ '${quotaWindows.join("', '")}' }) do
  if old['quota_' .. window] ~= '' then ends = now end
end
if old.expires ~= '' then ends = math.min(ends, tonumber(old.expires)) end
if note_change() then return { 'audit_full' } end
undos[#undos + 1] = function()
  redis.pcall('DEL', newKey, newQuota)
  redis.pcall('ZREM', expiringKeys, newMember)
  redis.pcall('HSET', oldKey, 'alias', alias, 'expires', old.expires)
  redis.pcall('HSET', keyring, alias, oldHash)
  redis.pcall('HDEL', keyring, oldAlias)
end
redis.call('HSET', newKey, unpack(flat))
redis.call('HSET', newKey, 'id', newId, 'created_at', now, 'last_used_at', '')
if redis.call('EXISTS', oldQuota) == 1 then redis.call('COPY', oldQuota, newQuota, 'REPLACE') end
redis.call('HSET', oldKey, 'alias', oldAlias, 'expires', string.format('%d', ends))
redis.call('HSET', keyring, oldAlias, oldHash, alias, newHash)
watch_expiry(newMember, old.expires)
redis.call('ZREM', expiringKeys, oldMember)
return { 'rotated', string.format('%d', ends) }
`;

interface Rotation {
  /** Id and hash of the new secret. */
  readonly id: string;
  readonly hash: string;
  /** Alias of the old secret from now on. */
  readonly oldAlias: string;
  /** Time for which the old secret goes on working. */
  readonly overlapMs: number;
}

/** Rotates a key; returns when its old secret ends. Throws `not_found`, `already_exists` or `too_many`. */
export async function rotateKey(store: RecordStore, accountId: string, alias: string, made: Rotation): Promise<number> {
  const oldHash = await findKeyHash(store, accountId, alias);
  const values = {
    accountId,
    alias,
    oldHash,
    oldKey: keys.key(oldHash),
    oldQuota: keys.quota(oldHash),
    newHash: made.hash,
    newId: made.id,
    newKey: keys.key(made.hash),
    newQuota: keys.quota(made.hash),
    oldAlias: made.oldAlias,
    overlap: made.overlapMs,
    oldMember: expiryMember(accountId, oldHash),
    newMember: expiryMember(accountId, made.hash),
  };
  const note = { accountId, action: 'key.rotate', target: alias, change: { overlap_ms: made.overlapMs } } as const;
  const [word, ends] = await runNoted(store, rotateKeyScript, values, note);
  switch (word) {
    case 'rotated':
      return Number(ends);
    case 'already_exists':
      throw refuse('already_exists', `The account has a key ${made.oldAlias} already`);
    case 'too_many':
      throw refuse(
        'too_many',
        `An account has at most ${recordLimits.keysOfAccount} keys: delete one that was never used`,
      );
    default:
      throw refuse('not_found', `The account has no key ${alias}`);
  }
}
