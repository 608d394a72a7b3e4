import { refuse } from '../../base/errors.ts';
import { personIdOf } from '../../model/person.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { keys } from '../keys.ts';
import { readJson } from '../lua/read-json.ts';
import { pairs, type RecordStore, type ScriptReply } from '../script.ts';

/** Limits of taking a role. */
export interface RoleLoss {
  /** Refuses to take the role of the account's last owner. */
  readonly keepsOwner?: boolean;
  /** Hash of the session in which the role is taken. */
  readonly keptSession?: string;
}

export const lastOwner = 'An account keeps at least one owner: make somebody else an owner first';

/**
 * An invitation shows its link to an owner: `shown_to`, of the link and of what comes of it, has the ids of those who may have seen it.
 * Lua for a script with the keys and arguments that it names, and the keys of `withOthers` as the last ones.
 *
 * has_all_others() → true if nobody was added to the account since `others` was read.
 * loses_owner() → true if the account is to keep an owner (`keepsOwner`) and taking the role of this person would leave it without one.
 *   Others are asked as they are now, because two owners may remove each other at the same moment.
 * end_shown() notes the end of what opens the account alone and was shown to the person, but for the session `keptSession`: whoever takes
 *   the role of a person is somebody else, and must be able to go on.
 * make_changes() runs what change(…) has noted, and may be repeated.
 */
export const shownLinks = /* lua */ `${readJson}
local changes = {}
local function change(...) changes[#changes + 1] = { ... } end
local function make_changes()
  for _, one in ipairs(changes) do redis.call(unpack(one)) end
end
local function each_entry(name, judge)
  local flat = redis.call('HGETALL', name)
  for n = 1, #flat, 2 do judge(flat[n], read_json(flat[n + 1])) end
end
local function has_all_others()
  if field == 'operator' then return true end
  for _, id in ipairs(redis.call('HKEYS', roster)) do
    if id ~= personId and not string.find(others, id, 1, true) then return false end
  end
  return true
end
local function each_other(take)
  local first = #KEYS + 1 - 4 * select(2, string.gsub(others, '%S+', ''))
  for id in string.gmatch(others, '%S+') do
    take(id, unpack(KEYS, first, first + 3))
    first = first + 4
  end
end
local function loses_owner()
  if keepsOwner ~= '1' or redis.call('HGET', person, field) ~= 'owner' then return false end
  local is_last = true
  each_other(function(_, other)
    if redis.call('HGET', other, field) == 'owner' then is_last = false end
  end)
  return is_last
end
local function end_shown()
  local account = string.sub(field, 6)
  local function is_shown(of, shown_to) return of == account and string.find(shown_to or '', personId, 1, true) end
  each_other(function(_, person, links, sessions, passkeys)
    for _, name in ipairs({ links, sessions }) do
      each_entry(name, function(id, entry)
        if id ~= keptSession and is_shown(entry.account, entry.shown_to) then change('HDEL', name, id) end
      end)
    end
    each_entry(passkeys, function(id, passkey)
      if not is_shown(passkey.account, passkey.shown_to) then return end
      change('HDEL', passkeyOwners, id)
      change('HDEL', passkeys, id)
    end)
    local known = redis.call('HMGET', person, 'password_account', 'password_shown_to')
    if is_shown(known[1], known[2]) then change('HDEL', person, 'password', 'password_account', 'password_shown_to') end
  end)
end
`;

/** Each try but the first follows one who was added: people who are added for ever hold up no change for longer. */
const maxTries = recordLimits.peopleOfAccount;

/** Runs a step with all people of an account but one; again while it answers {'changed'}, because somebody was added meanwhile. */
export async function withOthers(
  store: RecordStore,
  accountId: string,
  email: string,
  step: (others: Awaited<ReturnType<typeof readOthers>>) => Promise<ScriptReply>,
): Promise<ScriptReply> {
  for (let tries = 0; tries < maxTries; tries++) {
    const reply = await step(await readOthers(store, accountId, email));
    if (reply[0] !== 'changed') return reply;
  }
  throw refuse('unavailable');
}

/** Returns the other people of an account, as a script takes them: ids with spaces between, and four keys of each. */
async function readOthers(store: RecordStore, accountId: string, email: string) {
  const known = accountId === '' ? {} : pairs(await store.connection.read(['HGETALL', keys.people(accountId)]));
  const own = personIdOf(email);
  const ids = Object.keys(known).filter((personId) => personId !== own);
  return {
    ids: ids.join(' '),
    keys: ids.flatMap((id) => [keys.person(id), keys.signInLinks(id), keys.sessions(id), keys.passkeys(id)]),
  };
}
