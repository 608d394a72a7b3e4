import { isJsonObject, parseJson } from '../../base/parse-json.ts';
import { type Person, type PersonRole, type PersonSecret, personIdOf, personRoles } from '../../model/person.ts';
import { keys } from '../keys.ts';
import { pairs, type RecordStore, text } from '../script.ts';

/** Session as the record keeps it. Times are milliseconds. */
interface StoredSession {
  readonly secretHash: string;
  /** Account that it shows; '' for an operator who has chosen none. */
  readonly account: string;
  /** The session shows no other account, whatever else its person may see. */
  readonly bound: boolean;
  /** Ids of owners who may have opened it (`shown-links.ts`). */
  readonly shown_to?: string;
  readonly at: number;
  readonly until: number;
  readonly ip: string;
  readonly agent: string;
}

export async function readPerson(store: RecordStore, email: string): Promise<Person | null> {
  return readPersonById(store, personIdOf(email));
}

export async function readPersonById(store: RecordStore, personId: string): Promise<Person | null> {
  return personOf(personId, pairs(await store.connection.read(['HGETALL', keys.person(personId)])));
}

/** Reads a session that has not ended, and its person, at one moment; `null` for any other. */
export async function readSession(store: RecordStore, { personId, secretHash }: PersonSecret) {
  const [json, fields] = await store.connection.readAll([
    ['HGET', keys.sessions(personId), secretHash],
    ['HGETALL', keys.person(personId)],
  ]);
  const person = personOf(personId, pairs(fields));
  if (person === null || typeof json !== 'string') return null;
  const session = sessionOf(secretHash, json);
  return session !== null && session.until > store.clock.now() ? { session, person } : null;
}

/** Returns the sessions of a person that have not ended, newest first. */
export async function listSessions(store: RecordStore, personId: string): Promise<StoredSession[]> {
  const found = pairs(await store.connection.read(['HGETALL', keys.sessions(personId)]));
  return Object.entries(found)
    .flatMap(([secretHash, json]) => sessionOf(secretHash, json) ?? [])
    .filter(({ until }) => until > store.clock.now())
    .sort((a, b) => b.at - a.at);
}

/** Returns the people of an account, or the operators where `accountId` is '', by e-mail address. */
export async function listPeople(store: RecordStore, accountId: string) {
  const isOperators = accountId === '';
  const roster = isOperators ? keys.operators : keys.people(accountId);
  const found = Object.entries(pairs(await store.connection.read(['HGETALL', roster])));
  const field = isOperators ? 'operator' : `role:${accountId}`;
  const rows = await store.connection.readAll(
    found.map(([personId]) => ['HMGET', keys.person(personId), field, 'created_at', 'password']),
  );
  return found
    .flatMap(([, email], n) => {
      const [role, created_at, password] = rows[n] as (string | null)[];
      if (!role) return [];
      const shown = isOperators ? 'operator' : (role as PersonRole);
      return [{ email, role: shown, created_at: Number(created_at), hasPassword: Boolean(password) }];
    })
    .sort((a, b) => (a.email < b.email ? -1 : 1));
}

/** Returns `null` for a session that is damaged: its person signs in again. */
function sessionOf(secretHash: string, json: string): StoredSession | null {
  const read = parseJson(json);
  return isJsonObject(read) ? { secretHash, ...(read as unknown as Omit<StoredSession, 'secretHash'>) } : null;
}

function personOf(id: string, fields: Readonly<Record<string, string>>): Person | null {
  if (fields.email === undefined) return null;
  const roles = Object.entries(fields).flatMap(([name, value]) => {
    const role = personRoles.find((one) => one === value);
    return name.startsWith('role:') && role ? [[name.slice('role:'.length), role] as const] : [];
  });
  return {
    id,
    email: fields.email,
    password: text(fields.password),
    isOperator: fields.operator === '1',
    hasIdentity: text(fields.identity) !== '',
    roles: Object.fromEntries(roles),
    created_at: Number(fields.created_at),
  };
}
