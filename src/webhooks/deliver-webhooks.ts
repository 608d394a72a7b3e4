import { retry } from '../base/backoff.ts';
import { isRefusal } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { coalesceRuns } from '../base/single-flight.ts';
import type { Traces } from '../base/traces.ts';
import { traceField } from '../model/trace-context.ts';
import type { WebhookResult } from '../model/webhook-attempts.ts';
import type { RecordStore } from '../store/script.ts';
import type { DueWebhook } from '../store/webhooks/due-webhooks.ts';
import { endWebhook } from '../store/webhooks/end-webhook.ts';
import { type OutgoingWebhook, readOutgoingWebhook } from '../store/webhooks/read-deliveries.ts';
import { returnWebhook } from '../store/webhooks/return-webhook.ts';
import { takeWebhook } from '../store/webhooks/take-webhook.ts';
import { makeFairQueue } from './fair-queue.ts';
import { makeDueFinder } from './find-due.ts';
import { makeRequest, type PayloadOptions } from './payload.ts';
import { sendWebhook } from './send-webhook.ts';
import { beginWebhookTrace, recordWebhook } from './webhook-trace.ts';

export interface DeliveryOptions extends PayloadOptions {
  readonly store: RecordStore;
  readonly proxy: ServerAddress;
  /** Of one attempt. */
  readonly limitSeconds: number;
  /** From the end of an attempt to the next one. */
  readonly gapSeconds: number;
  /** Closing cuts attempts that still run after this time. */
  readonly drainSeconds: number;
  readonly metrics: Pick<Metrics, 'webhook_deliveries_total' | 'webhook_delay_seconds'>;
  readonly traces: Traces | null;
  readonly log: Log;
}

export type WebhookDelivery = ReturnType<typeof deliverWebhooks>;

/**
 * An account has at most a quarter of all places, so that hanging receivers of one do not delay the webhooks of another; slow hosts have
 * at most half of them, however many accounts name them.
 */
const limits = {
  maxAttempts: 32,
  maxAttemptsOfAccount: 8,
  maxAttemptsOfHost: 4,
  maxAttemptsOfReceiver: 2,
  maxAttemptsOfSlow: 16,
  maxKnown: 20_000,
  maxQueuedOfAccount: 5_000,
  maxQueuedOfHost: 1_000,
};
/** An attempt that takes so long makes its host a slow one. A receiver may also answer at once and send the body of its answer for 10 s. */
const slowMs = 2_000;
const intervalMs = 500;
const graceSeconds = 5;
/** No attempt begins for so long after one that did not reach egress. */
const egressAwayMs = 2_000;
const backoff = { firstMs: 200, maxMs: 2_000 };
const outcomes = { delivered: 'delivered', again: 'retried', failed: 'failed' } as const;

/** Delivers webhooks when they are due. Hints make it fast; a search every 500 ms makes it certain. */
export function deliverWebhooks(options: DeliveryOptions) {
  const { store, log } = options;
  const queue = makeFairQueue(limits);
  const stop = new AbortController();
  const attempts = new Set<Promise<void>>();
  const egress = watchEgress(log);
  let isClosing = false;
  /** Before this time, by `performance.now`, no attempt begins. */
  let startsAt = Number.NEGATIVE_INFINITY;

  const start = (due: DueWebhook) => {
    const attempt = makeAttempt({ ...options, egress }, due, stop.signal)
      .catch(complain)
      .then((end) => {
        attempts.delete(attempt);
        queue.done(due, end?.is, end?.isSlow);
        if (end?.is === 'unsent') waitForEgress();
        if (startAll() && queue.needsRefill()) wake();
      });
    attempts.add(attempt);
  };
  const mayStart = () => !isClosing && performance.now() >= startsAt;
  const startAll = () => {
    for (let due = mayStart() ? queue.next() : null; due !== null; due = queue.next()) start(due);
    return !isClosing;
  };
  /** Webhooks that were given back are due as before, which the next search finds. */
  const waitForEgress = () => {
    egress.noteAway();
    startsAt = performance.now() + egressAwayMs;
    finder.forget();
  };
  // Another controller may have other settings.
  const finder = makeDueFinder(store, queue, 2 * leaseMsOf(options), startAll);
  const complain = (error: unknown): undefined => {
    // The Redis connection logs that Redis does not answer.
    if (isRefusal(error, 'unavailable')) finder.forget();
    else log.error('webhooks could not be searched or sent', { error });
  };
  const search = coalesceRuns(async () => {
    // What is queued may wait for egress alone, and a full queue has nothing searched.
    if (startAll()) await finder.find().catch(complain);
  });
  const wake = () => void search.run();
  const timer = setInterval(wake, intervalMs);
  wake();
  return {
    /** A webhook may have become due. */
    wake,
    /** Starts no more attempts and lets the running ones end; one that is cut is repeated after its lease. */
    close: async () => {
      isClosing = true;
      clearInterval(timer);
      await search.settled();
      const late = setTimeout(() => stop.abort(), options.drainSeconds * 1000);
      await Promise.all(attempts);
      clearTimeout(late);
    },
  };
}

/** Warns once of an egress that is away, when that lasts: at a start, it may not listen yet. */
function watchEgress(log: Log) {
  let awaySince: number | null = null;
  let isTold = false;
  return {
    noteReached() {
      awaySince = null;
      isTold = false;
    },
    noteAway() {
      awaySince ??= performance.now();
      if (isTold || performance.now() - awaySince < egressAwayMs) return;
      isTold = true;
      log.warn('egress cannot be reached: webhooks wait for it');
    },
  };
}

/** An attempt that a process took and did not end is repeated after this time. */
function leaseMsOf({ limitSeconds, gapSeconds }: DeliveryOptions): number {
  return (limitSeconds + gapSeconds + graceSeconds) * 1000;
}

interface SenderOptions extends DeliveryOptions {
  readonly egress: ReturnType<typeof watchEgress>;
}

interface AttemptEnd {
  readonly is: WebhookResult['is'];
  readonly isSlow: boolean;
}

/** The attempt is counted before anything is sent. Returns how it ended, if it was made. */
async function makeAttempt(
  options: SenderOptions,
  due: DueWebhook,
  stop: AbortSignal,
): Promise<AttemptEnd | undefined> {
  const { store, gapSeconds, metrics, log } = options;
  const leaseEndsAt = performance.now() + leaseMsOf(options);
  const taken = await takeWebhook(store, due, leaseMsOf(options), () => {
    metrics.webhook_deliveries_total.inc({ outcome: outcomes.failed });
    log.warn('a webhook has failed: its sender died during the last attempt', { job: due.id });
  });
  if (taken === null) return undefined;
  const { attempt } = taken;
  // While Redis is away, until another attempt may begin: none is to be lost, and none that was delivered is to be sent again.
  const delayOf = (_: unknown, delayMs: number) => (performance.now() + delayMs < leaseEndsAt ? delayMs : null);
  const note = <T>(step: () => Promise<T>) => retry(step, { ...backoff, signal: stop, delayOf });
  const kept = await readOutgoingWebhook(store, due.id);
  const trace = options.traces && kept && beginWebhookTrace(kept);
  const beganAt = store.clock.now();
  const sentAt = performance.now();
  const posted = await post(options, { kept, attempt, id: due.id, traceparent: trace?.traceparent }, stop);
  const end = { is: posted.is, isSlow: performance.now() - sentAt >= slowMs };
  if (posted.is === 'unsent') {
    log.debug('egress is away: the webhook waits', { job: due.id, why: posted.why });
    await note(() => returnWebhook(store, due, taken));
    return end;
  }
  if (posted.is === 'failed' && stop.aborted) return undefined;
  const status = posted.is === 'answered' ? posted.status : null;
  const ended = { verdict: verdictOf(posted), status };
  const word = await note(() => endWebhook(store, due, attempt, ended, gapSeconds * 1000));
  if (word !== 'stale') metrics.webhook_deliveries_total.inc({ outcome: outcomes[word] });
  const why = posted.is === 'answered' ? undefined : posted.why;
  const told = { job: due.id, attempt, outcome: word, status, why, ...traceField(trace ?? null) };
  log.info('an attempt to deliver a webhook ended', told);
  if (options.traces && trace) {
    const span = { beganAt, endedAt: store.clock.now(), attempt, outcome: word, status };
    recordWebhook(options.traces, trace, due.id, span);
  }
  return end;
}

interface Delivery {
  readonly kept: OutgoingWebhook | null;
  /** Id of the job or the batch. */
  readonly id: string;
  readonly attempt: number;
  readonly traceparent: string | undefined;
}

async function post(
  options: SenderOptions,
  { kept, id, attempt, traceparent }: Delivery,
  stop: AbortSignal,
): Promise<WebhookResult> {
  const { store, proxy, limitSeconds, metrics, log, egress } = options;
  if (kept === null) return { is: 'refused', why: 'the job is gone' };
  const now = store.clock.now();
  const endedAt = 'job' in kept.about ? kept.about.job.ended_at : null;
  const isFirst = attempt === 1 && !kept.wasTried;
  const composed = makeRequest(kept, now, options, traceparent);
  if (composed === null) log.error('a webhook was sealed with a secret that is not known any more', { job: id });
  const posted: WebhookResult =
    composed === null
      ? { is: 'failed', why: 'it cannot be unsealed' }
      : await sendWebhook(proxy, composed, limitSeconds * 1000, stop);
  if (composed !== null && posted.is !== 'unsent') egress.noteReached();
  if (isFirst && endedAt !== null && posted.is !== 'unsent') {
    metrics.webhook_delay_seconds.observe(Math.max(0, now - endedAt) / 1000);
  }
  return posted;
}

function verdictOf(posted: WebhookResult): 'delivered' | 'again' | 'refused' {
  if (posted.is !== 'answered') return posted.is === 'refused' ? 'refused' : 'again';
  return posted.status >= 200 && posted.status < 300 ? 'delivered' : 'again';
}
