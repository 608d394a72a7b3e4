import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { shareRun } from '../base/single-flight.ts';
import { listAccounts } from '../store/accounts/read-accounts.ts';
import { readOpenings } from '../store/jobs/open-work.ts';
import { verifyLedger } from '../store/log/verify-ledger.ts';
import type { RecordStore } from '../store/script.ts';

const checkMs = 2_000;
const verifyMs = 3_600_000;

/** While this controller leads: refreshes the gauges at each request for /metrics, and verifies every ledger once an hour. */
export function startGauges(options: {
  readonly store: RecordStore;
  readonly metrics: Metrics;
  readonly isLeading: () => boolean;
  readonly oldestUnsettled: () => number | null;
  readonly log: Log;
}): { close(): Promise<void> } {
  const { store, metrics, isLeading, oldestUnsettled, log } = options;
  let verifiedAt = Number.NEGATIVE_INFINITY;
  const complain = (error: unknown) => log.debug('the gauges could not be read from the record', { error });
  const refresh = shareRun(async () => {
    if (isLeading()) await setGauges(store, metrics, oldestUnsettled()).catch(complain);
  });
  const verify = shareRun(async () => {
    if (!isLeading() || performance.now() - verifiedAt < verifyMs) return;
    await verifyAll(store, metrics, log).then(() => {
      verifiedAt = performance.now();
    }, complain);
  });
  metrics.refreshers.add(refresh.run);
  const timer = setInterval(verify.run, checkMs);
  return {
    async close() {
      metrics.refreshers.delete(refresh.run);
      clearInterval(timer);
      await Promise.all([refresh.settled(), verify.settled()]);
    },
  };
}

async function setGauges(store: RecordStore, metrics: Metrics, oldestUnsettled: number | null): Promise<void> {
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
  metrics.oldest_unsettled_seconds.set(age(oldestUnsettled));
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
