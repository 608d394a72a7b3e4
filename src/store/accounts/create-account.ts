import { refuse } from '../../base/errors.ts';
import type { Account } from '../../model/account.ts';
import { periodAt } from '../../model/billing-period.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { hashTexts, notedScript, type RecordStore, runNoted } from '../script.ts';
import { readAccount } from './read-accounts.ts';
import { type AccountChange, accountFields } from './set-account.ts';

/**
 * Creates an account, with its plan's first quota when it has one. Answers {'created'}, {'already_exists'} when the slug
 * is taken, or {'no_plan'}.
 */
const createAccountScript = notedScript(
  'create-account',
  'needs memory',
  [...balanceKeyNames, 'slugs', 'planUsers', 'periods'],
  ['accountId', 'slug', 'plan', 'fields', 'start', 'finish'],
)`${balances}
if redis.call('HEXISTS', slugs, slug) == 1 or redis.call('EXISTS', account) == 1 then return { 'already_exists' } end
if plan ~= '' and redis.call('HEXISTS', plans, plan) == 0 then return { 'no_plan' } end
if note_change() then return { 'audit_full' } end
local flat = { 'id', accountId, 'slug', slug, 'plan', plan, 'created_at', now, 'quota', 0, 'used', 0, 'packs_left', 0,
  'credits_given', 0, 'credits_consumed', 0, 'held', 0, 'completed', 0, 'running', 0, 'tag', 0, 'last_entry', '', 'removed_at', '',
  'period_start', '', 'period_end', '', 'period_anchor', '' }
for name, value in pairs(cjson.decode(fields)) do flat[#flat + 1], flat[#flat + 2] = name, value end
local is_counted = false
undos[#undos + 1] = function()
  redis.pcall('DEL', account)
  redis.pcall('ZREM', periods, accountId)
  if is_counted then redis.pcall('HINCRBY', planUsers, plan, -1) end
end
redis.call('HSET', account, unpack(flat))
if plan ~= '' then
  read_balances()
  for _, name in ipairs({ 'period_anchor', 'period_start' }) do set_field(name, start) end
  set_field('period_end', finish)
  book_plan_quota()
  write_balances()
  redis.call('ZADD', periods, finish, accountId)
  redis.call('HINCRBY', planUsers, plan, 1)
  is_counted = true
end
redis.call('HSET', slugs, slug, accountId)
return { 'created' }
`;

const defaults: Required<Omit<AccountChange, 'name' | 'plan'>> = {
  stats: false,
  invoice: 'paid',
  suspended: false,
  concurrency: null,
  weight: 1,
  max_open: 10_000,
  alerts: true,
  webhook_secret: null,
};

/** Creates an account. Throws `already_exists` for a slug that is taken, `not_found` for an unknown plan. */
export async function createAccount(
  store: RecordStore,
  accountId: string,
  slug: string,
  { plan: wantedPlan, ...fields }: AccountChange & { name: string },
): Promise<Account> {
  const plan = wantedPlan ?? '';
  const { webhook_secret: _, ...shown } = fields;
  const period = periodAt(store.clock.now(), store.clock.now());
  const texts = JSON.stringify(hashTexts(accountFields({ ...defaults, ...fields })));
  const values = { accountId, slug, plan, fields: texts, start: period.start, finish: period.end };
  const note = { accountId, action: 'account.create', target: slug, change: { plan, ...shown } } as const;
  const [word] = await runNoted(store, createAccountScript, values, note);
  if (word === 'already_exists') throw refuse('already_exists', `An account ${slug} exists already`);
  if (word === 'no_plan') throw refuse('not_found', `There is no plan ${plan}`);
  return readAccount(store, accountId);
}
