import type { PersonRole } from '../../model/person.ts';
import { keys } from '../keys.ts';
import { pairs, type RecordStore } from '../script.ts';

interface Person {
  readonly email: string;
  readonly role: PersonRole;
}

/** Returns the people of an account, by their addresses. */
export async function listPeople(store: RecordStore, accountId: string): Promise<Person[]> {
  const found = pairs(await store.connection.read(['HGETALL', keys.people(accountId)]));
  return Object.entries(found)
    .map(([email, role]) => ({ email, role: role as PersonRole }))
    .sort((a, b) => (a.email < b.email ? -1 : 1));
}
