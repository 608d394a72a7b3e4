import { refuse } from '../../base/errors.ts';
import type { Pack } from '../../model/money.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { notedScript, type RecordStore, runNoted, text } from '../script.ts';
import { withRolledPeriod } from './roll-period.ts';

/**
 * Adds a pack to an account, once per pack id. Answers {'added'}, {'already_added', its JSON, what is used of it}, {'too_many'}, {'not_found'}
 * or {'roll'}.
 */
const addPackScript = notedScript(
  'add-pack',
  'needs memory',
  [...balanceKeyNames],
  ['id', 'json', 'total', 'purchasedAt'],
)`${balances}
local refused = read_balances()
if refused then return refused end
local known = redis.call('HMGET', packs, id, 'used:' .. id)
if known[1] then return { 'already_added', known[1], known[2] } end
-- A pack has two fields. One that was paid is never refused.
if redis.call('HLEN', packs) >= ${2 * recordLimits.packsOfAccount} then return { 'too_many' } end
if note_change() then return { 'audit_full' } end
book_plan_quota()
grant_pack(id, json, tonumber(total), purchasedAt)
write_balances()
return { 'added' }
`;

/** Returns the pack, or the one that the account has with this id. */
export async function addPack(store: RecordStore, accountId: string, pack: Omit<Pack, 'used'>): Promise<Pack> {
  const { id, title, purchased_at, total } = pack;
  const values = {
    accountId,
    id,
    json: JSON.stringify({ title, purchased_at, total }),
    total,
    purchasedAt: purchased_at,
  };
  const note = { accountId, action: 'pack.add', target: title, change: { total, purchased_at } } as const;
  const [word, known, used] = await withRolledPeriod(store, accountId, () =>
    runNoted(store, addPackScript, values, note),
  );
  if (word === 'too_many') {
    const most = `An account has at most ${recordLimits.packsOfAccount} packs, exhausted ones included`;
    throw refuse('too_many', `${most}: add credits instead`);
  }
  if (word === 'not_found') throw refuse('not_found', 'There is no such account');
  const stored = word === 'already_added' ? (JSON.parse(text(known)) as Omit<Pack, 'id' | 'used'>) : pack;
  return { ...stored, id, used: Number(used ?? 0) };
}
