import { personIdOf, readPersonSecret, signInLinkMs } from '../../model/person.ts';
import { outboxKeyNames, outboxLua } from '../lua/outbox.ts';
import { type RecordStore, run, script } from '../script.ts';
import { keepNewest } from './keep-newest.ts';

/** Least time between two such mails to a person, so that a stranger cannot fill a mailbox. */
const gapMs = 15 * 60_000;

/**
 * Leaves a mail with a sign-in link to a person who asked for one; it proves that the mailbox is theirs, so it opens all that is theirs.
 * Answers {'mailed'}, {'unknown'} or {'recent'}.
 */
const mailSignInLinkScript = script(
  'mail-sign-in-link',
  'needs memory',
  ['person', 'signInLinks', ...outboxKeyNames],
  ['personId', 'accountId', 'linkHash', 'until_at', 'gap', 'mail'],
)`${keepNewest}${outboxLua}
if redis.call('EXISTS', person) == 0 then return { 'unknown' } end
local last = redis.call('HGET', person, 'link_mailed_at')
-- A time in the future is of one before the clock went back.
local since = last and now - tonumber(last) or -1
if since >= 0 and since < tonumber(gap) then return { 'recent' } end
undos[1] = function() put_back(person, { 'link_mailed_at' }, { last }) end
redis.call('HSET', person, 'link_mailed_at', string.format('%d', now))
keep_newest(signInLinks, linkHash, { account = accountId, bound = false, ['until'] = tonumber(until_at) })
put_mail('link-' .. personId, cjson.decode(mail))
return { 'mailed' }
`;

interface WantedLink {
  readonly email: string;
  /** Account that its session shows first; '' for an operator. */
  readonly accountId: string;
  readonly secret: string;
  /** The secret, sealed: the record keeps none in clear. */
  readonly sealed: string;
}

/** Mails a sign-in link to a person, at most one in 15 minutes; an unknown address gets none. */
export async function mailSignInLink(
  store: RecordStore,
  { email, accountId, secret, sealed }: WantedLink,
): Promise<void> {
  await run(store, mailSignInLinkScript, {
    personId: personIdOf(email),
    accountId,
    linkHash: readPersonSecret(secret)!.secretHash,
    until_at: store.clock.now() + signInLinkMs.link,
    gap: gapMs,
    mail: JSON.stringify({ kind: 'link', account: accountId, to: email, sealed }),
  });
}
