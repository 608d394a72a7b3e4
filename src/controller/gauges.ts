import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { listAccounts } from '../store/accounts/read-accounts.ts';
import { readOpenings } from '../store/jobs/open-work.ts';
import { verifyLedger } from '../store/money/verify-ledger.ts';
import type { RecordStore } from '../store/script.ts';

export interface GaugesOptions {
  readonly store: RecordStore;
  readonly metrics: Metrics;
  readonly isLeading: () => boolean;
  readonly log: Log;
}

const askMilliseconds = 2_000;
const verifyMilliseconds = 3_600_000;

/** Shows what the record holds at that moment, from the leading controller alone, and verifies every ledger once an hour. */
export function startGauges({ store, metrics, isLeading, log }: GaugesOptions): { close(): Promise<void> } {
  let verifiedAt = Number.NEGATIVE_INFINITY;
  const complain = (error: unknown) => log.debug('the record could not be counted', { error });
  const look = oneAtATime(async () => {
    if (isLeading()) await showOpenings(store, metrics).catch(complain);
  });
  const verify = oneAtATime(async () => {
    if (!isLeading() || performance.now() - verifiedAt < verifyMilliseconds) return;
    await verifyAll(store, metrics, log).then(() => {
      verifiedAt = performance.now();
    }, complain);
  });
  metrics.looks.add(look.ask);
  const timer = setInterval(verify.ask, askMilliseconds);
  return {
    async close() {
      metrics.looks.delete(look.ask);
      clearInterval(timer);
      await Promise.all([look.ended(), verify.ended()]);
    },
  };
}

/** Who asks while it runs gets the same; whoever waits for its end starts nothing. */
function oneAtATime(work: () => Promise<void>) {
  let running: Promise<void> | null = null;
  return {
    ask: (): Promise<void> => {
      running ??= work().finally(() => {
        running = null;
      });
      return running;
    },
    ended: async () => running,
  };
}

async function showOpenings(store: RecordStore, metrics: Metrics): Promise<void> {
  const now = store.clock.now();
  const seen = await readOpenings(store);
  const age = (since: number | null) => (since === null ? 0 : Math.max(0, (now - since) / 1000));
  metrics.jobs_open.set({ state: 'queued' }, seen.queued);
  metrics.jobs_open.set({ state: 'running' }, seen.active);
  metrics.holds_open.set(seen.held);
  metrics.oldest_queued_seconds.set(age(seen.oldestQueued));
  metrics.webhooks_due.set(seen.webhooks);
  metrics.oldest_webhook_seconds.set(age(seen.oldestWebhook));
  metrics.blocked_ips.set(seen.blocked);
}

async function verifyAll(store: RecordStore, metrics: Metrics, log: Log): Promise<void> {
  let problems = 0;
  for (const [slug, account] of await listAccounts(store)) {
    const verified = await verifyLedger(store, account);
    problems += verified.problems.length;
    for (const problem of verified.problems) log.error('a ledger does not balance', { slug, problem });
  }
  metrics.ledger_problems.set(problems);
}
