import { recordingStage } from '../../src/model/attempt-stages.ts';
import type { Job } from '../../src/model/job.ts';
import type { CreditCall } from '../../src/store/access/admit-call.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { mendJob } from '../../src/store/jobs/mend-job.ts';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { offerTurns } from '../../src/store/jobs/offer-turns.ts';
import { preemptJob } from '../../src/store/jobs/preempt-job.ts';
import { removeFile } from '../../src/store/jobs/remove-file.ts';
import { removeJob } from '../../src/store/jobs/remove-job.ts';
import { requeueDelayed } from '../../src/store/jobs/requeue-delayed.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { startAttempt } from '../../src/store/jobs/start-attempt.ts';
import { keys } from '../../src/store/keys.ts';
import { dueWebhooks } from '../../src/store/webhooks/due-webhooks.ts';
import { endWebhook } from '../../src/store/webhooks/end-webhook.ts';
import { askForTest } from '../../src/store/webhooks/receiver-tests.ts';
import { replayWebhook } from '../../src/store/webhooks/replay-webhook.ts';
import { returnWebhook } from '../../src/store/webhooks/return-webhook.ts';
import { takeWebhook } from '../../src/store/webhooks/take-webhook.ts';
import {
  type AccountOptions,
  aDownload,
  admitted,
  anAccount,
  aRunningJob,
  completed,
  holder,
  startNext,
  type TestStore,
  takeJob,
  theJob,
} from './record.ts';

export type Step = (store: TestStore) => Promise<unknown>;

/** Brings a record to where a script has something to do, and returns the step that runs it and whose money it is. */
export type Scenario = (store: TestStore) => Promise<{ step: Step; account?: string }>;

export type Account = Awaited<ReturnType<typeof anAccount>>;

export const busy: AccountOptions = { quota: 5, perSecond: 50, perMinute: 500, credits: 5 };
export const withWebhook: Partial<CreditCall> = {
  work: { ...aDownload, webhook: { url: 'https://example.com/hook', receiver: 'a@example.com/', authorization: '' } },
};
/** A job of an account that also has another one waiting. */
export async function running(store: TestStore, wanted: AccountOptions, call: Partial<CreditCall> = {}) {
  const caller = await anAccount(store, wanted);
  const job = await aRunningJob(store, caller, call);
  return { caller, job, account: caller.accountId };
}

function webhookStep(step: (store: TestStore, job: Job) => Promise<Step>): Scenario {
  return async (store) => {
    const { job, account } = await running(store, busy, withWebhook);
    await settleJob(store, holder, job, completed);
    return { account, step: await step(store, job) };
  };
}

/** Hash of the failing receivers of the account that the receiver of `withWebhook` names. */
const failing = keys.failingHooks('a');

/** Has a webhook refused beside receivers that failed before; throws unless it leaves a field in a hash. */
async function refusing(
  store: TestStore,
  job: Job,
  before: (receiver: string) => readonly string[],
  hash: string,
  fieldOf: (receiver: string) => string,
): Promise<Step> {
  const due = await dueOf(store, job);
  const attempt = (await takeWebhook(store, due, 1000))?.attempt ?? 0;
  await store.connection.send(['HSET', failing, ...before(due.receiver)]);
  return async (s) => {
    const ended = await endWebhook(s, due, attempt, { verdict: 'refused', status: 500 }, 5000);
    const isLeft = await s.connection.send(['HEXISTS', hash, fieldOf(due.receiver)]);
    if (isLeft !== 1) throw new Error(`nothing is left in ${hash}`);
    return ended;
  };
}

const dueOf = async (store: TestStore, job: Job) => {
  const found = (await dueWebhooks(store, 100)).due.find(({ id }) => id === job.id);
  if (!found) throw new Error('no webhook is due');
  return found;
};

function retrying(delayMs: number): Scenario {
  return async (store) => {
    const { job, account } = await running(store, busy);
    const notBefore = delayMs === 0 ? 0 : store.clock.now() + delayMs;
    return { account, step: (s) => retryJob(s, holder, job, { counts: 'failure', code: 'timeout', notBefore }) };
  };
}

/** The steps of a job after its admission, and of its webhook. */
export const jobScenarios: Readonly<Record<string, Scenario>> = {
  'cancel-job of a waiting job': async (store) => {
    const caller = await anAccount(store, busy);
    const job = await theJob(store, await admitted(store, caller));
    return { account: caller.accountId, step: (s) => cancelJob(s, job) };
  },
  'mend-job of a damaged job': async (store) => {
    const { job, account } = await running(store, busy);
    const fields = ['created_at', '17x', 'attempt', '1x', 'started_at', '17x', 'storing_since', '17x'];
    await store.connection.send(['HSET', keys.job(job.id), ...fields]);
    return { account, step: (s) => mendJob(s, job.id) };
  },
  'cancel-job of a running job': async (store) => {
    const { job, account } = await running(store, busy, withWebhook);
    return { account, step: (s) => cancelJob(s, job) };
  },
  'retry-job later': retrying(60_000),
  'retry-job at once': retrying(0),
  'take-jobs': async (store) => {
    const caller = await anAccount(store, busy);
    await admitted(store, caller);
    await admitted(store, caller);
    await startNext(store);
    return { account: caller.accountId, step: (s) => takeJob(s, holder, 10) };
  },
  'start-attempt': async (store) => {
    const caller = await anAccount(store, busy);
    const job = await theJob(store, await admitted(store, caller));
    await takeJob(store, holder, 10);
    return { account: caller.accountId, step: (s) => startAttempt(s, holder, job, 1) };
  },
  'requeue-delayed': async (store) => {
    const { job, account } = await running(store, busy);
    await retryJob(store, holder, job, { counts: 'failure', code: 'timeout', notBefore: store.clock.now() + 1000 });
    store.advance(2000);
    return { account, step: (s) => requeueDelayed(s) };
  },
  'offer-turns': async (store) => {
    const { account } = await running(store, busy);
    return { account, step: (s) => offerTurns(s, [account]) };
  },
  'preempt-job': async (store) => {
    const { job, account } = await running(store, busy);
    const waiting = await anAccount(store, busy);
    await admitted(store, waiting);
    store.advance(60_000);
    const active = { id: job.id, account, since: 0, attempt: 1, hold: 'free', recordedAt: null } as const;
    return {
      account,
      step: (s) => preemptJob(s, holder, active, { slots: 1, kept: 0, maxWaitMs: 10 }, waiting.accountId),
    };
  },
  'note-progress of a recording': async (store) => {
    const { job, account } = await running(store, busy);
    return {
      account,
      step: (s) => noteProgress(s, job, 1, { progress: 7, stage: recordingStage, speed_bytes: 1, eta_seconds: 2 }),
    };
  },
  'note-progress': async (store) => {
    const { job, account } = await running(store, busy);
    return {
      account,
      step: (s) => noteProgress(s, job, 1, { progress: 7, stage: 'x', speed_bytes: 1, eta_seconds: 2 }),
    };
  },
  'remove-file': webhookStep(async (_, job) => (s) => removeFile(s, job)),
  'remove-job': webhookStep(async (store, job) => {
    store.advance(10_000);
    return (s) => removeJob(s, job.id, 0);
  }),
  'take-webhook': webhookStep(async (store, job) => {
    const due = await dueOf(store, job);
    return (s) => takeWebhook(s, due, 1000);
  }),
  'return-webhook': webhookStep(async (store, job) => {
    const due = await dueOf(store, job);
    const taken = (await takeWebhook(store, due, 1000))!;
    return (s) => returnWebhook(s, due, taken);
  }),
  'end-webhook that is tried again': webhookStep(async (store, job) => {
    const due = await dueOf(store, job);
    const attempt = (await takeWebhook(store, due, 1000))?.attempt ?? 0;
    return (s) => endWebhook(s, due, attempt, { verdict: 'again', status: 500 }, 5000);
  }),
  'end-webhook that is delivered': webhookStep(async (store, job) => {
    const due = await dueOf(store, job);
    const attempt = (await takeWebhook(store, due, 1000))?.attempt ?? 0;
    return (s) => endWebhook(s, due, attempt, { verdict: 'delivered', status: 200 }, 5000);
  }),
  'end-webhook that fails for the fifth time': webhookStep((store, job) =>
    refusing(
      store,
      job,
      (receiver) => [receiver, '4 0 0'],
      keys.outbox,
      (receiver) => `webhooks-${receiver}`,
    ),
  ),
  'end-webhook that is refused by one receiver more than are kept': webhookStep((store, job) =>
    refusing(
      store,
      job,
      () => Array.from({ length: 100 }, (_, n) => [`other${n}`, `1 0 ${n + 1}`]).flat(),
      failing,
      (receiver) => receiver,
    ),
  ),
  'ask-for-test': async (store) => {
    const { accountId: account } = await anAccount(store, busy);
    return { step: (s) => askForTest(s, { id: 'test', account, url: 'https://example.com/hook', authorization: '' }) };
  },
  'replay-webhook': webhookStep(async (store, job) => {
    const due = await dueOf(store, job);
    const attempt = (await takeWebhook(store, due, 1000))?.attempt ?? 0;
    await endWebhook(store, due, attempt, { verdict: 'delivered', status: 200 }, 5000);
    return (s) => replayWebhook(s, job.id, null);
  }),
};
