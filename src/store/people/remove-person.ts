import { refuse } from '../../base/errors.ts';
import { personIdOf } from '../../model/person.ts';
import { keys } from '../keys.ts';
import { notedScript, pairs, type RecordStore, runNoted } from '../script.ts';
import { lastOwner, type RoleLoss, shownLinks, withOthers } from './shown-links.ts';

/**
 * Takes a role and what opens that account alone: sessions, unused sign-in links, passkeys, a password; with the last role everything else of
 * the person. A session that opens other accounts, too, goes on with one of these. What opens the account for others and was shown to the
 * person ends, too. The roster goes last, so a removal that fails in its middle can be asked for again. Answers {'removed'}, {'not_found'},
 * {'changed'} or {'last_owner'}.
 */
const removePersonScript = notedScript(
  'remove-person',
  'always',
  ['roster', 'person', 'signInLinks', 'sessions', 'passkeys', 'passkeyOwners'],
  ['personId', 'field', 'keepsOwner', 'keptSession', 'others'],
)`${shownLinks}
if redis.call('HEXISTS', roster, personId) == 0 then return { 'not_found' } end
if not has_all_others() then return { 'changed' } end
if loses_owner() then return { 'last_owner' } end
local may_see, accounts = {}, {}
for _, name in ipairs(redis.call('HKEYS', person)) do
  if name ~= field then may_see[name] = true end
  if name ~= field and string.sub(name, 1, 5) == 'role:' then accounts[#accounts + 1] = string.sub(name, 6) end
end
table.sort(accounts)
local is_needed = may_see.operator or #accounts > 0
local function is_shut(entry) return not may_see['role:' .. entry.account] and (entry.bound or not may_see.operator) end
each_entry(signInLinks, function(id, link)
  if is_shut(link) then change('HDEL', signInLinks, id) end
end)
each_entry(sessions, function(id, session)
  if not is_shut(session) then return end
  if session.bound then return change('HDEL', sessions, id) end
  session.account = accounts[1] or ''
  change('HSET', sessions, id, cjson.encode(session))
end)
each_entry(passkeys, function(id, passkey)
  if is_needed and 'role:' .. passkey.account ~= field then return end
  change('HDEL', passkeyOwners, id)
  change('HDEL', passkeys, id)
end)
local password_account = redis.call('HGET', person, 'password_account') or ''
if password_account ~= '' and 'role:' .. password_account == field then
  change('HDEL', person, 'password', 'password_account', 'password_shown_to')
end
end_shown()
if note_change() then return { 'audit_full' } end
redis.call('HDEL', person, field)
make_changes()
if not is_needed then redis.call('DEL', signInLinks, sessions, person) end
redis.call('HDEL', roster, personId)
return { 'removed' }
`;

/** Removes an operator where `accountId` is ''. Throws `not_found`, and `in_use` for the last owner where the account is to keep one. */
export async function removePerson(
  store: RecordStore,
  accountId: string,
  email: string,
  { keepsOwner, keptSession }: RoleLoss = {},
): Promise<void> {
  const values = {
    roster: accountId === '' ? keys.operators : keys.people(accountId),
    personId: personIdOf(email),
    field: accountId === '' ? 'operator' : `role:${accountId}`,
    ...{ keepsOwner, keptSession },
  };
  const note = { accountId, action: 'person.remove', target: email } as const;
  const [word] = await withOthers(store, accountId, email, (others) =>
    runNoted(store, removePersonScript, { ...values, others: others.ids }, note, others.keys),
  );
  if (word === 'last_owner') throw refuse('in_use', lastOwner);
  if (word !== 'removed') throw refuse('not_found', `There is no person ${email}`);
}

export async function removePeople(store: RecordStore, accountId: string): Promise<void> {
  const emails = pairs(await store.connection.read(['HGETALL', keys.people(accountId)]));
  for (const email of Object.values(emails)) await removePerson(store, accountId, email);
}
