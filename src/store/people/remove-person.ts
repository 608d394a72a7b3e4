import { refuse } from '../../base/errors.ts';
import { personIdOf } from '../../model/person.ts';
import { keys } from '../keys.ts';
import { noteArgNames, noteChange, noteKeyNames, noteOf, requireNoted } from '../lua/note-change.ts';
import { pairs, type RecordStore, run, script } from '../script.ts';
import { lastOwner, losesOwner, type RoleLoss } from './other-owner.ts';
import { shownLinks, withOthers } from './shown-links.ts';

const keyNames = [
  ...(['roster', 'person', 'signInLinks', 'sessions', 'passkeys', 'passkeyOwners'] as const),
  ...noteKeyNames,
] as const;

/**
 * Takes a role and what opens that account alone: sessions, unused sign-in links, passkeys, a password; with the last role everything else of
 * the person. A session that opens other accounts, too, goes on with one of these. What opens the account for others and was shown to the
 * person ends, too. The roster goes last, so a removal that fails in its middle can be asked for again. Answers {'removed'}, {'not_found'},
 * {'changed'} or {'last_owner'}.
 */
const removePersonScript = script(
  'remove-person',
  'always',
  keyNames,
  ['personId', 'field', 'keepsOwner', 'keptSession', 'others', ...noteArgNames] as const,
  /* lua */ `${losesOwner(keyNames)}${shownLinks}${noteChange}
if redis.call('HEXISTS', roster, personId) == 0 then return { 'not_found' } end
if not has_all_others() then return { 'changed' } end
if loses_owner(person, field, keepsOwner) then return { 'last_owner' } end
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
`,
);

/**
 * Removes a person from an account, or from the operators where `accountId` is ''. Throws `not_found`, and `in_use` for the last owner where
 * the account is to keep one.
 */
export async function removePerson(
  store: RecordStore,
  accountId: string,
  email: string,
  { keepsOwner = false, keptSession = '' }: RoleLoss = {},
): Promise<void> {
  const values = {
    roster: accountId === '' ? keys.operators : keys.people(accountId),
    personId: personIdOf(email),
    field: accountId === '' ? 'operator' : `role:${accountId}`,
    keepsOwner: keepsOwner ? '1' : '',
    keptSession,
    ...noteOf(store, accountId, { action: 'person.remove', target: email }),
  };
  const reply = await withOthers(store, accountId, email, (others) =>
    run(store, removePersonScript, { ...values, others: others.ids }, [], false, others.keys),
  );
  requireNoted(reply);
  const [word] = reply;
  if (word === 'last_owner') throw refuse('in_use', lastOwner);
  if (word !== 'removed') throw refuse('not_found', `There is no person ${email}`);
}

/** Removes every person of a removed account. */
export async function removePeople(store: RecordStore, accountId: string): Promise<void> {
  const emails = pairs(await store.connection.read(['HGETALL', keys.people(accountId)]));
  for (const email of Object.values(emails)) await removePerson(store, accountId, email);
}
