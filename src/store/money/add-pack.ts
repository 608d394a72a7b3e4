import { refuse } from '../../base/errors.ts';
import type { Pack } from '../../model/money.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { notedScript, type RecordStore, runNoted } from '../script.ts';
import { withRolledPeriod } from './roll-period.ts';

/** Adds a pack to an account, once per pack id. Answers {'added'}, {'already_added'}, {'too_many'}, {'not_found'} or {'roll'}. */
const addPackScript = notedScript(
  'add-pack',
  'needs memory',
  [...balanceKeyNames],
  ['accountId', 'id', 'json', 'total', 'purchasedAt'],
)`${balances}
local refused = read_balances()
if refused then return refused end
if redis.call('HEXISTS', packs, id) == 1 then return { 'already_added' } end
-- A pack has two fields. One that was paid is never refused.
if redis.call('HLEN', packs) >= ${2 * recordLimits.packsOfAccount} then return { 'too_many' } end
if note_change() then return { 'audit_full' } end
book_plan_quota()
grant_pack(id, json, tonumber(total), purchasedAt)
write_balances()
return { 'added' }
`;

export async function addPack(store: RecordStore, accountId: string, pack: Omit<Pack, 'used'>): Promise<void> {
  const { id, title, purchased_at, total } = pack;
  const values = {
    accountId,
    id,
    json: JSON.stringify({ title, purchased_at, total }),
    total,
    purchasedAt: purchased_at,
  };
  const note = { accountId, action: 'pack.add', target: title, change: { total, purchased_at } } as const;
  const [word] = await withRolledPeriod(store, accountId, () => runNoted(store, addPackScript, values, note));
  if (word === 'too_many') {
    const most = `An account has at most ${recordLimits.packsOfAccount} packs, exhausted ones included`;
    throw refuse('too_many', `${most}: add credits instead`);
  }
  if (word === 'not_found') throw refuse('not_found', 'There is no such account');
}
