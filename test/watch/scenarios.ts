export interface Scenario {
  readonly title: string;
  /** Series that differ from a healthy system, one value a minute for 400 minutes. */
  readonly change: Readonly<Record<string, string>>;
  /** The alerts that fire after 390 minutes, with their sentences. */
  readonly fires: Readonly<Record<string, string>>;
}

/** A series of the kubelet about the volume of Redis. */
function volume(what: 'available' | 'capacity'): string {
  return `kubelet_volume_stats_${what}_bytes{persistentvolumeclaim="data-trawl-redis-0"}`;
}

/** A busy system without a fault, as Prometheus sees it: one value a minute. */
export const healthy: Readonly<Record<string, string>> = {
  'trawl_http_requests_total{route="/v1/usage",status="200"}': '0+600x400',
  'trawl_http_requests_total{route="/v1/usage",status="503"}': '0x400',
  'trawl_jobs_total{endpoint="video",outcome="completed",code="",blame=""}': '0+60x400',
  'trawl_jobs_total{endpoint="video",outcome="failed",code="private",blame="caller"}': '0+6x400',
  'trawl_jobs_total{endpoint="video",outcome="failed",code="worker_failed",blame="us"}': '0x400',
  'trawl_job_seconds_bucket{endpoint="video",stage="queue",le="60"}': '0+60x400',
  'trawl_job_seconds_bucket{endpoint="video",stage="queue",le="+Inf"}': '0+60x400',
  'trawl_job_seconds_count{endpoint="video",stage="queue"}': '0+60x400',
  trawl_oldest_queued_seconds: '5x400',
  trawl_oldest_webhook_seconds: '1x400',
  'trawl_webhook_deliveries_total{outcome="delivered"}': '0+30x400',
  'trawl_webhook_deliveries_total{outcome="retried"}': '0+1x400',
  'trawl_webhook_delay_seconds_bucket{le="60"}': '0+30x400',
  trawl_webhook_delay_seconds_count: '0+30x400',
  trawl_kube_refused_total: '0x400',
  trawl_kube_wait_seconds: '0x400',
  trawl_oldest_leaving_seconds: '2x400',
  [volume('available')]: '6000000000x400',
  [volume('capacity')]: '10000000000x400',
  trawl_ledger_problems: '0x400',
  trawl_ledger_verify_age_seconds: '1800x400',
  trawl_overdrafts_total: '0x400',
  trawl_oldest_unsettled_seconds: '2x400',
  'trawl_redis_ready{instance="api"}': '1x400',
  'trawl_redis_ready{instance="controller"}': '1x400',
  'trawl_admissions_closed{reason="memory"}': '0x400',
  trawl_drain_seconds: '0x400',
  trawl_redis_memory_ratio: '0.4x400',
  trawl_redis_memory_unlimited: '0x400',
  trawl_durability_relaxed: '0x400',
  trawl_backup_age_seconds: '3600x400',
  trawl_redis_unreplicated_total: '0x400',
  trawl_clock_steady: '1x400',
  trawl_clock_difference_seconds: '-0.1x400',
  'trawl_build_info{instance="api",version="1.0.0"}': '1x400',
  'trawl_build_info{instance="controller",version="1.0.0"}': '1x400',
  'trawl_leader{instance="controller"}': '1x400',
  'trawl_leader{instance="other"}': '0x400',
  'trawl_watch_age_seconds{instance="controller"}': '10x400',
  // A controller that does not lead may watch nothing.
  'trawl_watch_age_seconds{instance="other"}': '0+60x400',
  trawl_reconcile_errors_total: '0+1x400',
  'trawl_upkeep_errors_total{task="sweep"}': '0x400',
  'trawl_attempts_total{class="done"}': '0+60x400',
  'trawl_attempts_total{class="interrupted"}': '0+1x400',
  trawl_object_store_ready: '1x400',
  trawl_removal_errors_total: '0x400',
  trawl_unclassified_failures_total: '0x400',
  trawl_yt_dlp_released_seconds: '0x400',
  'trawl_egress_connections_total{verdict="open"}': '0+600x400',
  'trawl_egress_connections_total{verdict="failed_dns"}': '0+6x400',
  // Callers who name addresses that are not public are no fault of egress.
  'trawl_egress_connections_total{verdict="refused_address"}': '0+900x400',
  trawl_connections_dropped_total: '0+1x400',
  trawl_auth_failures_total: '0+5x400',
};

const errors = 'trawl_http_requests_total{route="/v1/usage",status="503"}';
const faults = 'trawl_jobs_total{endpoint="video",outcome="failed",code="worker_failed",blame="us"}';
const atOnce = 'trawl_job_seconds_bucket{endpoint="video",stage="queue",le="60"}';

/** A fault each, with the alerts that it fires and no other. */
export const scenarios: readonly Scenario[] = [
  {
    title: 'the API has refused calls for half an hour',
    change: { [errors]: '0x359 0+24x40' },
    fires: { TrawlApiErrors: 'The API answers 3.846% of its calls with an error of ours' },
  },
  {
    title: 'the API has refused a few calls for five hours',
    change: { [errors]: '0x89 0+6x310' },
    fires: { TrawlApiErrorsSlow: 'The API has answered 0.9901% of its calls with an error of ours for hours' },
  },
  {
    title: 'jobs have failed through our fault for 25 minutes',
    change: { [faults]: '0x364 0+44x35' },
    fires: { TrawlJobsFail: 'Of the jobs that end, 40% fail through our fault' },
  },
  {
    title: 'some jobs have failed through our fault for five hours',
    change: { [faults]: '0x89 0+8x310' },
    fires: { TrawlJobsFailSlow: 'Of the jobs that ended in the last hours, 10.81% failed through our fault' },
  },
  {
    title: 'jobs wait for more than a minute',
    change: { [atOnce]: '0+60x300 18030+30x99' },
    fires: { TrawlJobsStartLate: 'Of the jobs that end, 50% had waited for more than a minute before they ran' },
  },
  {
    title: 'a job waits for ever',
    change: { trawl_oldest_queued_seconds: '0x299 0+60x100' },
    fires: { TrawlQueueStuck: 'The oldest job has waited in the queue for 1h 30m 0s' },
  },
  {
    title: 'webhooks pile up',
    change: { trawl_oldest_webhook_seconds: '0x369 0+60x30' },
    fires: { TrawlWebhooksLate: 'The oldest due webhook is 20m 0s late' },
  },
  {
    title: 'a ledger is wrong',
    change: { trawl_ledger_problems: '0x379 2x20' },
    fires: { TrawlLedgerProblem: 'The hourly check of the ledgers found 2 problems' },
  },
  {
    title: 'nobody checks the ledgers',
    change: { trawl_ledger_verify_age_seconds: '0+60x400' },
    fires: { TrawlLedgerUnchecked: 'The ledgers were last checked 6h 30m 0s ago' },
  },
  {
    title: 'a job is charged without a balance',
    change: { trawl_overdrafts_total: '0x369 1x30' },
    fires: { TrawlOverdraft: 'Jobs were charged although every balance was empty' },
  },
  {
    title: 'a job is not settled',
    change: { trawl_oldest_unsettled_seconds: '0x369 0+60x30' },
    fires: { TrawlUnsettled: 'A job whose worker has ended has waited for 20m 0s to be charged or released' },
  },
  {
    title: 'one part does not reach Redis',
    change: { 'trawl_redis_ready{instance="api"}': '1x384 0x15' },
    fires: { TrawlRedisAway: 'A part of trawl does not reach Redis' },
  },
  {
    title: 'Redis is full',
    change: { 'trawl_admissions_closed{reason="memory"}': '0x384 1x15', trawl_redis_memory_ratio: '0.4x369 0.86x30' },
    fires: {
      TrawlAdmissionsClosed: 'New jobs and calls get 503 because of memory',
      TrawlRecordFull: 'Redis uses 86% of its memory; admissions stop at 85 %',
    },
  },
  {
    title: 'a drain is forgotten',
    change: { trawl_drain_seconds: '0x300 0+60x99' },
    fires: { TrawlDrainForgotten: 'New jobs and calls have got 503 for 1h 29m 0s because of a drain' },
  },
  {
    title: 'Redis has no limit',
    change: { trawl_redis_memory_unlimited: '1x400' },
    fires: { TrawlRecordUnlimited: 'Redis has no memory limit of its own' },
  },
  {
    title: 'no backup has been completed since yesterday',
    change: { trawl_backup_age_seconds: '93780x400' },
    fires: { TrawlBackupOld: 'The last complete backup of the record is 1d 2h 3m 0s old' },
  },
  {
    title: 'Redis may lose changes',
    change: { trawl_durability_relaxed: '1x400' },
    fires: { TrawlDurabilityRelaxed: 'A crash of Redis may lose jobs and charges that were answered' },
  },
  {
    title: 'no replica keeps up',
    change: { trawl_redis_unreplicated_total: '0x369 0+5x30' },
    fires: { TrawlReplicaBehind: 'No replica of Redis has changes within a second, and their callers get 503' },
  },
  {
    title: 'the clock of Redis jumps',
    change: { trawl_clock_steady: '1x384 0x15' },
    fires: {
      TrawlClockMoved: 'The clock of Redis has jumped; nothing is removed or ended for its age for ten minutes',
    },
  },
  {
    title: 'the clock of a machine goes back',
    change: { trawl_clock_difference_seconds: '-75x400' },
    fires: { TrawlClockDifference: 'The clock of a machine differs from that of Redis by 1m 15s' },
  },
  {
    title: 'no controller leads',
    change: { 'trawl_leader{instance="controller"}': '1x384 0x15' },
    fires: { TrawlNoLeader: 'No controller leads, so no job starts or ends' },
  },
  {
    title: 'the watch of the leader hears nothing',
    change: { 'trawl_watch_age_seconds{instance="controller"}': '0x379 0+60x20' },
    fires: { TrawlWatchStale: 'The leader has heard nothing of its Jobs from Kubernetes for 10m 0s' },
  },
  {
    title: 'a task of the controller fails',
    change: { 'trawl_upkeep_errors_total{task="sweep"}': '0x359 0+1x40' },
    fires: { TrawlControllerErrors: 'The controller has failed 15 times in 15 minutes' },
  },
  {
    title: 'nodes go away',
    change: { 'trawl_attempts_total{class="interrupted"}': '0+1x340 370+30x59' },
    fires: { TrawlInterruptions: 'In half an hour 900 attempts were interrupted, more than a fifth' },
  },
  {
    title: 'the object store is away',
    change: { trawl_object_store_ready: '1x379 0x20' },
    fires: { TrawlObjectStoreAway: 'The object store does not answer, so no download can end' },
  },
  {
    title: 'files cannot be removed',
    change: { trawl_removal_errors_total: '0x329 0+1x70' },
    fires: { TrawlRemovalsFail: 'Files that are over their time cannot be removed from the object store' },
  },
  {
    title: 'failures are not understood',
    change: { trawl_unclassified_failures_total: '0+3x400' },
    fires: { TrawlUnclassifiedFailures: 'For 4.545% of the jobs no rule explains why they failed' },
  },
  {
    title: 'yt-dlp is 31 days old',
    change: { trawl_yt_dlp_released_seconds: '-2655000x400' },
    fires: { TrawlYtDlpOld: 'The yt-dlp in use is 31d 0h 0m 0s old' },
  },
  {
    title: 'no name is found',
    change: { 'trawl_egress_connections_total{verdict="failed_dns"}': '0+6x360 8160+6000x39' },
    fires: { TrawlEgressFails: 'Of the connections to sources, 80% cannot be made' },
  },
  {
    title: 'somebody guesses keys',
    change: { trawl_auth_failures_total: '0+5x370 2450+600x29' },
    fires: {
      TrawlHostileLoad: 'Somebody opens connections without requests, guesses keys, or calls far above a share',
    },
  },
  {
    title: 'an account calls far above its share',
    change: { 'trawl_http_requests_total{route="/v1/usage",status="429"}': '0+5x370 1850+900x29' },
    fires: {
      TrawlHostileLoad: 'Somebody opens connections without requests, guesses keys, or calls far above a share',
    },
  },
  {
    title: 'receivers refuse webhooks',
    change: {
      'trawl_webhook_deliveries_total{outcome="retried"}': '0x365 0+40x34',
      'trawl_webhook_deliveries_total{outcome="delivered"}': '0+10x400',
    },
    fires: { TrawlWebhooksFail: 'Of the attempts to deliver a webhook, 80% fail' },
  },
  {
    title: 'webhooks are sent late',
    change: { 'trawl_webhook_delay_seconds_bucket{le="60"}': '0+10x300 3000x99' },
    fires: {
      TrawlWebhooksSlow: 'Of the webhooks, 100% are first sent more than a minute after their job has ended',
    },
  },
  {
    title: 'the volume of Redis is nearly full',
    change: { [volume('available')]: '900000000x400' },
    fires: { TrawlVolumeFull: 'The volume of Redis is full, or will be within five days' },
  },
  {
    title: 'the volume of Redis grows full',
    change: { [volume('available')]: '4900000000-1000000x400' },
    fires: { TrawlVolumeFull: 'The volume of Redis is full, or will be within five days' },
  },
  {
    title: 'the API server refuses requests',
    change: { trawl_kube_refused_total: '0x374 0+10x25' },
    fires: {
      TrawlApiServerThrottles: 'The API server of Kubernetes refuses requests as too many, or they wait for their turn',
    },
  },
  {
    title: 'a finalizer is held',
    change: { trawl_oldest_leaving_seconds: '0x364 0+60x35' },
    fires: { TrawlFinalizersHeld: 'A deleted Job or pod of a worker is still there after 25m 0s' },
  },
];
