import { clusterScenarios } from './cluster-scenarios.ts';
import type { Scenario } from './scenario.ts';

const errors = 'trawl_http_requests_total{route="/v1/usage",status="503"}';
const faults = 'trawl_jobs_total{endpoint="video",outcome="failed",code="worker_failed",blame="us"}';
const atOnce = 'trawl_job_seconds_bucket{endpoint="video",stage="queue",le="60"}';

/** What is planned and fires no alert. */
export const silentScenarios: readonly Omit<Scenario, 'fires'>[] = [
  {
    title: 'while a drain of half an hour refuses calls',
    change: { [errors]: '0x359 0+120x40', trawl_drain_seconds: '0x359 0+60x40' },
  },
  {
    title: 'just after such a drain',
    change: { [errors]: '0x359 0+120x26 3120x14', trawl_drain_seconds: '0x359 0+60x26 0x14' },
  },
  {
    title: 'twenty minutes after such a drain',
    change: { [errors]: '0x339 0+120x30 3600x30', trawl_drain_seconds: '0x339 0+60x30 0x30' },
  },
  {
    title: 'after one job of three in an hour has failed through our fault, and one call of 30',
    change: {
      'trawl_jobs_total{endpoint="video",outcome="completed",code="",blame=""}': '0+0.05x400',
      'trawl_jobs_total{endpoint="video",outcome="failed",code="private",blame="caller"}': '0x400',
      [faults]: '1x386 2x13',
      'trawl_http_requests_total{route="/v1/usage",status="200"}': '0+0.5x400',
      [errors]: '1x386 2x13',
    },
  },
  {
    // Without a sample at the beginning of its window, as mostly in a real Prometheus, an increase is a little more than what was counted.
    title: 'after two jobs, five answers, three purchases, three mails, five tasks and five removals have failed',
    change: {
      'trawl_jobs_total{endpoint="video",outcome="completed",code="",blame=""}': '0+0.05x400',
      'trawl_jobs_total{endpoint="video",outcome="failed",code="private",blame="caller"}': '0x400',
      [faults]: '40x327 _x3 40x54 41x1 42x12',
      'trawl_http_requests_total{route="/v1/usage",status="200"}': '0+0.5x400',
      [errors]: '40x327 _x3 40x54 42x1 45x12',
      'trawl_purchases_total{outcome="unknown"}': '40x366 _x9 40x3 41x1 43x18',
      'trawl_mails_total{outcome="sent"}': '9x400',
      'trawl_mails_total{outcome="delayed"}': '40x319 41x1 43x78',
      'trawl_upkeep_errors_total{task="sweep"}': '40x366 _x9 40x3 42x1 45x18',
      trawl_removal_errors_total: '40x299 _x31 40x13 42x1 45x54',
    },
  },
  {
    title: 'in a namespace with trawl up, which has all parts in it, and a dashboard apart',
    change: {
      'trawl_build_info{namespace="music",instance="up",version="1.0.0",role="up"}': '1x400',
      'trawl_build_info{namespace="music",instance="dashboard",version="1.0.0",role="dashboard"}': '1x400',
      'trawl_leader{namespace="music",instance="up"}': '1x400',
    },
  },
  {
    title: 'while the 1,000 jobs of one account are worked off for hours, one after the other',
    change: { trawl_oldest_queued_seconds: '0x99 0+60x300' },
  },
  {
    title: 'while an account cancels its jobs, and others make room for it',
    change: {
      'trawl_attempts_total{class="cancelled"}': '0x340 0+30x60',
      'trawl_attempts_total{class="preempted"}': '0x340 0+30x60',
    },
  },
  {
    title: 'while the volume of a Redis of another program is full, in a namespace without trawl',
    change: {
      'kubelet_volume_stats_available_bytes{namespace="shop",persistentvolumeclaim="data-redis-0"}': '500000000x400',
      'kubelet_volume_stats_capacity_bytes{namespace="shop",persistentvolumeclaim="data-redis-0"}': '10000000000x400',
    },
  },
];

/** A fault each, with the alerts that it fires and no other. */
export const scenarios: readonly Scenario[] = [
  {
    title: 'the API has refused calls for half an hour',
    change: { [errors]: '0x359 0+24x40' },
    fires: {
      TrawlApiErrors: {
        summary: 'The API answers 3.846% of its calls with an error of ours',
        description: 'Most of them each second: /v1/usage 503 0.40',
      },
    },
  },
  {
    title: 'the API refuses calls long after a drain, and another namespace drains',
    change: {
      [errors]: '0x359 0+24x40',
      trawl_drain_seconds: '0x299 0+60x30 0x70',
      'trawl_drain_seconds{namespace="music"}': '0x359 0+60x40',
    },
    fires: {
      TrawlApiErrors: {
        summary: 'The API answers 3.846% of its calls with an error of ours',
        description: 'Most of them each second: /v1/usage 503 0.40',
      },
    },
  },
  {
    title: 'the API has refused a few calls for five hours',
    change: { [errors]: '0x89 0+6x310' },
    fires: {
      TrawlApiErrorsSlow: {
        summary: 'The API has answered 0.9901% of its calls with an error of ours for hours',
        description: 'Most of them in six hours: /v1/usage 503 1.8k',
      },
    },
  },
  {
    title: 'jobs have failed through our fault for 25 minutes',
    change: { [faults]: '0x364 0+44x35' },
    fires: {
      TrawlJobsFail: {
        summary: 'Of the jobs that end, 40% fail through our fault',
        description: 'Most of them each second: worker_failed 0.73',
      },
    },
  },
  {
    title: 'some jobs have failed through our fault for five hours',
    change: { [faults]: '0x89 0+8x310' },
    fires: {
      TrawlJobsFailSlow: {
        summary: 'Of the jobs that ended in the last hours, 10.81% failed through our fault',
        description: 'Most of them in six hours: worker_failed 2.4k',
      },
    },
  },
  {
    title: 'jobs wait for more than a minute',
    change: { [atOnce]: '0+60x300 18030+30x99' },
    fires: {
      TrawlJobsStartLate: {
        summary: 'Of the jobs that end, 50% had waited for more than a minute before they ran',
        description: 'Queued now: 3; running: 40',
      },
    },
  },
  {
    title: 'no job is done any more, and one waits for ever',
    change: {
      trawl_oldest_queued_seconds: '0x299 0+60x100',
      'trawl_attempts_total{class="done"}': '0+60x299 17940x100',
      'trawl_attempts_total{class="interrupted"}': '0x400',
    },
    fires: {
      TrawlQueueStuck: {
        summary: 'The oldest job has waited for its first worker for 1h 30m 0s',
        description: 'Queued now: 3; running: 40',
      },
    },
  },
  {
    title: 'a job has waited for half a day while others are done',
    change: { trawl_oldest_queued_seconds: '20500+60x400' },
    fires: {
      TrawlQueueStuck: {
        summary: 'The oldest job has waited for its first worker for 12h 11m 40s',
        description: 'Queued now: 3; running: 40',
      },
    },
  },
  {
    title: 'webhooks pile up',
    change: { trawl_oldest_webhook_seconds: '0x369 0+60x30' },
    fires: { TrawlWebhooksLate: { summary: 'The oldest due webhook is 20m 0s late', description: 'Due now: 2' } },
  },
  {
    title: 'a ledger is wrong',
    change: { trawl_ledger_problems: '0x379 2x20' },
    fires: { TrawlLedgerProblem: { summary: 'Differences that the hourly check of the ledgers found: 2' } },
  },
  {
    title: 'nobody checks the ledgers',
    change: { trawl_ledger_verify_age_seconds: '0+60x400' },
    fires: { TrawlLedgerUnchecked: { summary: 'The ledgers were last checked 6h 30m 0s ago' } },
  },
  {
    title: 'a job is charged without a balance',
    change: { trawl_overdrafts_total: '0x369 1x30' },
    fires: { TrawlOverdraft: { summary: 'Jobs charged in the last hour although every balance was empty: 1' } },
  },
  {
    title: 'the payment provider gives no answer to one purchase',
    change: { 'trawl_purchases_total{outcome="unknown"}': '0x364 0+0.6667x35' },
    fires: {
      TrawlPurchasesUnknown: {
        summary: 'Tries of purchases in 15 minutes to which the payment provider gave no answer: 10',
      },
    },
  },
  {
    title: 'one mail has been tried again and again for five hours, and no other is due',
    change: {
      'trawl_mails_total{outcome="sent"}': '9x400',
      'trawl_mails_total{outcome="delayed"}': '0x89 1x1 2x1 3x3 4x7 5x15 6x31 7x250',
    },
    fires: {
      TrawlMailsFail: { summary: 'Tries of mails in twelve hours that failed, with none sent in the last: 7' },
    },
  },
  {
    title: 'a job is not settled',
    change: { trawl_oldest_unsettled_seconds: '0x369 0+60x30' },
    fires: {
      TrawlUnsettled: {
        summary: 'A job whose worker has ended has waited for 20m 0s to be charged or released',
        description: 'Credits on hold now: 43; the object store does not answer 0 parts',
      },
    },
  },
  {
    title: 'one part does not reach Redis',
    change: { 'trawl_redis_ready{instance="api"}': '1x384 0x15' },
    fires: {
      TrawlRedisAway: { summary: 'Of the parts of trawl, 1 cannot reach Redis', description: 'Without Redis: api' },
    },
  },
  {
    title: 'Redis is full',
    change: { 'trawl_admissions_closed{reason="memory"}': '0x384 1x15', trawl_redis_memory_ratio: '0.4x369 0.86x30' },
    fires: {
      TrawlAdmissionsClosed: {
        summary: 'New jobs and calls get 503 because of memory',
        description: 'Redis uses 86% of its memory; admissions stop at 85 %',
        labels: { reason: 'memory' },
      },
      TrawlRecordFull: { summary: 'Redis uses 86% of its memory; admissions stop at 85 %' },
    },
  },
  {
    title: 'a drain is forgotten',
    change: { trawl_drain_seconds: '0x300 0+60x99' },
    fires: { TrawlDrainForgotten: { summary: 'New jobs and calls have got 503 for 1h 29m 0s because of a drain' } },
  },
  {
    title: 'Redis has no limit',
    change: { trawl_redis_memory_unlimited: '1x400' },
    fires: { TrawlRecordUnlimited: { summary: 'Redis has no memory limit of its own' } },
  },
  {
    title: 'no backup has been completed since yesterday',
    change: { trawl_backup_age_seconds: '93780x400' },
    fires: { TrawlBackupOld: { summary: 'No backup of the record has been completed for 1d 2h 3m 0s' } },
  },
  {
    title: 'Redis may lose changes',
    change: { trawl_durability_relaxed: '1x400' },
    fires: { TrawlDurabilityRelaxed: { summary: 'A crash of Redis may lose jobs and charges that were answered' } },
  },
  {
    title: 'no replica keeps up',
    change: { trawl_redis_unreplicated_total: '0x369 0+5x30' },
    fires: {
      TrawlReplicaBehind: {
        summary: 'In ten minutes 50 batches of changes reached no replica of Redis, and their callers got 503',
        description: 'Replicas now: 1',
      },
    },
  },
  {
    title: 'the clock of Redis jumps',
    change: { 'trawl_clock_steady{instance="controller"}': '1x384 0x15' },
    fires: {
      TrawlClockMoved: {
        summary: 'The clock of Redis has jumped; nothing is removed or ended for its age for ten minutes',
        description: 'The clocks of the machines differ from it by up to 100ms; seen by controller',
      },
    },
  },
  {
    title: 'the clock of a machine goes back',
    change: { 'trawl_clock_difference_seconds{instance="api"}': '-75x400' },
    fires: {
      TrawlClockDifference: {
        summary: 'The clock of a machine differs from that of Redis by 1m 15s',
        description: 'By more than two seconds: api 1m 15s',
      },
    },
  },
  ...clusterScenarios,
];
