import { isRefusal } from '../base/errors.ts';
import { describeTest } from '../model/receiver-test.ts';
import type { WebhookResult } from '../model/webhook-attempts.ts';
import { accountOfTest, endTest, type TakenTest, takeTest } from '../store/webhooks/receiver-tests.ts';
import type { DeliveryOptions } from './deliver-webhooks.ts';
import { makeTestRequest } from './payload.ts';
import { sendWebhook } from './send-webhook.ts';

type TestOptions = Pick<DeliveryOptions, 'seal' | 'store' | 'proxy' | 'limitSeconds' | 'log'>;

/** Tests at once in one controller; the page asks again for those that no controller had room for. */
const maxAtOnce = 16;
/** A quarter of `maxAtOnce`, so that an account whose receivers hang leaves room for others. */
const maxAtOnceOfAccount = maxAtOnce / 4;
/** A person waits at the page, however long the operator lets webhooks wait. */
const maxSeconds = 10;

/** Sends tests of receivers, each once. They wait in no queue of webhooks, so neither delays the other. */
export function testReceivers(options: TestOptions) {
  const { log } = options;
  const stop = new AbortController();
  const running = new Map<string, Promise<void>>();
  return {
    /** Somebody waits for the test with this id in the record. */
    hear: (testId: string) => {
      if (stop.signal.aborted || running.has(testId) || running.size >= maxAtOnce) return;
      const account = accountOfTest(testId);
      const ofAccount = [...running.keys()].filter((one) => accountOfTest(one) === account);
      if (ofAccount.length >= maxAtOnceOfAccount) return;
      const test = makeTest(options, testId, stop.signal)
        .catch((error: unknown) => {
          // The Redis connection logs that Redis does not answer.
          if (!isRefusal(error, 'unavailable')) {
            log.error('a receiver of webhooks could not be tested', { error });
          }
        })
        .finally(() => running.delete(testId));
      running.set(testId, test);
    },
    /** Takes no more tests, and cuts those that run: a page that waits for one says that nothing came back. */
    close: async () => {
      stop.abort();
      await Promise.all(running.values());
    },
  };
}

async function makeTest(options: TestOptions, testId: string, stop: AbortSignal): Promise<void> {
  const { store, log } = options;
  const test = await takeTest(store, testId);
  if (test === null) return;
  const began = performance.now();
  const end = await post(options, test, stop);
  const ended = describeTest(end, performance.now() - began);
  await endTest(store, testId, ended);
  const why = end.is === 'answered' ? undefined : end.why;
  const status = end.is === 'answered' ? end.status : null;
  log.info('a receiver of webhooks was tested', { account: test.account, outcome: end.is, status, why });
}

async function post(options: TestOptions, test: TakenTest, stop: AbortSignal): Promise<WebhookResult> {
  const { store, proxy, limitSeconds, seal } = options;
  const composed = makeTestRequest(test, store.clock.now(), seal);
  if (composed === null) return { is: 'failed', why: 'unsealed' };
  const end = await sendWebhook(proxy, composed, Math.min(limitSeconds, maxSeconds) * 1000, stop);
  return end.is === 'failed' && stop.aborted ? { is: 'failed', why: 'stopped' } : end;
}
