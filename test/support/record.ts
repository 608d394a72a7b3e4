import { hash, randomBytes, randomUUID } from 'node:crypto';
import type { Quotas } from '../../src/model/account.ts';
import { makeAccountId, makeKey, readKey } from '../../src/model/api-key.ts';
import type { Job } from '../../src/model/job.ts';
import { type JobStatus, jobStatuses } from '../../src/model/job.ts';
import { sharesOf } from '../../src/model/preemption.ts';
import { type Admission, admitCall, type CreditCall, type NewJob } from '../../src/store/access/admit-call.ts';
import type { Caller } from '../../src/store/access/authorize.ts';
import { createAccount } from '../../src/store/accounts/create-account.ts';
import { createKey } from '../../src/store/accounts/create-key.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import type { AccountChange } from '../../src/store/accounts/set-account.ts';
import { setPlan } from '../../src/store/accounts/set-plan.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import type { JobEnding } from '../../src/store/jobs/settle-job.ts';
import { startAttempt } from '../../src/store/jobs/start-attempt.ts';
import { makeTake } from '../../src/store/jobs/take-jobs.ts';
import { keys } from '../../src/store/keys.ts';
import { scoresAt, startOf } from '../../src/store/lua/job-index.ts';
import { addPack } from '../../src/store/money/add-pack.ts';
import { grantCredits } from '../../src/store/money/grant-credits.ts';
import type { Connection } from '../../src/store/redis/connection.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { mutateLua } from '../mutation/lua-mutants.ts';

const dayMs = 86_400_000;

/** A store whose clock a test may move. */
export interface TestStore extends RecordStore {
  advance(milliseconds: number): void;
  /** Moves the clock to the next noon in UTC, so that no day ends while a test counts by days. */
  advanceToNoon(): void;
  /**
   * Stops the clock until the function that it gives is called; then it shows the time that has passed. A test may still move it.
   * A script sees a stopped clock later by the time that its call takes.
   */
  freezeClock(): () => void;
}

/** The parts of such a store that belong to its clock. */
export function makeTestClock(): Pick<TestStore, 'clock' | 'advance' | 'advanceToNoon' | 'freezeClock'> {
  let moved = 0;
  let stoppedAt: number | null = null;
  const offset = () => (stoppedAt === null ? moved : stoppedAt - Date.now());
  const now = () => Date.now() + offset();
  const advance = (milliseconds: number) => {
    moved += milliseconds;
    if (stoppedAt !== null) stoppedAt += milliseconds;
  };
  return {
    clock: { now, offset },
    advance,
    advanceToNoon: () => advance(dayMs - ((now() + dayMs / 2) % dayMs)),
    freezeClock() {
      stoppedAt = now();
      return () => {
        stoppedAt = null;
      };
    },
  };
}

/** A store with a clock of its own on a connection. */
export function storeOf(connection: Connection): TestStore {
  return { connection: mutateLua(connection), ...makeTestClock() };
}

export interface AccountOptions extends AccountChange {
  /** Random unless given; a fixed id makes the order of equal accounts repeatable. */
  readonly accountId?: string;
  readonly quota?: number;
  readonly perSecond?: number;
  readonly perMinute?: number;
  readonly paid?: boolean;
  readonly credits?: number;
  readonly packs?: readonly number[];
  readonly quotas?: Partial<Quotas>;
}

/** A further key of an account, as its text. */
export async function anotherKey(store: TestStore, account: string, quotas = {}): Promise<string> {
  const key = makeKey(account, randomBytes(32));
  const read = readKey(key);
  if (!read) throw new Error('a fresh key cannot be read');
  await createKey(store, account, { id: read.keyId, alias: `k${read.keyId}`, hash: read.hash, quotas });
  return key;
}

/** A fresh account with one key; a plan of its own when a quota or a rate is wanted. */
export async function anAccount(
  store: RecordStore,
  wanted: AccountOptions = {},
): Promise<Caller & { slug: string; plan: string; keyId: string }> {
  const { quota, perSecond, perMinute, paid, credits, packs, quotas, accountId, ...change } = wanted;
  const slug = `a${randomBytes(5).toString('hex')}`;
  const plan = `p${slug}`;
  const planned = quota !== undefined || perSecond !== undefined || perMinute !== undefined;
  if (planned) await aPlan(store, plan, wanted);
  const account = accountId ?? makeAccountId(randomBytes(16));
  await createAccount(store, account, slug, { name: slug, ...(planned ? { plan } : {}), ...change });
  if (credits) await grantCredits(store, account, credits);
  for (const [n, total] of (packs ?? []).entries()) await aPack(store, account, total, n);
  return { ...(await aKey(store, account, quotas)), slug, plan };
}

/** Removes an account as far as a process comes that dies after the first step. */
export async function dieWhileRemoving(
  store: RecordStore,
  { accountId, slug }: { accountId: string; slug: string },
): Promise<void> {
  const connection: Connection = {
    ...store.connection,
    read: async (command) => {
      if (command[0] === 'HGETALL') throw new Error('it has died');
      return store.connection.read(command);
    },
    send: async () => {
      throw new Error('it has died');
    },
  };
  const died = await removeAccount({ ...store, connection }, accountId, slug).catch((error: Error) => error.message);
  if (died !== 'it has died') throw new Error('the account was removed whole');
}

export async function aPlan(store: RecordStore, name: string, wanted: AccountOptions): Promise<void> {
  await setPlan(store, {
    name,
    quota: wanted.quota ?? 0,
    per_second: wanted.perSecond ?? null,
    per_minute: wanted.perMinute ?? null,
    paid: wanted.paid ?? true,
  });
}

export async function aPack(store: RecordStore, account: string, total: number, day = 0): Promise<string> {
  const id = randomBytes(6).toString('hex');
  await addPack(store, account, { id, title: `Pack ${day}`, total, purchased_at: Date.UTC(2026, 0, 1 + day) });
  return id;
}

export async function aKey(
  store: RecordStore,
  account: string,
  quotas: Partial<Quotas> = {},
): Promise<Caller & { keyId: string }> {
  const key = readKey(makeKey(account, randomBytes(32)));
  if (!key) throw new Error('a fresh key cannot be read');
  await createKey(store, account, { id: key.keyId, alias: key.keyId.slice(0, 8), hash: key.hash, quotas });
  return { ...key, keyId: key.keyId };
}

export const aDownload: NewJob = {
  endpoint: 'video',
  method: 'GET',
  path: '/v1/video/download',
  args: { query: 'https://example.com/film', is_async: true },
  ip: '192.0.2.1',
  webhook: null,
};

/** Asks for a download, or for what is given. */
export function ask(
  store: RecordStore,
  caller: Caller,
  call: Partial<CreditCall> = {},
  admit = admitCall,
): Promise<Admission> {
  return admit(store, caller, {
    id: randomUUID(),
    valid: true,
    isOpen: true,
    repeat: null,
    work: aDownload,
    ...call,
  });
}

/** The id of a call that must be admitted. */
export async function admitted(
  store: RecordStore,
  caller: Caller,
  call: Partial<CreditCall> = {},
  admit = admitCall,
): Promise<string> {
  const answer = await ask(store, caller, call, admit);
  if (!('admitted' in answer)) throw new Error(`not admitted: ${JSON.stringify(answer)}`);
  return answer.admitted;
}

export async function theJob(store: RecordStore, id: string): Promise<Job> {
  const job = await readJob(store, id);
  if (!job) throw new Error(`there is no job ${id}`);
  return job;
}

/** Returns the score of a job among the jobs of its account. */
export function scoreOfJob(created_at: number, status: JobStatus): number {
  return scoresAt(startOf(status), created_at)[0] + jobStatuses.indexOf(status);
}

/** The term in which a test leads. */
export const holder = 'the-test';

/** Gives a term the lead, whoever has it. */
export async function lead(store: RecordStore, term: string): Promise<true> {
  // Also in a Redis without memory.
  const lua = "#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], ARGV[2], 'PX', 15000)";
  await store.connection.eval(lua, hash('sha1', lua), [keys.lead], [term]);
  return true;
}

/** Gives what takes the next job of all, whoever waits, and answers `null` when none may start. */
export function takeOne(store: RecordStore, who: string, slots: number): () => Promise<string | null> {
  const take = makeTake(store, who, sharesOf(slots, 0, 30));
  return async () => {
    for await (const id of take()) return id;
    return null;
  };
}

export function takeJob(store: RecordStore, who: string, slots: number): Promise<string | null> {
  return takeOne(store, who, slots)();
}

/** Takes the next job of all, whoever waits, and begins its first attempt. */
export async function startNext(store: RecordStore, slots = 1_000_000): Promise<Job | null> {
  await lead(store, holder);
  const id = await takeJob(store, holder, slots);
  if (id === null) return null;
  const job = await theJob(store, id);
  await startAttempt(store, holder, job, job.attempt + 1);
  return theJob(store, id);
}

/** A job of this account alone that runs its first attempt: others' waiting jobs are started on the way. */
export async function aRunningJob(store: RecordStore, caller: Caller, call: Partial<CreditCall> = {}): Promise<Job> {
  const id = await admitted(store, caller, call);
  while ((await theJob(store, id)).attempt === 0) await startNext(store);
  return theJob(store, id);
}

export const completed: JobEnding = {
  status: 'CompletedJob',
  code: null,
  text: null,
  log: 201,
  metadata: { title: 'A film' },
  delivered: { key: 'results/a/1/media.mp4', bytes: 5, sha256: 'a'.repeat(64), content_type: 'video/mp4' },
};

export const failed: JobEnding = {
  status: 'Error',
  code: 'private',
  text: 'This content is private',
  log: 400,
  metadata: null,
  delivered: null,
};
