import type { PersonSecret } from '../../model/person.ts';
import { notedScript, type RecordStore, runNoted } from '../script.ts';
import { keepNewest } from './keep-newest.ts';

export const sessionMs = 14 * 86_400_000;

/**
 * Opens a session, by a sign-in link, which is used up by it, or for a person whose password, identity or passkey was just verified. It is
 * bound to one account when the link is, or when the password or passkey was set in such a session. A passkey takes only a challenge that is
 * newer than the last one. A name at the provider that is kept is noted in the audit log. The session that the browser had before ends. Answers {'opened'} or {'refused'}.
 */
const openSessionScript = notedScript(
  'open-session',
  'needs memory',
  ['person', 'signInLinks', 'sessions', 'passkeys'],
  [
    ...['linkHash', 'password', 'identity', 'passkeyId', 'challengedAt', 'counter'],
    ...['accountId', 'secretHash', 'oldHash', 'until_at', 'ip', 'agent'],
  ],
)`${keepNewest}
local function issuer_of(name) return string.match(name, '^%S+') end
local account, bound, shown_to, passkey = accountId, false, nil, nil
local newest = redis.call('HGET', person, 'identity') or ''
if linkHash ~= '' then
  local link = redis.call('HGET', signInLinks, linkHash)
  if not link then return { 'refused' } end
  undos[1] = function() redis.pcall('HSET', signInLinks, linkHash, link) end
  local decoded = cjson.decode(link)
  if decoded['until'] <= now then return { 'refused' } end
  account, bound, shown_to = decoded.account, decoded.bound, decoded.shown_to
elseif identity ~= '' then
  -- Another issuer, which the operator has put in place of the first, names people anew. Each keeps its own name of them.
  local issuer = issuer_of(identity)
  local known = issuer_of(newest) == issuer and newest or redis.call('HGET', person, 'identity:' .. issuer)
  if known and known ~= identity then return { 'refused' } end
elseif passkeyId ~= '' then
  local json = redis.call('HGET', passkeys, passkeyId)
  if not json then return { 'refused' } end
  undos[1] = function() redis.pcall('HSET', passkeys, passkeyId, json) end
  passkey = cjson.decode(json)
  if passkey.challenged_at >= tonumber(challengedAt) then return { 'refused' } end
  if tonumber(counter) > 0 and passkey.counter >= tonumber(counter) then return { 'refused' } end
  if passkey.account ~= '' then account, bound, shown_to = passkey.account, true, passkey.shown_to end
else
  local known = redis.call('HMGET', person, 'password', 'password_account', 'password_shown_to')
  if (known[1] or '') ~= password then return { 'refused' } end
  if known[2] and known[2] ~= '' then account, bound, shown_to = known[2], true, known[3] or nil end
end
local is_operator = redis.call('HGET', person, 'operator') == '1'
if not is_operator and redis.call('HEXISTS', person, 'role:' .. account) == 0 then return { 'refused' } end
if identity ~= '' and identity ~= newest then note_change() end
undos[#undos + 1] = function() redis.pcall('HDEL', sessions, secretHash) end
if identity ~= '' and identity ~= newest then
  undos[#undos + 1] = function()
    if newest ~= '' then redis.pcall('HSET', person, 'identity', newest) else redis.pcall('HDEL', person, 'identity') end
  end
  if newest ~= '' then redis.call('HSET', person, 'identity:' .. issuer_of(newest), newest) end
  redis.call('HSET', person, 'identity', identity)
end
if linkHash ~= '' then redis.call('HDEL', signInLinks, linkHash) end
if passkey then
  passkey.challenged_at, passkey.counter, passkey.used_at = tonumber(challengedAt), tonumber(counter), now
  redis.call('HSET', passkeys, passkeyId, cjson.encode(passkey))
end
if oldHash ~= '' then redis.call('HDEL', sessions, oldHash) end
keep_newest(sessions, secretHash, { account = account, bound = bound, ['until'] = tonumber(until_at), at = now, ip = ip, agent = agent,
  link = linkHash ~= '' or nil, shown_to = shown_to })
return { 'opened' }
`;

interface NewSession {
  readonly session: PersonSecret;
  /** Hash of the secret of the session that the browser had before, '' for none. */
  readonly oldHash: string;
  readonly ip: string;
  readonly agent: string;
}

/** A person has just shown a link, the password with this hash, the provider's name of them, or a passkey. */
type Proof =
  | { readonly linkHash: string }
  | { readonly password: string; readonly accountId: string }
  /** Configured issuer and name of them there, which are kept at the first session. */
  | { readonly identity: string; readonly accountId: string; readonly email: string }
  | (PasskeyProof & { readonly accountId: string });

interface PasskeyProof {
  readonly passkeyId: string;
  readonly challengedAt: number;
  readonly counter: number;
}

const noProof = { linkHash: '', password: '', identity: '', passkeyId: '', challengedAt: 0, counter: 0, accountId: '' };

/**
 * Opens a session; returns false for a link that is unknown, used or too old, for a password that was changed meanwhile, for another name at the
 * provider, for a passkey that was removed or has signed this challenge or a later one before, and for a person who was removed.
 */
export async function openSession(
  store: RecordStore,
  proof: Proof,
  { session, oldHash, ip, agent }: NewSession,
): Promise<boolean> {
  const { personId, secretHash } = session;
  const until_at = store.clock.now() + sessionMs;
  const values = { ...noProof, ...proof, personId, secretHash, oldHash, until_at, ip, agent: agent.slice(0, 200) };
  const target = 'email' in proof ? proof.email : '';
  // A person who signs in is the author only of what a provider says of them.
  const actor = { via: 'dashboard', who: target, from: ip } as const;
  const change = { identity: values.identity };
  const note = { accountId: values.accountId, action: 'person.identity', target, change } as const;
  const [word] = await runNoted(target === '' ? store : { ...store, actor }, openSessionScript, values, note);
  return word === 'opened';
}
