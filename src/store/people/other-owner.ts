import { personIdOf } from '../../model/person.ts';
import { keys } from '../keys.ts';
import { pairs, type RecordStore } from '../script.ts';

export const lastOwner = 'An account keeps at least one owner: make somebody else an owner first';

/**
 * Returns Lua for a script with these named keys. loses_owner(person, field, keeps_owner): true if taking the role of this person would leave
 * their account without an owner. The keys behind the named ones are those of people who were owners before: one of them must still be
 * one, because two owners may remove each other at the same moment.
 */
export function losesOwner(keyNames: readonly string[]): string {
  return /* lua */ `
local function loses_owner(person, field, keeps_owner)
  if keeps_owner ~= '1' or redis.call('HGET', person, field) ~= 'owner' then return false end
  for n = ${keyNames.length + 1}, #KEYS do
    if redis.call('HGET', KEYS[n], field) == 'owner' then return false end
  end
  return true
end
`;
}

/** Returns the keys of the people of an account but one, of whom some may be owners. */
export async function otherPeople(store: RecordStore, accountId: string, email: string): Promise<string[]> {
  const known = pairs(await store.connection.read(['HGETALL', keys.people(accountId)]));
  const own = personIdOf(email);
  return Object.keys(known).flatMap((personId) => (personId === own ? [] : [keys.person(personId)]));
}
