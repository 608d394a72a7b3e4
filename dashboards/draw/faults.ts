import { healthySources, jobsPerSecond, releasedBefore } from './healthy.ts';
import type { Moment, Source } from './series.ts';

/** Change of one series by a fault: its value from the beginning of the fault on, or `null` when it is gone. */
type Change = (moment: Moment, before: number) => number | null;

interface Fault {
  /** Name of the drill in docs/drills.md. */
  readonly drill: string;
  /** How long it has lasted at the end; 45 minutes where nothing is said. More alerts fire when jobs wait for longer. */
  readonly minutes?: number;
  /** Changes by the start of a series, as Prometheus writes it. */
  readonly changes: Readonly<Record<string, Change>>;
}

const none: Change = () => 0;
const gone: Change = () => null;
const set =
  (value: number): Change =>
  () =>
    value;
const times =
  (factor: number): Change =>
  (_, before) =>
    before * factor;
const age: Change = ({ since }) => since;
const noWork = {
  'trawl_jobs_total{': none,
  'trawl_job_seconds{': none,
  'trawl_attempts_total{': none,
  'trawl_charges_total{': none,
  'trawl_source_outcomes_total{': none,
  'trawl_webhook_deliveries_total{': none,
  'trawl_webhook_delay_seconds{': none,
} as const;

/** Jobs that are taken and do not end: workers are all in use after a minute, then the queue grows by one job each second. */
const fullSeconds = 60;
const slots = 60;
const held = {
  'state="running"}': ({ since }, before) => Math.max(before, Math.min(slots, before + since)),
  'state="queued"}': ({ since }, before) => Math.max(before, since - fullSeconds),
  'trawl_oldest_queued_seconds{': ({ since }, before) => Math.max(before, since - fullSeconds),
  'trawl_holds_open{': ({ since }, before) => before + since,
} satisfies Record<string, Change>;
/** No worker begins, so that only calls for metadata go out. */
const noDownloads = { 'verdict="open"}': times(0.1), 'verdict="refused_': none, 'verdict="failed_': times(0.1) };
const storeAway = {
  ...noWork,
  ...held,
  ...noDownloads,
  'trawl_object_store_ready{': none,
  'trawl_oldest_unsettled_seconds{': age,
  'trawl_charges_total{namespace="films",instance="trawl-controller-1",endpoint="metadata"': (
    _: Moment,
    before: number,
  ) => before,
} as const;

/** Returns the names of the gauges that a controller shows only while it leads. */
const ofLeader = [
  'trawl_jobs_open{',
  'trawl_oldest_queued_seconds{',
  'trawl_oldest_unsettled_seconds{',
  'trawl_holds_open{',
  'trawl_webhooks_due{',
  'trawl_oldest_webhook_seconds{',
  'trawl_blocked_ips{',
  'trawl_ledger_problems{',
  'trawl_ledger_verify_age_seconds{',
  'trawl_drain_seconds{',
  'trawl_backup_age_seconds{',
  'trawl_stray_objects{',
];
const withoutLeader = Object.fromEntries(ofLeader.map((name) => [name, gone]));

/** The faults of docs/drills.md as Prometheus sees them at the end of a history. */
export const faults: readonly Fault[] = [
  {
    drill: 'Redis is away',
    changes: {
      ...noWork,
      'trawl_redis_ready{': none,
      'trawl_leader{': none,
      'trawl_redis_seconds{': none,
      'trawl_redis_replica_seconds{': none,
      'trawl_redis_memory_ratio{': gone,
      'trawl_redis_replicas{': gone,
      ...noDownloads,
      ...withoutLeader,
      'trawl_http_requests_total{namespace="films",instance="trawl-api-1",route="/v1/video/download",status="202"}':
        none,
      ...Object.fromEntries(['200', '202', '404', '422', '429'].map((status) => [`status="${status}"`, times(0.02)])),
      'status="503"': ({ busy }) => busy * 2,
      'trawl_upkeep_errors_total{namespace="films",instance="trawl-controller-1",task="take"}': set(0.1),
    },
  },
  {
    drill: 'The memory of Redis is at 80 %',
    changes: {
      'trawl_redis_memory_ratio{': ({ since, random }) => Math.min(0.8, 0.44 + since / 2000) + 0.003 * random(),
    },
  },
  { drill: 'The object store is away', minutes: 18, changes: storeAway },
  { drill: 'The object store hangs', minutes: 18, changes: storeAway },
  {
    drill: 'No controller leads',
    changes: {
      ...noWork,
      ...noDownloads,
      'trawl_leader{': none,
      'trawl_watch_age_seconds{': age,
      'trawl_reconcile_seconds{': none,
      ...withoutLeader,
    },
  },
  {
    drill: 'The API server throttles',
    changes: {
      'trawl_kube_refused_total{': set(1.5),
      'trawl_kube_wait_seconds{': ({ random }) => 2 * random(),
      'wait="starting"}': ({ busy }) => 3 + Math.round(3 * busy),
    },
  },
  {
    drill: 'Egress finds no name',
    changes: {
      'trawl_egress_connections_total{namespace="films",instance="trawl-egress-1",verdict="open"}': times(0.05),
      'trawl_egress_connections_total{namespace="films",instance="trawl-egress-2",verdict="open"}': times(0.05),
      'verdict="failed_dns"}': ({ busy }) => busy * 4,
      'trawl_jobs_total{namespace="films",instance="trawl-controller-1",endpoint="video",outcome="completed"':
        times(0.1),
      'code="source_broken"': (moment) => jobsPerSecond(moment) * 0.85,
      'outcome="completed"}': times(0.1),
      'outcome="failed"}': (moment, before) => Math.max(before, jobsPerSecond(moment) * 0.2),
      'trawl_attempts_total{namespace="films",instance="trawl-controller-1",class="done"}': times(0.1),
      'trawl_attempts_total{namespace="films",instance="trawl-controller-1",class="failed"}': (moment) =>
        jobsPerSecond(moment) * 0.9,
      'trawl_charges_total{': times(0.1),
      'trawl_webhook_deliveries_total{namespace="films",instance="trawl-controller-1",outcome="delivered"}':
        times(0.02),
      'trawl_webhook_deliveries_total{namespace="films",instance="trawl-controller-1",outcome="retried"}': (moment) =>
        jobsPerSecond(moment) * 0.9,
    },
  },
  {
    drill: 'The watch is stale',
    minutes: 14,
    // Workers hand in their verdicts, but their ends are not heard of, and none can begin.
    changes: {
      ...noWork,
      ...held,
      ...noDownloads,
      'trawl_watch_age_seconds{': age,
      'trawl_oldest_unsettled_seconds{': age,
      'trawl_reconcile_errors_total{': set(1),
      'trawl_attempts_waiting{': none,
      'trawl_cleanups_postponed{': none,
    },
  },
  {
    drill: 'Receivers refuse webhooks',
    changes: {
      'trawl_webhook_deliveries_total{namespace="films",instance="trawl-controller-1",outcome="delivered"}': times(0.1),
      'trawl_webhook_deliveries_total{namespace="films",instance="trawl-controller-1",outcome="retried"}': (moment) =>
        jobsPerSecond(moment) * 0.9,
      'trawl_webhook_deliveries_total{namespace="films",instance="trawl-controller-1",outcome="failed"}': (moment) =>
        jobsPerSecond(moment) * 0.4,
      'trawl_webhooks_due{': ({ busy, random }) => Math.round(8 * busy + 4 * random()),
    },
  },
  { drill: 'A ledger has a problem', changes: { 'trawl_ledger_problems{': set(1) } },
  {
    drill: 'yt-dlp is 31 days old',
    changes: { 'trawl_yt_dlp_released_seconds{': releasedBefore(31.1) },
  },
  {
    drill: 'A node is dead',
    changes: {
      'class="interrupted"}': (_, before) => before + 0.5,
      'wait="room"}': ({ busy }) => 10 + Math.round(5 * busy),
    },
  },
  {
    drill: 'The clock of Redis moves',
    changes: { 'trawl_clock_steady{': none, 'trawl_clock_difference_seconds{': set(-3600) },
  },
];

/** Returns the sources of a history with a fault, by the name of its drill; without one, those of a healthy system. */
export function sourcesOf(drill: string | null): Source[] {
  const fault = faults.find((one) => one.drill === drill);
  const changes = Object.entries(fault?.changes ?? {});
  return healthySources().map((source) => {
    const found = changes.filter(([start]) => textOf(source).includes(start)).at(-1);
    if (!found) return source;
    const value = (moment: Moment) => {
      const before = source.value(moment);
      return moment.since >= 0 ? found[1](moment, before ?? 0) : before;
    };
    // The version in use was old before.
    return drill === 'yt-dlp is 31 days old' ? { ...source, value: releasedBefore(31.1) } : { ...source, value };
  });
}

function textOf({ metric, labels }: Source): string {
  return `${metric}{${Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(',')}}`;
}
