import { refuse } from '../../base/errors.ts';
import { personIdOf } from '../../model/person.ts';
import { keys } from '../keys.ts';
import { noteArgNames, noteChange, noteKeyNames, noteOf, requireNoted } from '../lua/note-change.ts';
import { pairs, type RecordStore, run, script } from '../script.ts';
import { lastOwner, losesOwner, otherPeople } from './other-owner.ts';

const keyNames = [
  ...(['roster', 'person', 'signInLinks', 'sessions', 'passkeys', 'passkeyOwners'] as const),
  ...noteKeyNames,
] as const;

/**
 * Takes a role, the passkeys that open that account alone, and with the last role everything else of the person: their sessions open nothing from the next request on.
 * The roster goes last, so a removal that fails in its middle can be asked for again. Answers {'removed'}, {'not_found'} or
 * {'last_owner'}.
 */
const removePersonScript = script(
  'remove-person',
  'always',
  keyNames,
  ['personId', 'field', 'keepsOwner', ...noteArgNames] as const,
  /* lua */ `${losesOwner(keyNames)}${noteChange}
if redis.call('HEXISTS', roster, personId) == 0 then return { 'not_found' } end
if loses_owner(person, field, keepsOwner) then return { 'last_owner' } end
if note_change() then return { 'audit_full' } end
redis.call('HDEL', person, field)
local is_needed = false
for _, name in ipairs(redis.call('HKEYS', person)) do
  if name == 'operator' or string.sub(name, 1, 5) == 'role:' then is_needed = true end
end
local flat = redis.call('HGETALL', passkeys)
for n = 1, #flat, 2 do
  if not is_needed or 'role:' .. cjson.decode(flat[n + 1]).account == field then
    redis.call('HDEL', passkeyOwners, flat[n])
    redis.call('HDEL', passkeys, flat[n])
  end
end
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
  keepsOwner = false,
): Promise<void> {
  const reply = await run(
    store,
    removePersonScript,
    {
      roster: accountId === '' ? keys.operators : keys.people(accountId),
      personId: personIdOf(email),
      field: accountId === '' ? 'operator' : `role:${accountId}`,
      keepsOwner: keepsOwner ? '1' : '',
      ...noteOf(store, accountId, { action: 'person.remove', target: email }),
    },
    [],
    false,
    keepsOwner ? await otherPeople(store, accountId, email) : [],
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
