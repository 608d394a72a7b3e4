import { hideGauges, type Metrics } from '../base/metrics.ts';
import { shareRun } from '../base/single-flight.ts';
import { boundBackupNotes, noteSchedule, readBackupNotes } from '../store/backup/backup-notes.ts';
import { findOldestUnstarted, readOpenings } from '../store/jobs/open-work.ts';
import { reportUpkeep, type UpkeepParts } from '../store/upkeep-parts.ts';

interface GaugeOptions extends UpkeepParts {
  readonly isLeading: () => boolean;
  /** When the first worker ended whose job is not settled yet, `null` for none. */
  readonly oldestUnsettled: () => number | null;
  readonly backupsScheduled: boolean;
}

/** While this controller leads: refreshes the gauges at each request for /metrics. A former leader shows none of them. */
export function startGauges(options: GaugeOptions): { close(): Promise<void> } {
  const { metrics, isLeading } = options;
  const complain = reportUpkeep(options, 'gauges', 'the gauges could not be read from the record');
  const refresh = shareRun(async () => {
    if (isLeading()) await setGauges(options).catch(complain);
    // Asked again: the lead may be lost while the record is read.
    if (!isLeading()) hideGauges(gaugesOfLeader(metrics));
  });
  metrics.refreshers.add(refresh.run);
  return {
    async close() {
      metrics.refreshers.delete(refresh.run);
      await refresh.settled();
    },
  };
}

async function setGauges({ store, metrics, oldestUnsettled, backupsScheduled }: GaugeOptions): Promise<void> {
  const now = store.clock.now();
  const [seen, unstarted, backup] = await Promise.all([
    readOpenings(store),
    findOldestUnstarted(store),
    readBackupNotes(store),
  ]);
  const age = (since: number | null) => (since === null ? 0 : Math.max(0, (now - since) / 1000));
  metrics.jobs_open.set({ state: 'queued' }, seen.queued);
  metrics.jobs_open.set({ state: 'running' }, seen.active);
  metrics.jobs_open.set({ state: 'delayed' }, seen.delayed);
  metrics.holds_open.set(seen.held);
  metrics.oldest_queued_seconds.set(Math.max(age(seen.oldestQueued), age(unstarted)));
  metrics.webhooks_due.set(seen.webhooks);
  metrics.oldest_webhook_seconds.set(age(seen.oldestWebhook));
  metrics.blocked_ips.set(seen.blocked);
  metrics.drain_seconds.set(age(seen.drainSince));
  const backedUp =
    backup && (backup.lastTaken ?? backup.firstBegun ?? (backupsScheduled ? backup.expectedSince : null));
  metrics.backup_age_seconds.set(age(backedUp));
  metrics.oldest_unsettled_seconds.set(age(oldestUnsettled()));
  if (backup !== null) await boundBackupNotes(store, backup);
  // An expected backup has an age before the first one begins: with none, no alert would miss it.
  const isExpected = typeof backup?.expectedSince === 'number';
  if (backupsScheduled !== isExpected) await noteSchedule(store, backupsScheduled);
}

/** The gauges above, and that of the leader's daily search for stray objects. */
function gaugesOfLeader(metrics: Metrics) {
  return [
    metrics.jobs_open,
    metrics.holds_open,
    metrics.oldest_queued_seconds,
    metrics.webhooks_due,
    metrics.oldest_webhook_seconds,
    metrics.blocked_ips,
    metrics.drain_seconds,
    metrics.backup_age_seconds,
    metrics.oldest_unsettled_seconds,
    metrics.stray_objects,
  ];
}
