import type { Job, JobStatus } from '../model/job.ts';
import type { Outcome } from '../model/outcome.ts';
import { channels, keys } from './keys.ts';
import { bookKeys, rolling } from './money/roll-period.ts';
import { type RecordStore, run, text } from './script.ts';
import { cancel as cancelScript } from './scripts/cancel.ts';
import { note as noteScript } from './scripts/note.ts';
import { requeue as requeueScript } from './scripts/requeue.ts';
import { retry as retryScript } from './scripts/retry.ts';
import { settle as settleScript } from './scripts/settle.ts';
import { start as startScript } from './scripts/start.ts';
import { storing as storingScript } from './scripts/storing.ts';
import { take as takeScript } from './scripts/take.ts';
import { tell as tellScript } from './scripts/tell.ts';

const missesMost = 100;

/** Gives what takes jobs in fair order, each when it is asked for, while fewer than `slots` are active and one may start now. */
export function makeTake(store: RecordStore, holder: string, slots: number): () => AsyncGenerator<string, void> {
  // Whose turn it is, as far as is known: Redis says so when it is another account's.
  let account = '';
  return async function* () {
    for (let misses = 0; misses < missesMost; ) {
      const [word, ...rest] = await run(
        store,
        takeScript,
        { ...fairKeys(account), lead: keys.lead, active: keys.active },
        { holder, accountId: account, slots },
      );
      if (word !== 'taken' && word !== 'again') return;
      const id = word === 'taken' ? text(rest.shift()) : null;
      const next = text(rest[0]);
      account = next || account;
      misses = id === null ? misses + 1 : 0;
      if (id !== null) yield id;
      if (next === '') return;
    }
  };
}

/** Records that an attempt begins; true when its worker may be started. */
export async function startAttempt(
  store: RecordStore,
  holder: string,
  job: Pick<Job, 'id'>,
  attempt: number,
  deadline: number,
): Promise<boolean> {
  const [word] = await run(
    store,
    startScript,
    { lead: keys.lead, job: keys.job(job.id), active: keys.active, attempts: keys.attempts(job.id) },
    { holder, jobId: job.id, attempt, deadline, jobChannel: channels.job(job.id) },
  );
  return word === 'started' || word === 'already_started';
}

/** What a worker tells of its attempt. */
export interface Progress {
  readonly progress: number;
  /** Whether it runs; while it only waits, its stage says for what. */
  readonly running?: boolean;
  readonly stage: string;
  readonly speed_bytes: number | null;
  readonly eta_seconds: number | null;
}

/** Notes progress of the running attempt; false when it is over or another one runs. */
export async function noteProgress(store: RecordStore, id: string, attempt: number, told: Progress): Promise<boolean> {
  const [word] = await run(
    store,
    noteScript,
    { job: keys.job(id) },
    {
      jobId: id,
      attempt,
      running: told.running === false ? '' : '1',
      progress: told.progress,
      stage: told.stage,
      speed: told.speed_bytes ?? '',
      eta: told.eta_seconds ?? '',
      jobChannel: channels.job(id),
    },
  );
  return word === 'noted';
}

/** Keeps what the worker of the open attempt says of its end; false when nobody waits for that any more. */
export async function tellVerdict(store: RecordStore, id: string, attempt: number, verdict: Outcome): Promise<boolean> {
  const [word] = await run(
    store,
    tellScript,
    { job: keys.job(id) },
    { jobId: id, attempt, verdict: JSON.stringify(verdict), workChannel: channels.work },
  );
  return word === 'told';
}

/** Notes that the worker has ended well and its object is waited for; answers since when, `null` when it is over. */
export async function noteStoring(
  store: RecordStore,
  holder: string,
  job: Pick<Job, 'id' | 'attempt'>,
  done: { metadata: unknown; delivered: unknown },
): Promise<number | null> {
  const reply = await run(
    store,
    storingScript,
    { lead: keys.lead, job: keys.job(job.id) },
    {
      holder,
      attempt: job.attempt,
      metadata: JSON.stringify(done.metadata),
      delivered: JSON.stringify(done.delivered),
    },
  );
  return reply[0] === 'storing' ? Number(reply[1]) : null;
}

/** Ends an attempt that another one follows. */
export async function retryJob(
  store: RecordStore,
  holder: string,
  job: Pick<Job, 'id' | 'account' | 'attempt'>,
  why: { counts: 'failure' | 'interruption'; code: string; notBefore: number },
): Promise<boolean> {
  const [word] = await run(
    store,
    retryScript,
    {
      ...fairKeys(job.account),
      lead: keys.lead,
      job: keys.job(job.id),
      active: keys.active,
      delayed: keys.delayed,
      attempts: keys.attempts(job.id),
    },
    {
      holder,
      accountId: job.account,
      jobId: job.id,
      attempt: job.attempt,
      ...why,
      jobChannel: channels.job(job.id),
      workChannel: channels.work,
    },
  );
  return word === 'waiting';
}

/** Jobs whose wait before another attempt is over go back to the head of their queues; answers how many. */
export async function requeueDelayed(store: RecordStore): Promise<number> {
  const due = (await store.connection.read([
    'ZRANGEBYSCORE',
    keys.delayed,
    '-inf',
    String(store.clock.now()),
    'LIMIT',
    '0',
    '100',
  ])) as string[];
  let moved = 0;
  for (const id of due) {
    const account = await store.connection.read(['HGET', keys.job(id), 'account']);
    const [word] = await run(
      store,
      requeueScript,
      { ...fairKeys(String(account)), job: keys.job(id), delayed: keys.delayed },
      { accountId: String(account), jobId: id },
    );
    if (word === 'queued') moved++;
  }
  return moved;
}

/** How a job ends, as the record keeps it. */
export interface Ending {
  readonly status: JobStatus;
  readonly code: string | null;
  readonly text: string | null;
  readonly log: number;
  readonly metadata: unknown;
  readonly delivered: unknown;
}

export type Settled =
  | { readonly word: 'settled'; readonly balance: string }
  | { readonly word: 'already_ended' | 'stale' | 'not_found' | 'not_leading' };

/** Ends a job once, with all that belongs to its end; a repetition changes nothing. */
export async function settleJob(
  store: RecordStore,
  holder: string,
  job: Pick<Job, 'id' | 'account' | 'key' | 'endpoint' | 'attempt'>,
  end: Ending,
): Promise<Settled> {
  const reply = await rolling(store, job.account, () =>
    run(
      store,
      settleScript,
      { ...finishKeys(job), lead: keys.lead },
      {
        ...finishArgs(job),
        holder,
        attempt: job.attempt,
        status: end.status,
        code: end.code ?? '',
        sentence: end.text ?? '',
        log: end.log,
        metadata: end.metadata ? JSON.stringify(end.metadata) : '',
        delivered: end.delivered ? JSON.stringify(end.delivered) : '',
      },
    ),
  );
  const word = text(reply[0]);
  if (word === 'settled') return { word, balance: text(reply[1]) };
  return { word: word as 'already_ended' | 'stale' | 'not_found' | 'not_leading' };
}

/** Ends a job as cancelled at once; false when it had ended before. */
export async function cancelJob(
  store: RecordStore,
  job: Pick<Job, 'id' | 'account' | 'key' | 'endpoint'>,
  sentence: string,
): Promise<boolean> {
  const [word] = await rolling(store, job.account, () =>
    run(store, cancelScript, finishKeys(job), { ...finishArgs(job), sentence }),
  );
  return word === 'cancelled';
}

function fairKeys(account: string) {
  return { account: keys.account(account), queue: keys.queue(account), ready: keys.ready, turn: keys.turn };
}

function finishKeys(job: Pick<Job, 'id' | 'account' | 'key' | 'endpoint'>) {
  return {
    ...bookKeys(job.account),
    ...fairKeys(job.account),
    job: keys.job(job.id),
    open: keys.open(job.account),
    active: keys.active,
    delayed: keys.delayed,
    ended: keys.ended,
    files: keys.files,
    attempts: keys.attempts(job.id),
    paidLines: keys.paidLines(job.key),
    webhooks: keys.webhooks,
    webhook: keys.webhook(job.id),
    deliveries: keys.deliveries(job.account),
    stats: keys.stats(job.endpoint),
  };
}

function finishArgs(job: Pick<Job, 'id' | 'account' | 'endpoint'>) {
  return {
    accountId: job.account,
    jobId: job.id,
    mayUpload: job.endpoint === 'metadata' ? '' : '1',
    workChannel: channels.work,
    webhooksChannel: channels.webhooks,
    jobChannel: channels.job(job.id),
  };
}
