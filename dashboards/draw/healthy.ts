import { counter, gauge, histogram, type Labels, type Moment, type Source } from './series.ts';

/** Parts of a small installation, by the component of their pods. */
export const instances = {
  api: ['trawl-api-1', 'trawl-api-2'],
  controller: ['trawl-controller-1', 'trawl-controller-2'],
  egress: ['trawl-egress-1', 'trawl-egress-2'],
  inspector: ['trawl-inspector-1'],
} as const;
const [leader] = instances.controller;

/** Labels that Prometheus adds to what it reads from a pod. */
export const from = (instance: string, labels: Labels = {}): Labels => ({ namespace: 'films', instance, ...labels });

const builds = Object.entries(instances).flatMap(([role, names]) =>
  names.map((instance) => from(instance, { version: '1.0.0', role })),
);

/** Jobs that begin each second. */
export const jobsPerSecond = ({ busy }: Moment) => 0.2 + 1.6 * busy;
const share = (part: number) => (moment: Moment) => jobsPerSecond(moment) * part;
const wobbly = (value: number) => (moment: Moment) => value * (0.9 + 0.2 * moment.random());

/** Returns every metric of docs/metrics.md in a busy system without a fault. */
export function healthySources(): Source[] {
  return [...callSources(), ...jobSources(), ...moneySources(), ...recordSources(), ...clusterSources()];
}

function callSources(): Source[] {
  const [api] = instances.api;
  const routes: [route: string, perSecond: number, seconds: number][] = [
    ['/v1/video/download', 1, 0.008],
    ['/v1/audio/download', 0.3, 0.008],
    ['/v1/jobs/{id}', 6, 0.004],
    ['/v1/video/metadata', 0.2, 1.4],
    ['/v1/usage', 0.5, 0.005],
  ];
  const statuses: [status: string, part: number][] = [
    ['200', 0.86],
    ['202', 0.11],
    ['404', 0.01],
    ['422', 0.015],
    ['429', 0.004],
    ['503', 0.0001],
  ];
  return [
    ...routes.flatMap(([route, perSecond, seconds]) => [
      ...statuses.map(([status, part]) => {
        return counter(
          'trawl_http_requests_total',
          from(api, { route, status }),
          ({ busy }) => busy * perSecond * part,
        );
      }),
      histogram('trawl_http_request_seconds', from(api, { route }), ({ busy }) => busy * perSecond, wobbly(seconds)),
    ]),
    counter('trawl_connections_dropped_total', from(api), 0.002),
    counter('trawl_auth_failures_total', from(api), ({ random }) => 0.02 * random()),
    gauge('trawl_blocked_ips', from(leader), ({ at }) => (at % 9_000 < 900 ? 1 : 0)),
  ];
}

function jobSources(): Source[] {
  const endings: [outcome: string, code: string, blame: string, part: number][] = [
    ['completed', '', '', 0.949],
    ['failed', 'private', 'caller', 0.02],
    ['failed', 'deleted', 'caller', 0.012],
    ['failed', 'source_broken', 'site', 0.001],
    ['failed', 'source_error', 'site', 0.014],
    ['failed', 'timeout', 'us', 0.0005],
  ];
  const sites: [site: string, part: number][] = [
    ['youtube', 0.6],
    ['vimeo', 0.15],
    ['tiktok', 0.15],
    ['other', 0.1],
  ];
  const stages: [stage: string, seconds: number][] = [
    ['queue', 3],
    ['work', 24],
    ['storage', 0.6],
  ];
  return [
    ...endings.map(([outcome, code, blame, part]) => {
      return counter('trawl_jobs_total', from(leader, { endpoint: 'video', outcome, code, blame }), share(part));
    }),
    ...stages.map(([stage, seconds]) => {
      return histogram('trawl_job_seconds', from(leader, { endpoint: 'video', stage }), share(1), wobbly(seconds));
    }),
    ...sites.flatMap(([site, part]) => [
      counter('trawl_source_outcomes_total', from(leader, { site, outcome: 'completed' }), share(0.95 * part)),
      counter('trawl_source_outcomes_total', from(leader, { site, outcome: 'failed' }), (moment) => {
        return share(0.05 * part)(moment) * 2 * moment.random();
      }),
    ]),
    gauge('trawl_jobs_open', from(leader, { state: 'queued' }), ({ random, busy }) => Math.round(busy * 4 * random())),
    gauge('trawl_jobs_open', from(leader, { state: 'running' }), (moment) => Math.round(jobsPerSecond(moment) * 24)),
    gauge('trawl_jobs_open', from(leader, { state: 'delayed' }), ({ random, busy }) => Math.round(busy * 2 * random())),
    gauge('trawl_oldest_queued_seconds', from(leader), ({ random }) => 6 * random()),
    gauge('trawl_oldest_unsettled_seconds', from(leader), ({ random }) => random()),
    ...Object.entries({ done: 0.95, failed: 0.06, interrupted: 0.01, preempted: 0, cancelled: 0.005 }).map(
      ([name, part]) => counter('trawl_attempts_total', from(leader, { class: name }), share(part)),
    ),
    counter('trawl_unclassified_failures_total', from(leader), share(0.002)),
    counter('trawl_webhook_deliveries_total', from(leader, { outcome: 'delivered' }), share(0.5)),
    counter('trawl_webhook_deliveries_total', from(leader, { outcome: 'retried' }), share(0.01)),
    counter('trawl_webhook_deliveries_total', from(leader, { outcome: 'failed' }), share(0.002)),
    histogram('trawl_webhook_delay_seconds', from(leader), share(0.5), wobbly(0.4)),
    gauge('trawl_webhooks_due', from(leader), ({ random }) => Math.round(2 * random())),
    gauge('trawl_oldest_webhook_seconds', from(leader), ({ random }) => 2 * random()),
  ];
}

const never = { refunded: 0, disputed: 0, unbooked: 0, capped: 0, dropped: 0, unknown: 0 };
const purchases = { paid: 0.002, declined: 0.0002, ...never };
const mails = { sent: 0.003, delayed: 0.0001, refused: 0, given_up: 0 };

function moneySources(): Source[] {
  return [
    gauge('trawl_holds_open', from(leader), (moment) => Math.round(jobsPerSecond(moment) * 25)),
    ...[
      ['subscription', 0.7],
      ['packs', 0.2],
      ['credits', 0.05],
      ['overdraft', 0],
    ].map(([balance, part]) => {
      return counter(
        'trawl_charges_total',
        from(leader, { endpoint: 'video', balance: String(balance) }),
        share(Number(part)),
      );
    }),
    counter('trawl_charges_total', from(leader, { endpoint: 'metadata', balance: 'subscription' }), share(0.1)),
    gauge('trawl_ledger_problems', from(leader), 0),
    gauge('trawl_ledger_verify_age_seconds', from(leader), ({ at }) => at % 3600),
    counter('trawl_lapses_total', from(leader, { balance: 'subscription' }), ({ random }) => 0.08 * random()),
    counter('trawl_lapses_total', from(leader, { balance: 'packs' }), 0),
    counter('trawl_overdrafts_total', from(leader), 0),
    ...Object.entries(purchases).map(([outcome, perSecond]) =>
      counter('trawl_purchases_total', from(leader, { outcome }), perSecond),
    ),
    ...Object.entries(mails).map(([outcome, perSecond]) =>
      counter('trawl_mails_total', from(leader, { outcome }), perSecond),
    ),
  ];
}

function recordSources(): Source[] {
  const scripts: [script: string, perSecond: number, seconds: number][] = [
    ['admit-call', 1.5, 0.0014],
    ['poll-job', 6, 0.0006],
    ['settle-job', 1, 0.0012],
    ['note-progress', 8, 0.0005],
  ];
  return [
    ...scripts.map(([script, perSecond, seconds]) => {
      return histogram(
        'trawl_redis_seconds',
        from(leader, { script }),
        ({ busy }) => busy * perSecond,
        wobbly(seconds),
      );
    }),
    ...[...instances.api, ...instances.controller].flatMap((instance) => [
      gauge('trawl_redis_ready', from(instance), 1),
      gauge('trawl_redis_memory_ratio', from(instance), ({ at, random }) => 0.41 + at / 4e6 + 0.004 * random()),
      gauge('trawl_redis_memory_unlimited', from(instance), 0),
      gauge('trawl_durability_relaxed', from(instance), 0),
      gauge('trawl_redis_replicas', from(instance), 1),
      gauge('trawl_clock_steady', from(instance), 1),
      gauge('trawl_clock_difference_seconds', from(instance), ({ random }) => 0.02 * random() - 0.01),
      gauge('trawl_admissions_closed', from(instance, { reason: 'memory' }), 0),
    ]),
    ...Object.entries({ served: 52, trusted: 900 }).map(([use, days]) =>
      gauge('trawl_certificate_ends_seconds', from(leader, { use }), ({ end }) => end + days * 86_400),
    ),
    gauge('trawl_drain_seconds', from(leader), 0),
    gauge('trawl_backup_age_seconds', from(leader), ({ at }) => 20_000 + at),
    histogram('trawl_redis_replica_seconds', from(leader), ({ busy }) => busy * 8, wobbly(0.0015)),
    counter('trawl_redis_unreplicated_total', from(leader), 0),
  ];
}

function clusterSources(): Source[] {
  const verdicts: [verdict: string, perSecond: number][] = [
    ['open', 6],
    ['refused_request', 0],
    ['refused_name', 0],
    ['refused_address', 0.05],
    ['refused_port', 0.02],
    ['failed_dns', 0.1],
    ['failed_connect', 0.06],
    ['failed_answer', 0],
    ['limited', 0],
  ];
  const tasks = 'lead pass take requeue preempt sweep days gauges verify buy card mail'.split(' ');
  const waits = [
    ['starting', 3],
    ['pod', 0],
    ['room', 0],
    ['admission', 0],
    ['image', 0],
    ['container', 0],
  ] as const;
  return [
    ...builds.map((labels) => gauge('trawl_build_info', labels, 1)),
    ...instances.controller.flatMap((instance) => [
      gauge('trawl_leader', from(instance), instance === leader ? 1 : 0),
      gauge('trawl_watch_age_seconds', from(instance), ({ random }) => (instance === leader ? 4 : 20) * random()),
      // Every controller sees the same pods.
      ...waits.map(([wait, count]) => {
        return gauge('trawl_attempts_waiting', from(instance, { wait }), ({ busy }) => Math.round(count * busy));
      }),
    ]),
    gauge('trawl_object_store_ready', from(leader), 1),
    gauge('trawl_stray_objects', from(leader), 0),
    counter('trawl_spans_total', from(leader, { outcome: 'exported' }), wobbly(4)),
    counter('trawl_spans_total', from(leader, { outcome: 'dropped' }), 0),
    counter('trawl_removal_errors_total', from(leader), 0),
    histogram('trawl_reconcile_seconds', from(leader), 1 / 30, wobbly(0.06)),
    counter('trawl_reconcile_errors_total', from(leader), ({ random }) => (random() > 0.9 ? 0.01 : 0)),
    ...tasks.map((task) => counter('trawl_upkeep_errors_total', from(leader, { task }), 0)),
    counter('trawl_kube_refused_total', from(leader), 0),
    gauge('trawl_kube_wait_seconds', from(leader), 0),
    gauge('trawl_cleanups_postponed', from(leader), ({ busy, random }) => Math.round(6 * busy * random())),
    gauge('trawl_oldest_leaving_seconds', from(leader), ({ random }) => 3 * random()),
    ...instances.egress.flatMap((instance) =>
      verdicts.map(([verdict, perSecond]) => {
        return counter(
          'trawl_egress_connections_total',
          from(instance, { verdict }),
          ({ busy }) => (busy * perSecond) / 2,
        );
      }),
    ),
    gauge('trawl_yt_dlp_info', from(instances.inspector[0], { version: '2026.11.10' }), 1),
    gauge('trawl_yt_dlp_released_seconds', from(instances.inspector[0]), releasedBefore(13)),
    ...(['available', 'capacity'] as const).map((what) => {
      const labels = from('node-1', { persistentvolumeclaim: 'data-trawl-redis-0' });
      return gauge(`kubelet_volume_stats_${what}_bytes`, labels, what === 'capacity' ? 8.5e9 : 6.9e9);
    }),
  ];
}

/** Returns the value of a series: the time, in seconds since 1970, that many days before the end of its history. */
export function releasedBefore(days: number): (moment: Moment) => number {
  return ({ end }) => end - days * 86_400;
}
