import { refuse } from '../../base/errors.ts';
import type { Account } from '../../model/account.ts';
import { periodAt } from '../../model/billing-period.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { fairShare, fairShareKeyNames } from '../lua/fair-share.ts';
import { withRolledPeriod } from '../money/roll-period.ts';
import { hashTexts, notedScript, type RecordStore, runNoted } from '../script.ts';
import { readAccount } from './read-accounts.ts';

/**
 * Changes fields of an account and its plan: another plan keeps the period and the used quota, a first plan begins a
 * period, no plan ends it (D50). `plan` is '' to keep the plan, '-' to remove it.
 * Answers {'set'}, {'not_found'}, {'no_plan'} or {'roll'}.
 */
const setAccountScript = notedScript(
  'set-account',
  'always',
  [...balanceKeyNames, ...fairShareKeyNames.filter((key) => key !== 'account'), 'planUsers', 'periods'],
  ['accountId', 'plan', 'fields', 'start', 'finish'],
)`${balances}${fairShare}
local refused = read_balances()
if refused then return refused end
local changes = cjson.decode(fields)
local wanted = plan == '-' and '' or plan
if wanted ~= '' and redis.call('HEXISTS', plans, wanted) == 0 then return { 'no_plan' } end
if note_change() then return { 'audit_full' } end

local function count_user(name, by)
  redis.call('HINCRBY', planUsers, name, by)
  undos[#undos + 1] = function() redis.pcall('HINCRBY', planUsers, name, -by) end
end

local function change_plan()
  if b.plan == wanted then return end
  local old, ends_at = b.plan, b.period_end
  local first, last = old == '', wanted == ''
  set_field('plan', wanted)
  b.terms = wanted ~= '' and cjson.decode(redis.call('HGET', plans, wanted)) or nil
  book_plan_quota()
  if first then
    set_field('period_anchor', start)
    set_field('period_start', start)
    set_field('period_end', finish)
  end
  if last then
    set_field('used', 0)
    set_field('period_anchor', '')
    set_field('period_start', '')
    set_field('period_end', '')
  end
  others[#others + 1] = function()
    undos[#undos + 1] = function()
      if first then redis.pcall('ZREM', periods, accountId) end
      if last then redis.pcall('ZADD', periods, ends_at, accountId) end
    end
    if first then redis.call('ZADD', periods, finish, accountId) end
    if last then redis.call('ZREM', periods, accountId) end
    if not first then count_user(old, -1) end
    if not last then count_user(wanted, 1) end
  end
end

if plan ~= '' then change_plan() end
for name, value in pairs(changes) do set_field(name, value) end
write_balances()
update_ready(accountId, tonumber(b.running), b.concurrency, b.tag)
return { 'set' }
`;

/** Fields of an account that an operator may change; an absent field keeps its value. */
export interface AccountChange extends Partial<Omit<Account, 'id' | 'slug' | 'created_at'>> {
  /** Sealed with TRAWL_SECRET. */
  readonly webhook_secret?: string | null;
}

/** Returns the fields as the hash has them: `alert` is 'off' without alerts, and '' arms them. */
export function accountFields({ alerts, ...fields }: Omit<AccountChange, 'plan'>): object {
  return { ...fields, alert: alerts === undefined ? undefined : alerts ? '' : 'off' };
}

/** Throws `not_found` for an unknown account or plan. A change without a field leaves no entry in the audit log. */
export async function setAccount(store: RecordStore, accountId: string, change: AccountChange): Promise<Account> {
  const { plan: wanted, ...fields } = change;
  const plan = wanted === undefined ? '' : (wanted ?? '-');
  const period = periodAt(store.clock.now(), store.clock.now());
  const texts = hashTexts(accountFields(fields));
  if (plan === '' && Object.keys(texts).length === 0) return readAccount(store, accountId);
  const { webhook_secret: secret, ...shown } = change;
  const noted = { ...shown, ...(secret === undefined ? {} : { webhook_secret: secret === null ? null : 'new' }) };
  const note = { accountId, action: 'account.change', target: '', change: noted } as const;
  const values = { accountId, plan, fields: JSON.stringify(texts), start: period.start, finish: period.end };
  const [word] = await withRolledPeriod(store, accountId, () => runNoted(store, setAccountScript, values, note));
  if (word === 'no_plan') throw refuse('not_found', `There is no plan ${plan}`);
  if (word === 'not_found') throw refuse('not_found', 'There is no such account');
  return readAccount(store, accountId);
}
