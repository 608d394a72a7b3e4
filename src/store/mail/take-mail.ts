import { keys } from '../keys.ts';
import { isEarly } from '../lua/age.ts';
import { outboxKeyNames } from '../lua/outbox.ts';
import { readJson } from '../lua/read-json.ts';
import { readDueNow } from '../redis/read-due.ts';
import { type RecordStore, run, script, text } from '../script.ts';

/** Longer than the wait for any attempt: after a longer wait the clock of Redis must have gone back. */
const maxWaitMs = 12 * 3_600_000;

/**
 * Claims a mail that is due: counts the attempt before it is sent, and leases it. A mail of more than a week, or one that is damaged, is given up;
 * without a lease nothing else happens.
 * Answers {'taken', its JSON}, {'given_up'}, {'early'} or {'gone'}.
 */
const takeMailScript = script('take-mail', 'always', outboxKeyNames, ['id', 'lease', 'max'])`${readJson}
local at = redis.call('ZSCORE', outboxDue, id)
local json = redis.call('HGET', outbox, id)
if not at then return { 'gone' } end
if ${isEarly('at', maxWaitMs)} then return { 'early' } end
local mail = read_json(json or '')
undos[1] = function()
  redis.pcall('ZADD', outboxDue, at, id)
  if json then redis.pcall('HSET', outbox, id, json) end
end
if type(mail.at) ~= 'number' or type(mail.attempts) ~= 'number' or now - mail.at > tonumber(max) then
  redis.call('ZREM', outboxDue, id)
  redis.call('HDEL', outbox, id)
  return { 'given_up' }
end
if lease == '0' then return { 'early' } end
mail.attempts = mail.attempts + 1
redis.call('ZADD', outboxDue, now + tonumber(lease), id)
local taken = cjson.encode(mail)
redis.call('HSET', outbox, id, taken)
return { 'taken', taken }
`;

/** A mail that nobody took for so long is removed, too. */
export const maxMailAgeMs = 7 * 86_400_000;

/** A mail that brings one person a sign-in link, whose secret is sealed; `by` is who invites. */
export type MailedLink = { readonly to: string; readonly sealed: string } & (
  | { readonly kind: 'invitation'; readonly role: string; readonly by: string }
  | { readonly kind: 'link' }
);

/** A mail about money of an account, `owner`, that was removed, or is not in the record; its slug is '' then. */
interface UnbookedMail {
  readonly kind: 'unbooked';
  readonly owner: string;
  readonly slug: string;
  readonly payment: string;
  readonly title: string;
  readonly price_cents: number;
  readonly currency: string;
}

/** A mail to the owners of an account, to one person or, `reversed` and `unbooked`, to the operators, as the script that left it wrote it. Times are milliseconds. */
export type Mail = {
  readonly id: string;
  readonly account: string;
  readonly at: number;
  readonly attempts: number;
  /** Addresses that need no further attempt, with blanks between. */
  readonly done?: string;
} & (
  | { readonly kind: 'invoice' | 'decline'; readonly purchase: string }
  | { readonly kind: 'reversed'; readonly purchase: string; readonly lapsed: number }
  | UnbookedMail
  | { readonly kind: 'alert'; readonly percent: number; readonly left: number }
  | { readonly kind: 'cap'; readonly cap_cents: number; readonly price_cents: number; readonly currency: string }
  | { readonly kind: 'webhooks'; readonly receiver: string; readonly failed: number; readonly status: string }
  | { readonly kind: 'card'; readonly card: string; readonly expires: number }
  | { readonly kind: 'key'; readonly alias: string; readonly expires: number }
  | MailedLink
);

/** Returns up to 100 mails that are to be sent now. */
export function dueMails(store: RecordStore): Promise<string[]> {
  return readDueNow(store, keys.outboxDue, maxWaitMs);
}

/** Claims one attempt of a mail; `null` when none is due. With a lease of 0 it claims none, and only gives up what is too old, as far as the clock of Redis is steady. */
export async function takeMail(store: RecordStore, id: string, leaseMs: number): Promise<Mail | 'given_up' | null> {
  const max = store.connection.clock.isSteady() ? maxMailAgeMs : Number.MAX_SAFE_INTEGER;
  const reply = await run(store, takeMailScript, { id, lease: leaseMs, max });
  if (reply[0] === 'given_up') return 'given_up';
  return reply[0] === 'taken' ? { ...(JSON.parse(text(reply[1])) as Mail), id } : null;
}
