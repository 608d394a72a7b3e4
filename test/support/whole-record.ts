import { workShift } from '../../src/store/jobs/work-ranges.ts';
import { keyStart, longId, shortId } from '../../src/store/keys.ts';
import { readScore } from '../../src/store/lua/job-index.ts';
import type { Connection } from '../../src/store/redis/connection.ts';
import { type KeptRecord, readWhole } from './kept-record.ts';
import { until } from './until.ts';

/** Notes a contradiction unless both parts of the record say the same. */
type Compare = (what: string, one: unknown, other: unknown) => void;

const maxShown = 300;

/**
 * Returns a sentence for each place where two parts of the record contradict each other: an index and what it names, a counter and what it
 * counts, a ledger and the jobs that it charges. Reads key by key, so a record that changes meanwhile may seem to have some.
 */
export async function contradictions(connection: Pick<Connection, 'send'>): Promise<string[]> {
  const record = await readWhole(connection);
  const found: string[] = [];
  const compare: Compare = (what, ...parts) => {
    const [one, other] = parts.map((part) => JSON.stringify(part) ?? 'nothing');
    if (one !== other) found.push(`${what}: ${one!.slice(0, maxShown)} and ${other!.slice(0, maxShown)}`);
  };
  for (const check of [checkOpenJobs, checkAccounts, checkEndedJobs, checkWebhooks, checkCharges])
    check(record, compare);
  for (const check of [checkOldest, checkPlans, checkKeys, checkPeople]) check(record, compare);
  return found;
}

/** Returns the contradictions that stay: a record that is read while its service works may seem to have some for a moment. */
export async function lastingContradictions(connection: Pick<Connection, 'send'>): Promise<string[]> {
  let found: string[] = [];
  const isWhole = async () => {
    found = await contradictions(connection);
    return found.length === 0;
  };
  await until(isWhole, 10, 'the record has no contradiction').catch((error) => {
    // A look that failed is no look that found nothing.
    if (found.length === 0) throw error;
  });
  return found;
}

function checkOpenJobs(record: KeptRecord, compare: Compare): void {
  const openWork = record.fields('open_work');
  const jobs = new Map(record.each('job'));
  compare('open jobs and open work', [...jobs.keys()].sort(), record.names('open_work'));
  const queues = record.each('queue');
  const waiting = Object.keys(openWork).filter((id) => Number(openWork[id]) >= 0 && Number(openWork[id]) < workShift);
  compare('open work that waits and queues', waiting.sort(), queues.flatMap(([, queue]) => Object.keys(queue)).sort());
  for (const [account, queue] of queues)
    for (const id of Object.keys(queue)) compare(`account of ${id} and of its queue`, jobs.get(id)?.account, account);
  for (const [id, { account, status, created_at }] of jobs) {
    const score = record.fields(`jobs:${account}`)[shortId(id)];
    compare(`${id} and its index`, { created_at: Number(created_at), status }, score && readScore(Number(score)));
    compare(`${id} is open and has ended`, true, !record.has(`done:${shortId(id)}`));
  }
}

function checkAccounts(record: KeptRecord, compare: Compare): void {
  const jobs = record.each('job');
  const openWork = record.fields('open_work');
  for (const [id, account] of record.each('account')) {
    const own = jobs.filter(([, job]) => job.account === id);
    const calls = record.names('calls').filter((member) => member.startsWith(`${id}/`));
    const running = own.filter(([job]) => Number(openWork[job]) < 0).length;
    const bound = own.filter(([, { preempted, recorded }]) => preempted || recorded).length;
    compare(`held credits of ${id} and its jobs and calls`, Number(account.held), own.length + calls.length);
    compare(`running jobs of ${id} and those with a slot`, Number(account.running), running);
    compare(`bound jobs of ${id}`, Number(account.bound ?? 0), bound);
    const mayStart = record.has(`queue:${id}`) && (!account.concurrency || running < Number(account.concurrency));
    compare(`${id} has its turn and may start a job`, id in record.fields('ready'), mayStart);
    compare(`${id} waits for its first job`, `@${id}` in record.fields('ready'), mayStart && running === 0);
    compare(`${id} has its slug`, record.fields('slugs')[account.slug ?? ''] === id, !account.removed_at);
    const isBuying = Boolean(record.fields(`topup:${id}`).purchase);
    compare(`${id} has a purchase`, id in record.fields('purchases'), isBuying);
  }
}

function checkEndedJobs(record: KeptRecord, compare: Compare): void {
  const ends = new Map(record.ends().map((end) => [end.id, end]));
  compare('ended jobs and their index', [...ends.keys()].sort(), record.names('ended'));
  for (const { id, account, status, created_at } of ends.values()) {
    const score = record.fields(`jobs:${account}`)[id];
    compare(`${id} and its index`, { created_at, status }, score && readScore(Number(score)));
  }
  for (const [, index] of record.each('jobs'))
    for (const id of Object.keys(index))
      compare(`${id} is there`, ends.has(id) || record.has(`job:${longId(id)}`), true);
  const batches = record.each('batch').map(([id]) => id);
  compare(
    'batches and their indexes',
    batches.sort(),
    [...record.names('open_batches'), ...record.names('ended_batches')].sort(),
  );
}

function checkWebhooks(record: KeptRecord, compare: Compare): void {
  const webhooks = record.each('webhook');
  const due = webhooks.filter(([, { state }]) => state === 'due').map(([id]) => id);
  const idOf = (member: string) => member.slice(member.lastIndexOf('/') + 1);
  compare('webhooks that are due and their index', due.sort(), record.names('webhooks').map(idOf).sort());
  const shortIds = webhooks.map(([id]) => shortId(id)).sort();
  compare(
    'webhooks and their list',
    shortIds,
    record
      .each('deliveries')
      .flatMap(([, list]) => Object.keys(list))
      .sort(),
  );
  const jobs = record.ends().flatMap(({ id, receiver }) => (receiver === '' ? [] : [id]));
  const batches = record.names('ended_batches').filter((id) => record.fields(`batch:${id}`).receiver);
  compare('webhooks and what has ended with a receiver', shortIds, [...jobs, ...batches.map(shortId)].sort());
}

function checkCharges(record: KeptRecord, compare: Compare): void {
  const ledgers = new Map(record.streams('ledger'));
  const completed = Map.groupBy(
    record.ends().filter(({ status }) => status === 'CompletedJob'),
    ({ account }) => account,
  );
  for (const [id, account] of record.each('account')) {
    if (record.has(`ledger_days:${id}`)) continue;
    const charges = (ledgers.get(id) ?? []).filter(({ kind }) => kind === 'c' || kind === 'o').map(({ job }) => job);
    compare(`charges of ${id} and its charged jobs and calls`, charges.length, new Set(charges).size);
    compare(`completed jobs and calls of ${id} and its charges`, Number(account.completed), charges.length);
    const free = (completed.get(id) ?? []).map((job) => job.id).filter((job) => !charges.includes(job));
    compare(`completed jobs of ${id} without a charge`, free, []);
  }
}

/** The indexes of streams name each one that has entries, with the time of the oldest. */
function checkOldest(record: KeptRecord, compare: Compare): void {
  const indexes = { ledger_streams: ['ledger'], line_streams: ['paid_lines', 'free_lines'], audit_streams: ['audit'] };
  for (const [index, kinds] of Object.entries(indexes)) {
    const streams = kinds.flatMap((kind) =>
      record.streams(kind).map(([id, held]) => [`${keyStart}${kind}:${id}`, held] as const),
    );
    const oldest = streams.flatMap(([name, [first]]) => (first === undefined ? [] : [`${name} ${first.at}`]));
    compare(
      index,
      oldest.sort(),
      Object.entries(record.fields(index))
        .map((entry) => entry.join(' '))
        .sort(),
    );
  }
}

function checkPlans(record: KeptRecord, compare: Compare): void {
  const withPlan = record.each('account').filter(([, { plan }]) => plan);
  const periods = withPlan.map(([id, { period_end }]) => `${id} ${period_end}`).sort();
  compare(
    'billing periods and their index',
    periods,
    Object.entries(record.fields('periods'))
      .map((entry) => entry.join(' '))
      .sort(),
  );
  const users = Map.groupBy(withPlan, ([, { plan }]) => plan!);
  const counted = Object.entries(record.fields('plan_users')).filter(([, count]) => count !== '0');
  const counts = [...users].map(([plan, all]) => `${plan} ${all.length}`).sort();
  compare('users of plans', counts, counted.map((entry) => entry.join(' ')).sort());
}

function checkKeys(record: KeptRecord, compare: Compare): void {
  const keyrings = record.each('keyring').flatMap(([id, ring]) => Object.values(ring).map((hash) => `${hash} ${id}`));
  compare(
    'keys and keyrings',
    record
      .each('key')
      .map(([hash, { account }]) => `${hash} ${account}`)
      .sort(),
    keyrings.sort(),
  );
  compare('mails and those that are due', record.names('outbox'), record.names('outbox_due'));
}

function checkPeople(record: KeptRecord, compare: Compare): void {
  const people = record.each('person');
  const isRole = ([name, value]: [string, string]) => value !== '' && (name === 'operator' || name.startsWith('role:'));
  const roles = people.flatMap(([id, fields]) =>
    Object.entries(fields)
      .filter(isRole)
      .map(([name]) => `${id} ${name}`),
  );
  const members = record
    .each('people')
    .flatMap(([account, list]) => Object.keys(list).map((id) => `${id} role:${account}`));
  const operators = record.names('operators').map((id) => `${id} operator`);
  compare('roles of people and rosters', roles.sort(), [...members, ...operators].sort());
  const passkeys = record
    .each('passkeys')
    .flatMap(([id, own]) => Object.keys(own).map((passkey) => `${passkey} ${id}`));
  compare(
    'passkeys and their owners',
    passkeys.sort(),
    Object.entries(record.fields('passkey_owners'))
      .map((entry) => entry.join(' '))
      .sort(),
  );
  const opened = ['sessions', 'sign_in_links', 'passkeys'].flatMap((kind) => record.each(kind).map(([id]) => id));
  const known = new Set(people.map(([id]) => id));
  compare(
    'ways in without a person',
    opened.filter((id) => !known.has(id)),
    [],
  );
}
