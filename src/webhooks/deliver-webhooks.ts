import { Refusal } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { ServerAddress } from '../base/server-address.ts';
import type { RecordStore } from '../store/script.ts';
import type { DueWebhook } from '../store/webhooks/due-webhooks.ts';
import { endWebhook } from '../store/webhooks/end-webhook.ts';
import { readOutgoingWebhook } from '../store/webhooks/read-deliveries.ts';
import { takeWebhook } from '../store/webhooks/take-webhook.ts';
import { makeFairQueue } from './fair-queue.ts';
import { makeDueFinder } from './find-due.ts';
import { makeRequest, type PayloadOptions } from './payload.ts';
import { sendWebhook, type WebhookResult } from './send-webhook.ts';

export interface DeliveryOptions extends PayloadOptions {
  readonly store: RecordStore;
  /** The egress proxy. */
  readonly proxy: ServerAddress;
  /** How long one attempt may take. */
  readonly limitSeconds: number;
  /** From the end of an attempt to the next one. */
  readonly gapSeconds: number;
  /** How long the attempts under way may go on when it is closed. */
  readonly drainSeconds: number;
  readonly metrics: Pick<Metrics, 'webhook_deliveries_total'>;
  readonly log: Log;
}

/** Delivers webhooks when they are due. */
export interface WebhookDelivery {
  /** A webhook may have become due. */
  readonly wake: () => void;
  /** Begins nothing more and lets what is under way end; what takes too long is left to its lease, and sent again. */
  readonly close: () => Promise<void>;
}

const atOnce = { all: 32, host: 8, receiver: 2, waitingOfHost: 1_000, waiting: 20_000 };
const beatMilliseconds = 500;
const graceSeconds = 5;
const outcomes = { delivered: 'delivered', again: 'retried', failed: 'failed' } as const;

/** Hints make it fast; a beat makes it certain. */
export function deliverWebhooks(options: DeliveryOptions): WebhookDelivery {
  const { store, log } = options;
  const line = makeFairQueue(atOnce);
  const stop = new AbortController();
  const attempts = new Set<Promise<void>>();
  let isClosing = false;
  let looking: Promise<void> | null = null;
  let isWanted = false;

  const begin = (due: DueWebhook) => {
    const attempt = makeAttempt(options, due, stop.signal).catch(complain).finally(over);
    attempts.add(attempt);
    function over() {
      attempts.delete(attempt);
      line.done(due);
      if (beginAll() && line.lacks()) wake();
    }
  };
  const beginAll = () => {
    for (let due = isClosing ? null : line.next(); due !== null; due = line.next()) begin(due);
    return !isClosing;
  };
  const lookout = makeDueFinder(store, line, beginAll);
  const complain = (error: unknown) => {
    // That Redis does not answer is told by its connection.
    if (error instanceof Refusal && error.code === 'unavailable') lookout.forget();
    else log.error('webhooks could not be looked after', { error });
  };
  const wake = () => {
    isWanted = true;
    looking ??= lookOn();
  };
  const lookOn = async () => {
    while (isWanted && !isClosing) {
      isWanted = false;
      await lookout.find().catch(complain);
    }
    looking = null;
  };
  const beat = setInterval(wake, beatMilliseconds);
  wake();
  return {
    wake,
    close: async () => {
      isClosing = true;
      clearInterval(beat);
      await looking;
      const late = setTimeout(() => stop.abort(), options.drainSeconds * 1000);
      await Promise.all(attempts);
      clearTimeout(late);
    },
  };
}

/** Makes one attempt, which is counted before anything is sent. */
async function makeAttempt(options: DeliveryOptions, due: DueWebhook, stop: AbortSignal): Promise<void> {
  const { store, limitSeconds, gapSeconds, metrics, log } = options;
  const attempt = await takeWebhook(store, due, (limitSeconds + gapSeconds + graceSeconds) * 1000);
  if (attempt === null) return;
  const posted = await post(options, due.jobId, stop);
  if (posted.is === 'failed' && stop.aborted) return;
  const status = posted.is === 'answered' ? posted.status : null;
  const word = await endWebhook(store, due, attempt, { verdict: verdictOf(posted), status }, gapSeconds * 1000);
  if (word !== 'stale') metrics.webhook_deliveries_total.inc({ outcome: outcomes[word] });
  const why = posted.is === 'answered' ? undefined : posted.why;
  log.info('an attempt to deliver a webhook ended', { job: due.jobId, attempt, outcome: word, status, why });
}

async function post(options: DeliveryOptions, job: string, stop: AbortSignal): Promise<WebhookResult> {
  const { store, proxy, limitSeconds, log } = options;
  const kept = await readOutgoingWebhook(store, job);
  if (kept === null) return { is: 'refused', why: 'the job is gone' };
  const composed = makeRequest(kept, store.clock.now(), options);
  if (composed !== null) return sendWebhook(proxy, composed, limitSeconds * 1000, stop);
  log.error('a webhook was sealed with a secret that is not known any more', { job });
  return { is: 'failed', why: 'it cannot be unsealed' };
}

function verdictOf(posted: WebhookResult): 'delivered' | 'again' | 'refused' {
  if (posted.is !== 'answered') return posted.is === 'refused' ? 'refused' : 'again';
  return posted.status >= 200 && posted.status < 300 ? 'delivered' : 'again';
}
