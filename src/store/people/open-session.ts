import type { PersonSecret } from '../../model/person.ts';
import { type RecordStore, run, script } from '../script.ts';
import { keepNewest } from './keep-newest.ts';

/** A session ends after 14 days. */
export const sessionMs = 14 * 86_400_000;

/**
 * Opens a session, by a sign-in link, which is used up by it, or for a person whose password or identity was just verified. It is bound to
 * one account when the link is, or when the password was set in such a session. The session that the browser had before ends. Answers {'opened'} or {'refused'}.
 */
const openSessionScript = script(
  'open-session',
  'needs memory',
  ['person', 'signInLinks', 'sessions'] as const,
  ['linkHash', 'password', 'identity', 'accountId', 'secretHash', 'oldHash', 'until_at', 'ip', 'agent'] as const,
  /* lua */ `${keepNewest}
local account, bound = accountId, false
if linkHash ~= '' then
  local link = redis.call('HGET', signInLinks, linkHash)
  if not link then return { 'refused' } end
  undos[1] = function() redis.pcall('HSET', signInLinks, linkHash, link) end
  local decoded = cjson.decode(link)
  if decoded['until'] <= now then return { 'refused' } end
  account, bound = decoded.account, decoded.bound
elseif identity ~= '' then
  local known = redis.call('HGET', person, 'identity') or ''
  if known ~= '' and known ~= identity then return { 'refused' } end
else
  local known = redis.call('HMGET', person, 'password', 'password_account')
  if (known[1] or '') ~= password then return { 'refused' } end
  if known[2] and known[2] ~= '' then account, bound = known[2], true end
end
local is_operator = redis.call('HGET', person, 'operator') == '1'
if not is_operator and redis.call('HEXISTS', person, 'role:' .. account) == 0 then return { 'refused' } end
undos[#undos + 1] = function() redis.pcall('HDEL', sessions, secretHash) end
if identity ~= '' then redis.call('HSET', person, 'identity', identity) end
if linkHash ~= '' then redis.call('HDEL', signInLinks, linkHash) end
if oldHash ~= '' then redis.call('HDEL', sessions, oldHash) end
keep_newest(sessions, secretHash, { account = account, bound = bound, ['until'] = tonumber(until_at), at = now, ip = ip, agent = agent })
return { 'opened' }
`,
);

interface NewSession {
  readonly session: PersonSecret;
  /** Hash of the secret of the session that the browser had before, '' for none. */
  readonly oldHash: string;
  readonly ip: string;
  readonly agent: string;
}

/** Opens a session by a sign-in link; returns true unless the link is unknown, used or too old, or its person was removed. */
export function openSessionByLink(store: RecordStore, linkHash: string, made: NewSession): Promise<boolean> {
  return openSession(store, { linkHash, password: '', identity: '', accountId: '' }, made);
}

/** Opens a session of a person who proved to know the password with this hash; returns false when it was changed meanwhile. */
export function openSessionByPassword(
  store: RecordStore,
  password: string,
  accountId: string,
  made: NewSession,
): Promise<boolean> {
  return openSession(store, { linkHash: '', password, identity: '', accountId }, made);
}

/** Opens a session of a person by the provider's name of them, which is kept at the first one; returns false for another name. */
export function openSessionByOpenid(
  store: RecordStore,
  identity: string,
  accountId: string,
  made: NewSession,
): Promise<boolean> {
  return openSession(store, { linkHash: '', password: '', identity, accountId }, made);
}

async function openSession(
  store: RecordStore,
  proof: Readonly<Record<'linkHash' | 'password' | 'identity' | 'accountId', string>>,
  { session, oldHash, ip, agent }: NewSession,
): Promise<boolean> {
  const { personId, secretHash } = session;
  const until_at = store.clock.now() + sessionMs;
  const values = { ...proof, personId, secretHash, oldHash, until_at, ip, agent: agent.slice(0, 200) };
  const [word] = await run(store, openSessionScript, values);
  return word === 'opened';
}
