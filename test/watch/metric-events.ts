/** The event that moves a metric, and the test that sees it. */
export interface MetricEvent {
  readonly metric: string;
  readonly event: string;
  /** Path below `test`, and words of the title. */
  readonly test: readonly [file: string, title: string];
}

const moves = 'watch/moves.test.ts';
const cluster = 'kube_wait_seconds, cleanups_postponed';
const settled = 'jobs_total, charges_total';
const redis = 'redis_seconds, redis_replicas';
const queued = 'webhooks_due, oldest_webhook_seconds';
const passes = ['controller/controller.test.ts', 'counts a step that fails, and the time of each full pass'] as const;
const calls = ['api/metrics.test.ts', 'D38: trawl_auth_failures_total on /metrics'] as const;

/** Every metric of docs/metrics.md. */
export const metricEvents: readonly MetricEvent[] = [
  { metric: 'http_requests_total', event: 'a call is answered', test: calls },
  { metric: 'http_request_seconds', event: 'a call is answered', test: calls },
  {
    metric: 'connections_dropped_total',
    event: 'an address has more than 100 connections without a request',
    test: ['attack/idle-requests.test.ts', 'above 100 of an address cost it the oldest'],
  },
  { metric: 'jobs_total', event: 'a job fails', test: [moves, settled] },
  {
    metric: 'job_seconds',
    event: 'a job ends after it has waited for the object store',
    test: ['controller/job-metrics.test.ts', 'trawl_job_seconds splits the life of a job'],
  },
  {
    metric: 'jobs_open',
    event: 'a job is admitted and cancelled',
    test: ['controller/gauges.test.ts', 'show the holds and the queue'],
  },
  { metric: 'oldest_queued_seconds', event: 'a job waits for 90 s', test: [moves, queued] },
  {
    metric: 'holds_open',
    event: 'a job is admitted and cancelled',
    test: ['controller/gauges.test.ts', 'show the holds and the queue'],
  },
  { metric: 'charges_total', event: 'a job is charged', test: [moves, settled] },
  {
    metric: 'ledger_problems',
    event: 'a ledger cannot be checked',
    test: ['controller/ledger-check.test.ts', 'counts an account that cannot be checked as a problem'],
  },
  {
    metric: 'ledger_verify_age_seconds',
    event: 'an hour passes',
    test: ['controller/ledger-check.test.ts', 'is made once an hour, and its age is a metric'],
  },
  {
    metric: 'webhook_deliveries_total',
    event: 'a webhook is delivered',
    test: ['webhooks/deliver-webhooks.test.ts', 'D94: a completed job sends one webhook'],
  },
  {
    metric: 'webhook_delay_seconds',
    event: 'the webhook of a job is sent for the first time',
    test: ['webhooks/deliver-webhooks.test.ts', 'D94: a completed job sends one webhook'],
  },
  { metric: 'webhooks_due', event: 'a job with a webhook ends', test: [moves, queued] },
  { metric: 'oldest_webhook_seconds', event: 'a webhook waits for 90 s', test: [moves, queued] },
  { metric: 'auth_failures_total', event: 'a call has no key or an unknown one', test: calls },
  { metric: 'blocked_ips', event: 'an address is blocked', test: [moves, queued] },
  { metric: 'redis_seconds', event: 'a script runs', test: [moves, redis] },
  { metric: 'redis_ready', event: 'Redis ends', test: [moves, redis] },
  {
    metric: 'redis_memory_ratio',
    event: 'the memory of Redis grows',
    test: ['api/hung.test.ts', 'admits no job, and free routes are served'],
  },
  {
    metric: 'redis_memory_unlimited',
    event: 'Redis gets a limit of its own',
    test: ['store/admission-gate.test.ts', 'closes the gate at 85 %'],
  },
  { metric: 'clock_steady', event: 'the clock of Redis jumps', test: [moves, 'clock_steady and clock_difference'] },
  {
    metric: 'clock_difference_seconds',
    event: 'the clock of a machine differs',
    test: [moves, 'clock_steady and clock_difference'],
  },
  {
    metric: 'object_store_ready',
    event: 'the object store goes away and returns',
    test: ['controller/storage-lane.test.ts', 'are made by one probe alone while the object store is away'],
  },
  {
    metric: 'stray_objects',
    event: 'objects are found that the record does not know',
    test: ['controller/sweeper.test.ts', 'removes objects that the record does not know'],
  },
  {
    metric: 'removal_errors_total',
    event: 'a file cannot be removed',
    test: ['controller/sweeper.test.ts', 'removes every other file although one cannot be removed'],
  },
  {
    metric: 'durability_relaxed',
    event: 'a role opens a Redis that may lose changes',
    test: ['api/canary.test.ts', 'are left out of metrics that show versions, durability'],
  },
  {
    metric: 'admissions_closed',
    event: 'a setting of Redis becomes wrong and right again',
    test: ['api/durability.test.ts', 'admits nothing with strict'],
  },
  { metric: 'backup_age_seconds', event: 'a backup is begun and not completed', test: [moves, queued] },
  { metric: 'drain_seconds', event: 'an operator drains', test: [moves, queued] },
  { metric: 'redis_replicas', event: 'Redis has a replica', test: [moves, redis] },
  { metric: 'redis_replica_seconds', event: 'a replica has a change', test: [moves, redis] },
  { metric: 'redis_unreplicated_total', event: 'the replica does not answer', test: [moves, redis] },
  {
    metric: 'egress_connections_total',
    event: 'egress opens and refuses connections',
    test: ['egress/role.test.ts', 'counts connections by verdict'],
  },
  {
    metric: 'source_outcomes_total',
    event: 'a job is settled',
    test: ['controller/job-metrics.test.ts', 'trawl_source_outcomes_total counts settled jobs by site'],
  },
  {
    metric: 'leader',
    event: 'a controller loses its lead and has it again',
    test: ['controller/controller.test.ts', 'gives up leadership while Redis is away'],
  },
  { metric: 'reconcile_seconds', event: 'a full pass ends', test: passes },
  { metric: 'reconcile_errors_total', event: 'a worker cannot be started', test: passes },
  {
    metric: 'upkeep_errors_total',
    event: 'the record cannot be read',
    test: ['controller/gauges.test.ts', 'that cannot be read are a warning and a count'],
  },
  { metric: 'watch_age_seconds', event: 'the watch hears nothing for 2 s', test: [moves, cluster] },
  { metric: 'kube_refused_total', event: 'the API server answers 429', test: [moves, 'kube_refused_total counts'] },
  { metric: 'kube_wait_seconds', event: 'a request waits for its turn', test: [moves, cluster] },
  { metric: 'cleanups_postponed', event: 'cleanups are postponed', test: [moves, cluster] },
  { metric: 'oldest_leaving_seconds', event: 'a pod has been deleted for 30 s', test: [moves, cluster] },
  { metric: 'attempts_waiting', event: 'workers wait for a node and for an image', test: [moves, cluster] },
  {
    metric: 'attempts_total',
    event: 'an attempt ends',
    test: ['controller/job-metrics.test.ts', 'trawl_attempts_total counts'],
  },
  { metric: 'unclassified_failures_total', event: 'a job fails without a rule', test: [moves, settled] },
  { metric: 'yt_dlp_info', event: 'an inspector starts', test: [moves, 'yt_dlp_info and yt_dlp_released_seconds'] },
  {
    metric: 'yt_dlp_released_seconds',
    event: 'an inspector starts',
    test: [moves, 'yt_dlp_info and yt_dlp_released_seconds'],
  },
  {
    metric: 'spans_total',
    event: 'spans are sent and given up',
    test: ['watch/traces.test.ts', 'are sent, or counted as dropped where too many wait'],
  },
  {
    metric: 'certificate_ends_seconds',
    event: 'a part gets a new certificate',
    test: ['egress/certificate-ends.test.ts', 'shows the end of the certificate that a part serves'],
  },
  { metric: 'build_info', event: 'a role starts', test: calls },
  {
    metric: 'purchases_total',
    event: 'a top-up is paid',
    test: ['billing/payments.test.ts', 'topup-buy: charge the stored method'],
  },
  {
    metric: 'mails_total',
    event: 'an invoice is mailed',
    test: ['billing/mails.test.ts', 'events-7: bring the invoice to every owner'],
  },
  {
    metric: 'lapses_total',
    event: 'a billing period ends',
    test: [moves, 'lapses_total counts the quota that a period leaves'],
  },
  { metric: 'overdrafts_total', event: 'a charge finds every balance empty', test: [moves, settled] },
  {
    metric: 'oldest_unsettled_seconds',
    event: 'a job has waited for 90 s to be settled',
    test: ['controller/gauges.test.ts', 'show the age of the oldest unsettled job'],
  },
];
