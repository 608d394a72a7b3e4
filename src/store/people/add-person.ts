import { refuse } from '../../base/errors.ts';
import type { PersonRole } from '../../model/person.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { type RecordStore, run, script } from '../script.ts';

/**
 * Gives a person a role in an account and makes a sign-in link that works once. One who is there gets the new role and a new
 * link. Answers {'added'}, {'too_many'} or {'not_found'}.
 */
const addPersonScript = script(
  'add-person',
  'needs memory',
  ['account', 'people', 'memberships', 'signInLink'] as const,
  ['accountId', 'email', 'role', 'life'] as const,
  /* lua */ `
if redis.call('HGET', account, 'removed_at') ~= '' then return { 'not_found' } end
local before = redis.call('HGET', people, email)
if not before and redis.call('HLEN', people) >= ${recordLimits.peopleOfAccount} then return { 'too_many' } end
local accounts = redis.call('HGET', memberships, email)
undos[1] = function()
  if before then redis.pcall('HSET', people, email, before) else redis.pcall('HDEL', people, email) end
  if accounts then redis.pcall('HSET', memberships, email, accounts) else redis.pcall('HDEL', memberships, email) end
end
redis.call('HSET', people, email, role)
if not before then redis.call('HSET', memberships, email, accounts and accounts .. ' ' .. accountId or accountId) end
local link = cjson.encode({ email = email, account = accountId, ends_at = now + tonumber(life) })
redis.call('SET', signInLink, link, 'PX', life)
return { 'added' }
`,
);

/** Throws `too_many` or `not_found`. `tokenHash`: SHA-256 of the link's secret, which is the only thing that the record keeps of it. */
export async function addPerson(
  store: RecordStore,
  accountId: string,
  person: { readonly email: string; readonly role: PersonRole },
  link: { readonly tokenHash: string; readonly lifeMs: number },
): Promise<void> {
  const { email, role } = person;
  const { tokenHash, lifeMs: life } = link;
  const [word] = await run(store, addPersonScript, { accountId, email, role, tokenHash, life });
  if (word === 'not_found') throw refuse('not_found', 'There is no such account');
  if (word === 'too_many') throw refuse('too_many', `An account has at most ${recordLimits.peopleOfAccount} people`);
}
