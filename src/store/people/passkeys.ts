import { refuse } from '../../base/errors.ts';
import { isJsonObject, parseJson } from '../../base/parse-json.ts';
import type { Passkey } from '../../model/passkey.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { keys } from '../keys.ts';
import { readJson } from '../lua/read-json.ts';
import { notedScript, pairs, type RecordStore, run, runNoted, script, text } from '../script.ts';

/**
 * Adds a passkey of the person of a session; one that is made in a bound session opens the account of that session alone. Those count apart.
 * Answers {'added'}, {'refused'}, {'taken'} or {'too_many'}.
 */
const addPasskeyScript = notedScript(
  'add-passkey',
  'needs memory',
  ['person', 'sessions', 'passkeys', 'passkeyOwners'],
  ['personId', 'secretHash', 'passkeyId', 'name', 'publicKey', 'counter', 'transports'],
)`${readJson}
local json = redis.call('HGET', sessions, secretHash)
if not json or redis.call('EXISTS', person) == 0 then return { 'refused' } end
if redis.call('HEXISTS', passkeyOwners, passkeyId) == 1 then return { 'taken' } end
local session = cjson.decode(json)
local account, alike = session.bound and session.account or '', 0
for _, other in ipairs(redis.call('HVALS', passkeys)) do
  if read_json(other).account == account then alike = alike + 1 end
end
if alike >= ${recordLimits.passkeysOfPerson} then return { 'too_many' } end
if note_change() then return { 'audit_full' } end
undos[#undos + 1] = function() redis.pcall('HDEL', passkeyOwners, passkeyId) end
redis.call('HSET', passkeyOwners, passkeyId, personId)
redis.call('HSET', passkeys, passkeyId, cjson.encode({ name = name, key = publicKey, counter = tonumber(counter), transports = transports,
  account = account, shown_to = session.shown_to, session = secretHash, at = now, used_at = 0, challenged_at = 0 }))
return { 'added' }
`;

/** Names a passkey. Answers {'named'} or {'not_found'}. */
const namePasskeyScript = script('name-passkey', 'needs memory', ['passkeys'], ['passkeyId', 'scope', 'name'])`
local json = redis.call('HGET', passkeys, passkeyId)
local passkey = json and cjson.decode(json)
if not passkey or (scope ~= '' and passkey.account ~= scope) then return { 'not_found' } end
passkey.name = name
redis.call('HSET', passkeys, passkeyId, cjson.encode(passkey))
return { 'named' }
`;

/**
 * Removes a passkey, unless nothing else would then open what it opens: a password, another passkey, or what `hasOther` stands for.
 * Answers {'removed'}, {'not_found'} or {'last_way'}.
 */
const removePasskeyScript = notedScript(
  'remove-passkey',
  'always',
  ['person', 'passkeys', 'passkeyOwners'],
  ['passkeyId', 'scope', 'hasOther'],
)`${readJson}
local json = redis.call('HGET', passkeys, passkeyId)
local passkey = json and cjson.decode(json)
if not passkey or (scope ~= '' and passkey.account ~= scope) then return { 'not_found' } end
local function opens(account) return account == '' or account == passkey.account end
local known = redis.call('HMGET', person, 'password', 'password_account')
local is_open = hasOther == '1' or ((known[1] or '') ~= '' and opens(known[2] or ''))
local flat = redis.call('HGETALL', passkeys)
for n = 1, #flat, 2 do
  if flat[n] ~= passkeyId and opens(read_json(flat[n + 1]).account) then is_open = true end
end
if not is_open then return { 'last_way' } end
if note_change() then return { 'audit_full' } end
undos[#undos + 1] = function() redis.pcall('HSET', passkeys, passkeyId, json) end
redis.call('HDEL', passkeys, passkeyId)
redis.call('HDEL', passkeyOwners, passkeyId)
return { 'removed' }
`;

interface NewPasskey extends Pick<Passkey, 'id' | 'name' | 'key' | 'counter'> {
  readonly transports: readonly string[];
}

/** Passkey of a session: a bound one sees, names and removes only those that open the same account alone. */
interface PasskeyName {
  readonly personId: string;
  readonly passkeyId: string;
  /** Account of a bound session, else ''. */
  readonly scope: string;
}

/** Adds a passkey. Throws `already_exists`, `too_many`, or `sign_in_required` when the session has ended. */
export async function addPasskey(
  store: RecordStore,
  session: { readonly personId: string; readonly secretHash: string; readonly accountId: string },
  { id, name, key, counter, transports }: NewPasskey,
): Promise<void> {
  const values = { passkeyId: id, name, publicKey: key, counter, transports: transports.join(' ') };
  const note = { accountId: session.accountId, action: 'passkey.add', target: name } as const;
  const [word] = await runNoted(store, addPasskeyScript, { ...session, ...values }, note);
  if (word === 'taken') throw refuse('already_exists', 'This passkey is known already');
  if (word === 'too_many') throw tooManyPasskeys();
  if (word !== 'added') throw refuse('sign_in_required');
}

export function tooManyPasskeys(): Error {
  return refuse('too_many', `You have ${recordLimits.passkeysOfPerson} passkeys: remove one`);
}

/** Returns false when there is no such passkey. */
export async function namePasskey(store: RecordStore, passkey: PasskeyName, name: string): Promise<boolean> {
  const [word] = await run(store, namePasskeyScript, { ...passkey, name });
  return word === 'named';
}

/** Removes a passkey; `hasOther`: the person can sign in without a password or a passkey. Throws `not_found`, or `in_use` for the last way in. */
export async function removePasskey(
  store: RecordStore,
  { accountId, ...passkey }: PasskeyName & { readonly accountId: string },
  hasOther: boolean,
): Promise<void> {
  const known = await listPasskeys(store, passkey.personId, passkey.scope);
  const target = known.find(({ id }) => id === passkey.passkeyId)?.name ?? '';
  const note = { accountId, action: 'passkey.remove', target } as const;
  const [word] = await runNoted(store, removePasskeyScript, { ...passkey, hasOther }, note);
  if (word === 'last_way') throw refuse('in_use', 'Nothing else signs you in: set a password or add a passkey first');
  if (word !== 'removed') throw refuse('not_found', 'There is no such passkey');
}

/** Returns the passkeys of a person that a session may see and that are not damaged, oldest first. */
export async function listPasskeys(store: RecordStore, personId: string, scope: string): Promise<Passkey[]> {
  const found = pairs(await store.connection.read(['HGETALL', keys.passkeys(personId)]));
  const passkeys = Object.entries(found).flatMap(([id, json]) => passkeyOf(id, json) ?? []);
  return passkeys.filter(({ account }) => scope === '' || account === scope).sort((a, b) => a.at - b.at);
}

/** Returns a passkey and the id of its person; `null` for one that is not known. */
export async function findPasskey(store: RecordStore, id: string) {
  const personId = text(await store.connection.read(['HGET', keys.passkeyOwners, id]));
  const json = personId === '' ? '' : text(await store.connection.read(['HGET', keys.passkeys(personId), id]));
  const passkey = passkeyOf(id, json);
  return passkey && { personId, passkey };
}

/** Returns `null` for one that is damaged: it signs nobody in. */
function passkeyOf(id: string, json: string): Passkey | null {
  const read = parseJson(json);
  return isJsonObject(read) ? { id, ...(read as unknown as Omit<Passkey, 'id'>) } : null;
}
