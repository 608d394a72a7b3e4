import { refuse } from '../../base/errors.ts';
import { type PersonRole, personIdOf, readPersonSecret, signInLinkMs } from '../../model/person.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { keys } from '../keys.ts';
import { outboxKeyNames, outboxLua } from '../lua/outbox.ts';
import { notedScript, type RecordStore, runNoted } from '../script.ts';
import { keepNewest } from './keep-newest.ts';
import { lastOwner, type RoleLoss, shownLinks, withOthers } from './shown-links.ts';

/** No owner fills the mailbox of a stranger: a person gets one mail of an account in this time, also when removed and invited again. */
const mailGapMs = 15 * 60_000;

/**
 * Gives a person a role in an account, or makes them an operator, and notes a sign-in link and, unless one was mailed lately, a mail that
 * brings it. Where that takes the role of an owner, what was shown to them ends. Repeatable after each write. Answers
 * {'invited', 1 if it is mailed}, {'not_found'}, {'too_many'}, {'changed'}, {'last_owner'}, or {'no_owner'} when one who sees the link is none.
 */
const invitePersonScript = notedScript(
  'invite-person',
  'needs memory',
  ['account', 'roster', 'person', 'signInLinks', 'mailedInvitations', 'passkeyOwners', ...outboxKeyNames],
  [
    ...['accountId', 'personId', 'email', 'field', 'role', 'maxPeople', 'linkHash', 'until_at'],
    ...['isBound', 'shownTo', 'keepsOwner', 'keptSession', 'others', 'mail'],
  ],
)`${keepNewest}${shownLinks}${outboxLua}
if accountId ~= '' and redis.call('HGET', account, 'removed_at') ~= '' then return { 'not_found' } end
if redis.call('HEXISTS', roster, personId) == 0 and redis.call('HLEN', roster) >= tonumber(maxPeople) then return { 'too_many' } end
local owners = {}
local function note_owner(id, of) owners[id] = redis.call('HGET', of, field) == 'owner' end
note_owner(personId, person)
if shownTo ~= '' then each_other(note_owner) end
for id in string.gmatch(shownTo, '%S+') do
  if not owners[id] then return { 'no_owner' } end
end
if role ~= 'owner' and owners[personId] then
  if not has_all_others() then return { 'changed' } end
  if loses_owner() then return { 'last_owner' } end
  end_shown()
end
if note_change() then return { 'audit_full' } end
make_changes()
redis.call('HSETNX', person, 'created_at', now)
redis.call('HSET', person, 'email', email, field, role)
redis.call('HSET', roster, personId, email)
keep_newest(signInLinks, linkHash, { account = accountId, bound = isBound == '1', ['until'] = tonumber(until_at),
  shown_to = shownTo ~= '' and shownTo or nil })
if mail == '' then return { 'invited', 0 } end
redis.call('ZREMRANGEBYSCORE', mailedInvitations, '-inf', now - ${mailGapMs})
if redis.call('ZSCORE', mailedInvitations, personId) then return { 'invited', 0 } end
if redis.call('ZCARD', mailedInvitations) >= ${recordLimits.mailedInvitationsOfAccount} then return { 'invited', 0 } end
undos[#undos + 1] = function() redis.pcall('ZREM', mailedInvitations, personId) end
redis.call('ZADD', mailedInvitations, string.format('%d', now), personId)
redis.call('PEXPIRE', mailedInvitations, ${mailGapMs})
put_mail('invitation-' .. accountId .. '-' .. personId, cjson.decode(mail))
return { 'invited', 1 }
`;

/** Sign-in link for a person of an account, or for an operator where `accountId` is ''. */
interface Invitation extends RoleLoss {
  readonly accountId: string;
  readonly email: string;
  readonly role: PersonRole | 'operator';
  readonly secret: string;
  /** An owner who sees the link proves nothing of the e-mail address: its session is bound to the owner's account. */
  readonly isBound: boolean;
  /** Ids of the owners who may see the link, and what a session of it shows. */
  readonly shownTo?: readonly string[];
  /** Mails the link, at most once in 15 minutes: the secret, sealed, and who invites. */
  readonly mailed?: { readonly sealed: string; readonly by: string } | null;
}

/** Returns true when a mail brings the sign-in link, which works once within 72 hours. Throws `too_many`, `not_found`, `in_use` or `forbidden`. */
export async function invitePerson(store: RecordStore, invitation: Invitation): Promise<boolean> {
  const { accountId, email, role, secret, isBound, shownTo = [], keepsOwner, keptSession, mailed } = invitation;
  const isOperator = role === 'operator';
  const values = {
    accountId,
    roster: isOperator ? keys.operators : keys.people(accountId),
    personId: personIdOf(email),
    email,
    field: isOperator ? 'operator' : `role:${accountId}`,
    role: isOperator ? '1' : role,
    maxPeople: isOperator ? recordLimits.operators : recordLimits.peopleOfAccount,
    linkHash: readPersonSecret(secret)!.secretHash,
    until_at: store.clock.now() + signInLinkMs.invitation,
    ...{ isBound, shownTo: shownTo.join(' '), keepsOwner, keptSession },
    mail: mailed && JSON.stringify({ kind: 'invitation', account: accountId, to: email, role, ...mailed }),
  };
  const note = { accountId, action: 'person.invite', target: email, change: { role } } as const;
  const [word, isMailed] = await withOthers(store, accountId, email, (others) =>
    runNoted(store, invitePersonScript, { ...values, others: others.ids }, note, others.keys),
  );
  if (word === 'no_owner') throw refuse('forbidden', 'You are no owner of this account any more');
  if (word === 'last_owner') throw refuse('in_use', lastOwner);
  if (word === 'not_found') throw refuse('not_found', 'There is no such account');
  if (word === 'too_many') throw refuse('too_many', 'There are as many people as there may be: remove one');
  return Number(isMailed) === 1;
}
