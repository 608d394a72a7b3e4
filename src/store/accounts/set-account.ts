import { refuse } from '../../base/errors.ts';
import type { Account } from '../../model/account.ts';
import { periodAt } from '../../model/billing-period.ts';
import { keys } from '../keys.ts';
import { books, booksKeys } from '../lua/books.ts';
import { fairShare, fairShareKeyNames } from '../lua/fair-share.ts';
import { bookKeys, rolling } from '../money/roll-period.ts';
import { type RecordStore, run, script } from '../script.ts';
import { readAccount } from './read-accounts.ts';

/**
 * Changes fields of an account and, when one is named, its plan: another plan keeps the period and what was used, the
 * first one begins a period, none ends it (D50). `plan` is '' to leave it, '-' for none.
 * Answers {'set'}, {'not_found'}, {'no_plan'} or {'roll'}.
 */
const setAccountScript = script(
  'set-account',
  'needs memory',
  [...booksKeys, ...fairShareKeyNames.filter((key) => key !== 'account'), 'planUsers', 'periods'] as const,
  ['accountId', 'plan', 'fields', 'start', 'finish'] as const,
  /* lua */ `${books}${fairShare}
local refused = open_books()
if refused then return refused end
local changes = cjson.decode(fields)
local wanted = plan == '-' and '' or plan
if wanted ~= '' and redis.call('HEXISTS', plans, wanted) == 0 then return { 'no_plan' } end

local function change_plan()
  if b.plan == wanted then return end
  if b.plan ~= '' then redis.call('HINCRBY', planUsers, b.plan, -1) end
  if wanted ~= '' then redis.call('HINCRBY', planUsers, wanted, 1) end
  local first, last = b.plan == '', wanted == ''
  keep('plan', wanted)
  b.terms = wanted ~= '' and cjson.decode(redis.call('HGET', plans, wanted)) or nil
  sync()
  if first then
    keep('period_anchor', start)
    keep('period_start', start)
    keep('period_end', finish)
    redis.call('ZADD', periods, finish, accountId)
  end
  if last then
    keep('used', 0)
    keep('period_anchor', '')
    keep('period_start', '')
    keep('period_end', '')
    redis.call('ZREM', periods, accountId)
  end
end

if plan ~= '' then change_plan() end
for name, value in pairs(changes) do keep(name, value) end
update_ready(accountId, tonumber(b.running), b.concurrency, b.tag)
return { 'set' }
`,
);

/** What an operator may change of an account; what is not named stays. */
export interface AccountChange {
  readonly name?: string;
  readonly plan?: string | null;
  readonly stats?: boolean;
  readonly invoice?: 'paid' | 'unpaid';
  readonly suspended?: boolean;
  readonly concurrency?: number | null;
  readonly weight?: number;
  readonly max_open?: number;
  /** Sealed. */
  readonly webhook_secret?: string | null;
}

/** Changes what is named of an account and answers it. */
export async function setAccount(store: RecordStore, id: string, change: AccountChange): Promise<Account> {
  const plan = change.plan === undefined ? '' : (change.plan ?? '-');
  const period = periodAt(store.clock.now(), store.clock.now());
  const [word] = await rolling(store, id, () =>
    run(
      store,
      setAccountScript,
      {
        ...bookKeys(id),
        queue: keys.queue(id),
        ready: keys.ready,
        turn: keys.turn,
        planUsers: keys.planUsers,
        periods: keys.periods,
      },
      {
        accountId: id,
        plan,
        fields: JSON.stringify(accountFields(change)),
        start: period.start,
        finish: period.end,
      },
    ),
  );
  if (word === 'no_plan') throw refuse('not_found', `There is no plan ${change.plan}`);
  if (word === 'not_found') throw refuse('not_found', 'There is no such account');
  return readAccount(store, id);
}

/** Values of a hash: everything is text, nothing is ''. */
export function accountFields(change: AccountChange): Record<string, string> {
  const { plan: _, ...rest } = change;
  const fields: Record<string, string> = {};
  for (const [name, value] of Object.entries(rest)) {
    if (value === undefined) continue;
    fields[name] = value === null ? '' : typeof value === 'boolean' ? (value ? '1' : '0') : String(value);
  }
  return fields;
}
