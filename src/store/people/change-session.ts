import type { PersonSecret } from '../../model/person.ts';
import { readJson } from '../lua/read-json.ts';
import { notedScript, type RecordStore, run, runNoted, script } from '../script.ts';

/** Moves a session to another account of its person. Answers {'moved'} or {'refused'}. */
const moveSessionScript = script('move-session', 'needs memory', ['person', 'sessions'], ['accountId', 'secretHash'])`
local json = redis.call('HGET', sessions, secretHash)
if not json then return { 'refused' } end
if redis.call('HGET', person, 'operator') ~= '1' and redis.call('HEXISTS', person, 'role:' .. accountId) == 0 then
  return { 'refused' }
end
local session = cjson.decode(json)
if session.bound then return { 'refused' } end
session.account = accountId
redis.call('HSET', sessions, secretHash, cjson.encode(session))
return { 'moved' }
`;

/** Ends a session. Answers {'ended'}. */
const endSessionScript = script('end-session', 'always', ['sessions'], ['secretHash'])`
redis.call('HDEL', sessions, secretHash)
return { 'ended' }
`;

/**
 * Ends every other session and sign-in link of the person, then sets the password; repeatable. One that is set in a bound
 * session opens its account alone, replaces none that opens more, and ends only what is bound to that account, too.
 * The first one in a session of a link, by which somebody comes back who has lost their password, also removes the passkeys that were not made
 * in that session: a person who knew the lost password may have added one. Answers {'set', removed passkeys} or {'refused'}.
 */
const setPasswordScript = notedScript(
  'set-password',
  'needs memory',
  ['person', 'sessions', 'signInLinks', 'passkeys', 'passkeyOwners'],
  ['secretHash', 'password'],
)`${readJson}
local json = redis.call('HGET', sessions, secretHash)
if not json or redis.call('EXISTS', person) == 0 then return { 'refused' } end
local session, removed = cjson.decode(json), 0
local function end_recovery()
  if session.link then
    session.link = nil
    redis.call('HSET', sessions, secretHash, cjson.encode(session))
  end
  return { 'set', removed }
end
local function remove_passkeys()
  local flat = session.link and redis.call('HGETALL', passkeys) or {}
  for n = 1, #flat, 2 do
    local passkey = read_json(flat[n + 1])
    if passkey.session ~= secretHash and (not session.bound or passkey.account == session.account) then
      local owner = redis.call('HGET', passkeyOwners, flat[n])
      undos[#undos + 1] = function()
        redis.pcall('HSET', passkeys, flat[n], flat[n + 1])
        if owner then redis.pcall('HSET', passkeyOwners, flat[n], owner) end
      end
      redis.call('HDEL', passkeyOwners, flat[n])
      redis.call('HDEL', passkeys, flat[n])
      removed = removed + 1
    end
  end
end
if session.bound then
  local known = redis.call('HMGET', person, 'password', 'password_account')
  if known[1] and known[1] ~= '' and known[2] ~= session.account then return { 'refused' } end
  if note_change() then return { 'audit_full' } end
  for _, name in ipairs({ sessions, signInLinks }) do
    local flat = redis.call('HGETALL', name)
    for n = 1, #flat, 2 do
      local other = read_json(flat[n + 1])
      if other.bound and other.account == session.account and flat[n] ~= secretHash then redis.call('HDEL', name, flat[n]) end
    end
  end
  remove_passkeys()
  redis.call('HSET', person, 'password', password, 'password_account', session.account, 'password_shown_to', session.shown_to or '')
  return end_recovery()
end
if note_change() then return { 'audit_full' } end
for _, other in ipairs(redis.call('HKEYS', sessions)) do
  if other ~= secretHash then redis.call('HDEL', sessions, other) end
end
redis.call('DEL', signInLinks)
remove_passkeys()
redis.call('HSET', person, 'password', password, 'password_account', '', 'password_shown_to', '')
return end_recovery()
`;

/** Returns false when the person has no role in that account. */
export async function moveSession(store: RecordStore, session: PersonSecret, accountId: string): Promise<boolean> {
  const [word] = await run(store, moveSessionScript, { ...session, accountId });
  return word === 'moved';
}

export async function endSession(store: RecordStore, session: PersonSecret): Promise<void> {
  await run(store, endSessionScript, { ...session });
}

/** Returns how many passkeys went with the old password, `null` when the session has ended. */
export async function setPassword(
  store: RecordStore,
  session: PersonSecret & { readonly accountId: string },
  password: string,
): Promise<number | null> {
  const { accountId } = session;
  const note = { accountId, action: 'person.password', target: store.actor?.who ?? '' } as const;
  const [word, removed] = await runNoted(store, setPasswordScript, { ...session, password }, note);
  return word === 'set' ? Number(removed) : null;
}
