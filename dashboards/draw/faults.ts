import { healthySources, jobsPerSecond, releasedBefore } from './healthy.ts';
import type { Moment, Source } from './series.ts';

/** Change of one series by a fault: its value from the beginning of the fault on, or `null` when it is gone. */
type Change = (moment: Moment, before: number) => number | null;

interface Fault {
  /** Name of the drill in docs/drills.md. */
  readonly drill: string;
  /** Dashboard that shows it best. */
  readonly board: string;
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
const storeAway = {
  'trawl_object_store_ready{': none,
  'trawl_oldest_unsettled_seconds{': age,
  'trawl_holds_open{': ((moment, before) => Math.min(62, before + moment.since * 0.9)) satisfies Change,
  'trawl_jobs_open{namespace="films",instance="trawl-controller-1",state="running"}': ((moment, before) =>
    Math.min(60, before + moment.since * 0.9)) satisfies Change,
  'trawl_jobs_total{namespace="films",instance="trawl-controller-1",endpoint="video",outcome="completed"': none,
  'trawl_attempts_total{namespace="films",instance="trawl-controller-1",class="done"}': none,
  'trawl_attempts_total{namespace="films",instance="trawl-controller-1",class="interrupted"}': none,
  'trawl_charges_total{namespace="films",instance="trawl-controller-1",endpoint="video"': none,
} as const;
const noWork = {
  'trawl_jobs_total{': none,
  'trawl_job_seconds{': none,
  'trawl_attempts_total{': none,
  'trawl_charges_total{': none,
  'trawl_source_outcomes_total{': none,
  'trawl_webhook_deliveries_total{': none,
  'trawl_webhook_delay_seconds{': none,
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
];

/** The faults of docs/drills.md as Prometheus sees them, each for the last 45 minutes of a history. */
export const faults: readonly Fault[] = [
  {
    drill: 'Redis is away',
    board: 'record',
    changes: {
      ...noWork,
      'trawl_redis_ready{': none,
      'trawl_leader{': none,
      'trawl_redis_seconds{': none,
      'trawl_redis_replica_seconds{': none,
      'trawl_redis_memory_ratio{': gone,
      'trawl_redis_replicas{': gone,
      'trawl_http_requests_total{namespace="films",instance="trawl-api-1",route="/v1/video/download",status="202"}':
        none,
      ...Object.fromEntries(['200', '202', '404', '422', '429'].map((status) => [`status="${status}"`, times(0.02)])),
      'status="503"': ({ busy }) => busy * 2,
      'trawl_upkeep_errors_total{namespace="films",instance="trawl-controller-1",task="take"}': set(0.1),
    },
  },
  {
    drill: 'The memory of Redis is at 80 %',
    board: 'record',
    changes: {
      'trawl_redis_memory_ratio{': ({ since, random }) => Math.min(0.8, 0.44 + since / 2000) + 0.003 * random(),
    },
  },
  { drill: 'The object store is away', board: 'workers', changes: storeAway },
  { drill: 'The object store hangs', board: 'money', changes: storeAway },
  {
    drill: 'No controller leads',
    board: 'workers',
    changes: {
      ...noWork,
      'trawl_leader{': none,
      'trawl_watch_age_seconds{': age,
      'trawl_reconcile_seconds{': none,
      ...Object.fromEntries(ofLeader.map((name) => [name, gone])),
    },
  },
  {
    drill: 'The API server throttles',
    board: 'workers',
    changes: {
      'trawl_kube_refused_total{': set(1.5),
      'trawl_kube_wait_seconds{': ({ random }) => 14 + 6 * random(),
      'trawl_attempts_waiting{namespace="films",instance="trawl-controller-1",wait="starting"}': ({ random }) =>
        12 + Math.round(6 * random()),
      'trawl_cleanups_postponed{': ({ since }) => Math.min(60, since / 12),
    },
  },
  {
    drill: 'Egress finds no name',
    board: 'sources',
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
    board: 'workers',
    changes: { 'trawl_watch_age_seconds{': age, 'trawl_reconcile_errors_total{': set(0.1) },
  },
  {
    drill: 'Receivers refuse webhooks',
    board: 'service',
    changes: {
      'trawl_webhook_deliveries_total{namespace="films",instance="trawl-controller-1",outcome="delivered"}': times(0.1),
      'trawl_webhook_deliveries_total{namespace="films",instance="trawl-controller-1",outcome="retried"}': (moment) =>
        jobsPerSecond(moment) * 0.9,
      'trawl_webhook_deliveries_total{namespace="films",instance="trawl-controller-1",outcome="failed"}': (moment) =>
        jobsPerSecond(moment) * 0.4,
      'trawl_webhooks_due{': ({ busy, random }) => Math.round(8 * busy + 4 * random()),
    },
  },
  { drill: 'A ledger has a problem', board: 'money', changes: { 'trawl_ledger_problems{': set(1) } },
  {
    drill: 'yt-dlp is 31 days old',
    board: 'sources',
    changes: { 'trawl_yt_dlp_released_seconds{': releasedBefore(31.1) },
  },
  {
    drill: 'A node is dead',
    board: 'workers',
    changes: {
      'class="interrupted"}': (_, before) => before + 0.5,
      'trawl_attempts_waiting{namespace="films",instance="trawl-controller-1",wait="room"}': ({ random }) =>
        10 + Math.round(5 * random()),
    },
  },
  {
    drill: 'The clock of Redis moves',
    board: 'record',
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
