import { uuidForm } from '../model/job.ts';

/**
 * Every key of the record. All carry the tag `{trawl}`, so that each script touches one slot and a single Redis,
 * Sentinel and Cluster run the same code. No script builds a key's name.
 */
const tag = '{trawl}';
const one = (name: string) => `${tag}:${name}`;

/** Ids that keys are made of, by the names that callers of scripts give them. `hash`: SHA-256 of the text of an API key. */
type IdName = 'accountId' | 'jobId' | 'batchId' | 'keyId' | 'hash' | 'endpoint' | 'personId' | 'testId';

function of<const N extends IdName>(idName: N, name: string) {
  return Object.assign((id: string): string => `${tag}:${name}:${id}`, { idName });
}

/** Makes the keys of what stays for weeks: as short as they can be. */
function ofShort<const N extends IdName>(idName: N, name: string) {
  return Object.assign((id: string): string => `${tag}:${name}:${shortId(id)}`, { idName });
}

export const keys = {
  /** Number of the record's layout. */
  schema: one('schema'),
  /** String: the least release that reads this layout. */
  leastRelease: one('least_release'),
  /** Hash: `release layout` → when a process of it was seen first and last. */
  releases: one('releases'),
  /** String: when the drain began, in milliseconds; absent while jobs and calls are admitted. */
  drain: one('drain'),
  /** Term of the controller that leads; expires by itself. */
  lead: one('lead'),
  /** Hash: `count` of terms; `off` is 1 when the clock of the last leader was off. */
  terms: one('terms'),
  /** Hash: when a copy of the record was begun first, and when the last complete one was taken. */
  backup: one('backup'),
  /** String: there while the record is being restored; nothing else opens it meanwhile. */
  restoring: one('restoring'),
  /** String: token of the restore that may replace the record; expires after 60 s unless that restore renews it. */
  restoreLease: one('restore_lease'),
  /** Hash: the backup that the record was restored from last: when it was taken, and when it was restored. */
  restored: one('restored'),

  /** Hash: plan name → JSON of the plan. */
  plans: one('plans'),
  /** Hash: plan name → number of accounts that have it. */
  planUsers: one('plan_users'),
  /** Hash: slug → account id. */
  slugs: one('slugs'),
  /** Hash: slug → ids of the accounts that were removed under it, the last one first, with spaces between; their ledgers stay. */
  removed: one('removed'),
  /** Set: ids of removed accounts that may still have keys. */
  leaving: one('leaving'),
  /** Sorted set: account id → end of its billing period, for accounts with a plan. */
  periods: one('periods'),

  /** Hash: the account, its balances and counters; `topup` is 1 while an automatic top-up is enabled. */
  account: of('accountId', 'account'),
  /** Hash: pack id → JSON of what never changes; `used:<pack id>` → how much is used. */
  packs: of('accountId', 'packs'),
  /** Sorted set: packs that are not exhausted, by purchase. */
  packQueue: of('accountId', 'pack_queue'),
  /** Hash: id that the operator gave to a grant of credits → its amount. */
  grants: of('accountId', 'grants'),
  /** Stream: money that moved. Append-only. */
  ledger: of('accountId', 'ledger'),
  /** String: JSON of how far the check of all ledgers has come, and of the last complete one. */
  ledgerWalk: one('ledger_walk'),
  /** Sorted set: names of the ledgers that have entries here, by the time of their oldest. */
  ledgerStreams: one('ledger_streams'),
  /** List: JSON of each part of a ledger that was moved to the object store, oldest first. */
  ledgerDays: of('accountId', 'ledger_days'),
  /** Hash: the automatic top-up setting and the purchase under way. */
  topup: of('accountId', 'topup'),
  /** Sorted set: accounts with a stored card by the time at which its end is looked up. */
  expiringCards: one('expiring_cards'),
  /** Sorted set: account id → when its purchase is to be tried. */
  purchases: one('purchases'),
  /** Sorted set: account id → when its balance is looked at again, because its top-up could not buy before. */
  topupLooks: one('topup_looks'),
  /** Sorted set: id of an event of the payment provider → when it was carried out, for 30 days. */
  paymentEvents: one('payment_events'),
  /** Hash: purchase id → JSON of a purchase that ended (`money/read-purchases.ts`). */
  bought: of('accountId', 'bought'),
  /** List: `account/purchase` of every purchase that was paid; the number of an invoice is its place here, so none is left out. Empty: left out by a restore. */
  invoices: one('invoices'),
  /** Hash: id of the provider's payment → `account/purchase`. */
  payments: one('payments'),
  /** Hash: mail id → JSON of a mail that is not sent yet. */
  outbox: one('outbox'),
  /** Sorted set: these mails by the time of their next attempt. */
  outboxDue: one('outbox_due'),
  /** String of counters: buckets of the plan's rate windows; their heads are in the account's hash. */
  rate: of('accountId', 'rate'),

  /** Hash: name → JSON of an offer in the operator's catalogue. */
  offers: one('offers'),

  /** Hash: alias → hash of the key. */
  keyring: of('accountId', 'keyring'),
  /** Sorted set: `account/hash` of API keys by when their owners are told that they expire. */
  expiringKeys: one('expiring_keys'),
  /** Hash: an API key, under the SHA-256 of its text. */
  key: of('hash', 'key'),
  /** String of counters: buckets of the rolling quotas of a key, under its hash; their heads are in the key's hash. */
  quota: of('hash', 'quota'),
  /** Stream: request-log lines of a key that carry money or end a job. */
  paidLines: of('keyId', 'paid_lines'),
  /** Stream: the other request-log lines of a key, capped. */
  freeLines: of('keyId', 'free_lines'),
  /** Sorted set: names of the streams of both kinds that have lines, by the time of their oldest. */
  lineStreams: one('line_streams'),
  /** Lists: JSON of each part of these two that was moved to the object store, oldest first. */
  paidDays: of('keyId', 'paid_days'),
  freeDays: of('keyId', 'free_days'),
  /** Sorted set: `kind/id/part` of moved request-log lines by the time of the newest. */
  days: one('days'),

  /** Hash: a job that has not ended. */
  job: of('jobId', 'job'),
  /** String: a job that has ended (`jobs/ended-job.ts`). */
  endedJob: ofShort('jobId', 'done'),
  /** Sorted set: short ids of an account's jobs: those that have ended, then the open ones, by creation and status (`lua/job-index.ts`). */
  jobs: of('accountId', 'jobs'),
  /** Sorted set: jobs of an account that wait for their turn. */
  queue: of('accountId', 'queue'),
  /** Sorted set: open jobs of all accounts: those in a queue, with a slot, and delayed, each by its time (`jobs/work-ranges.ts`). */
  openWork: one('open_work'),
  /** Sorted set: accounts that may start a job now, by their turn and by how long they wait for a first one (`lua/fair-share.ts`). */
  ready: one('ready'),
  /** String: the turn that was taken last. */
  turn: one('turn'),
  /**
   * Sorted set: short ids of ended jobs by their end; below zero for those that may have files in the object store
   * (`jobs/kept-files.ts`).
   */
  ended: one('ended'),
  /** Sorted set: short ids of jobs whose objects the record does not know, by the time when they were found. */
  strays: one('strays'),
  /** Hash: a batch; `jobs` has the short ids of its jobs, 22 characters each, in the order of its items. */
  batch: of('batchId', 'batch'),
  /** Sorted set: batches that may have open jobs, by their creation. */
  openBatches: one('open_batches'),
  /** Sorted set: batches whose jobs have all ended, by the time when that was seen. */
  endedBatches: one('ended_batches'),
  /** Hash: what was answered to an Idempotency-Key. */
  repeat: (account: string, hash: string): string => `${tag}:repeat:${account}:${hash}`,
  /** Sorted set: `account/hold` of synchronous calls that still run, by the deadline of their hold. */
  calls: one('calls'),

  /** Sorted set: `account@host/path/job` of webhooks by the time of their next attempt. */
  webhooks: one('webhooks'),
  /** Hash: the delivery of the webhook of a job or a batch. */
  webhook: of('jobId', 'webhook'),
  /** Sorted set: short ids of an account's jobs and batches that have a webhook, by its creation. */
  deliveries: of('accountId', 'deliveries'),

  /** String: JSON of a test of a receiver that a person asked for, under its account and id; expires by itself. */
  receiverTest: of('testId', 'receiver_test'),
  /** String: JSON of how far it has come, from the controller that took it; expires by itself. */
  receiverTestResult: of('testId', 'receiver_test_result'),
  /** String: how many tests an account has asked for since the first of the last minute; expires by itself. */
  receiverTestsAsked: of('accountId', 'receiver_tests_asked'),

  /** Hash: receiver of webhooks → how many in a row were given up, when its owners were told, and when the last failed; expires by itself. */
  failingHooks: of('accountId', 'failing_hooks'),

  /** Hash: address → level of its next block, time of its last failed authentication, and times of those that count. */
  failures: one('failures'),
  /** Sorted set: these addresses by the time of their last failure. */
  failing: one('failing'),
  /** Sorted set: blocked addresses by the end of their block. */
  blocks: one('blocks'),
  /** String: the last private address that forwarded requests of others without being trusted; expires by itself. */
  strayProxy: one('stray_proxy'),
  /** Stream: changes by people and operators, of an account or, under `all`, of everything. Append-only. */
  audit: of('accountId', 'audit'),
  /** Sorted set: names of these streams that have entries, by the time of their oldest. */
  auditStreams: one('audit_streams'),
  /** List: JSON of each part that was moved to the object store, oldest first. */
  auditDays: of('accountId', 'audit_days'),
  /** Sorted set: `audit/id/part` of moved entries by the time of the newest. */
  auditParts: one('audit_parts'),
  /** Hash: a person of the dashboard; `role:<account id>` → their role there, `identity:<issuer>` → their name at an earlier issuer. */
  person: of('personId', 'person'),
  /** Hash: person id → e-mail address of the people of an account. */
  people: of('accountId', 'people'),
  /** Hash: the same of the operators. */
  operators: one('operators'),
  /** Sorted set: ids of people to whom an account has mailed an invitation, by its time; expires by itself. */
  mailedInvitations: of('accountId', 'mailed_invitations'),
  /** Hash: hash of the secret of a sign-in link → JSON of the link. */
  signInLinks: of('personId', 'sign_in_links'),
  /** Hash: hash of the secret of a session → JSON of the session. */
  sessions: of('personId', 'sessions'),
  /** Hash: id of a passkey → JSON of it (`people/passkeys.ts`). */
  passkeys: of('personId', 'passkeys'),
  /** Hash: id of a passkey → id of its person. */
  passkeyOwners: one('passkey_owners'),
  /** String: failed sign-ins with a password and the end of their window; expires by itself. */
  signInFailures: of('personId', 'sign_in_failures'),

  /** Hash: minute of the hour → counted answers of an endpoint. */
  stats: of('endpoint', 'stats'),
} as const;

/** Channels that carry hints: a lost message costs time, never a job. */
export const channels = {
  /** Something is to do for the controller: the id of a job that must be looked at, or nothing when one may be taken. */
  work: one('work'),
  webhooks: one('webhooks_due'),
  /** A receiver is to be tested: account and id of the test. */
  receiverTests: one('receiver_tests'),
  job: of('jobId', 'changed'),
  blocks: one('blocks_changed'),
} as const;

/** Begins every key of the record. */
export const keyStart = `${tag}:`;

const shortened = /^[A-Za-z0-9_-]{22}$/;

/** Returns the id of a job in 22 characters instead of 36: every index keeps it for as long as the job. */
export function shortId(id: string): string {
  return uuidForm.test(id) ? Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url') : id;
}

export function longId(short: string): string {
  if (!shortened.test(short)) return short;
  const hex = Buffer.from(short, 'base64url').toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
