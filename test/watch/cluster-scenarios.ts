import { volume } from './healthy-series.ts';
import type { Scenario } from './scenario.ts';

/** Faults of the cluster, the workers and the sources. */
export const clusterScenarios: readonly Scenario[] = [
  {
    title: 'the certificate of egress was not renewed',
    change: { 'trawl_certificate_ends_seconds{instance="egress",use="served"}': '455400x400' },
    fires: {
      TrawlCertificateEnds: {
        summary: 'Time until a certificate between the parts of trawl ends: 5d 0h 0m 0s',
        description: 'Parts with it: egress (served)',
      },
    },
  },
  {
    title: 'no controller leads',
    change: { 'trawl_leader{instance="controller"}': '1x384 0x15' },
    fires: {
      TrawlNoLeader: {
        summary: 'No controller leads, so no job starts or ends',
        description: 'Controllers that Prometheus has read: controller, other',
      },
    },
  },
  {
    title: 'Prometheus reads no controller of a namespace, but one of another',
    change: {
      'trawl_leader{instance="controller"}': '_x400',
      'trawl_leader{instance="other"}': '_x400',
      'trawl_leader{namespace="music",instance="controller"}': '1x400',
    },
    fires: {
      TrawlNoLeader: {
        summary: 'No controller leads, so no job starts or ends',
        description: 'Controllers that Prometheus has read: ',
      },
    },
  },
  ...(['api', 'inspector', 'egress'] as const).map((role) => ({
    title: `every pod of the ${role} is gone, and another namespace has them all in one process`,
    change: {
      [`trawl_build_info{instance="${role}",version="1.0.0",role="${role}"}`]: '1x374 _x25',
      'trawl_build_info{namespace="music",instance="up",version="1.0.0",role="up"}': '1x400',
      'trawl_leader{namespace="music",instance="up"}': '1x400',
    },
    fires: {
      TrawlPartAway: {
        summary: `Prometheus sees no ${role}, but other parts of trawl`,
        description: `Parts that Prometheus sees: ${['api', 'controller', 'egress', 'inspector']
          .filter((one) => one !== role)
          .map((one) => `1 ${one}`)
          .join(', ')}`,
        labels: { role },
      },
    },
  })),
  {
    title: 'the cluster makes no pod for two attempts',
    change: { 'trawl_attempts_waiting{instance="controller",wait="pod"}': '0x379 2x20' },
    fires: {
      TrawlPodsRefused: {
        summary: 'Attempts for which the cluster makes no pod: 2',
        description: 'Attempts that wait otherwise: room 3',
      },
    },
  },
  {
    title: 'the watch of the leader hears nothing, also of the pods of two attempts',
    change: {
      'trawl_watch_age_seconds{instance="controller"}': '0x379 0+60x20',
      'trawl_attempts_waiting{instance="controller",wait="pod"}': '0x379 2x20',
    },
    fires: {
      TrawlWatchStale: {
        summary: 'The leader controller has heard nothing of its Jobs from Kubernetes for 10m 0s',
        labels: { instance: 'controller' },
      },
    },
  },
  {
    title: 'a task of the controller fails',
    change: { 'trawl_upkeep_errors_total{task="sweep"}': '0x359 0+1x40' },
    fires: {
      TrawlControllerErrors: {
        summary: 'Failed steps and tasks of the controller: 15',
        description:
          'In 15 minutes, steps of jobs: 15; tasks: sweep 15. In a day, lists of entries that the archive left: 0',
      },
    },
  },
  {
    title: 'steps of jobs fail',
    change: { trawl_reconcile_errors_total: '0+1x359 364+5x40' },
    fires: {
      TrawlControllerErrors: {
        summary: 'Failed steps and tasks of the controller: 75',
        description: 'In 15 minutes, steps of jobs: 75; tasks: . In a day, lists of entries that the archive left: 0',
      },
    },
  },
  {
    title: 'the archive cannot move the days of an account, which it tries once a day',
    change: { 'trawl_upkeep_errors_total{task="days"}': '0x99 1x300' },
    fires: {
      TrawlControllerErrors: {
        summary: 'Failed steps and tasks of the controller: 1',
        description: 'In 15 minutes, steps of jobs: 15; tasks: . In a day, lists of entries that the archive left: 1',
      },
    },
  },
  {
    title: 'nodes go away',
    change: { 'trawl_attempts_total{class="interrupted"}': '0+1x340 370+30x59' },
    fires: {
      TrawlInterruptions: {
        summary: 'In half an hour 900 attempts were interrupted, more than a fifth',
        description: 'That is 33.33% of all attempts',
      },
    },
  },
  {
    title: 'the object store is away',
    change: { 'trawl_object_store_ready{instance="controller"}': '1x379 0x20' },
    fires: {
      TrawlObjectStoreAway: {
        summary: 'The object store does not answer or takes no file, so no download can end',
        description: 'Without an answer: controller',
      },
    },
  },
  {
    title: 'the collector of traces takes a part of the spans',
    change: { 'trawl_spans_total{outcome="dropped"}': '0x359 0+200x40' },
    fires: {
      TrawlSpansDropped: {
        summary: 'Of the spans for the collector of traces, 25% are dropped',
        description: 'In 15 minutes: 3k dropped, 9k exported',
      },
    },
  },
  {
    title: 'files cannot be removed',
    change: { trawl_removal_errors_total: '0x329 0+1x70' },
    fires: { TrawlRemovalsFail: { summary: 'In an hour 60 files that are over their time could not be removed' } },
  },
  {
    title: 'failures are not understood',
    change: { trawl_unclassified_failures_total: '0+3x400' },
    fires: {
      TrawlUnclassifiedFailures: {
        summary: 'For 4.545% of the jobs no rule explains why they failed',
        description: 'In six hours: 1.08k of 23.76k jobs',
      },
    },
  },
  {
    title: 'yt-dlp is 31 days old',
    change: { trawl_yt_dlp_released_seconds: '-2655000x400' },
    fires: { TrawlYtDlpOld: { summary: 'The yt-dlp in use is 31d 0h 0m 0s old', description: 'In use: 2026.11.10' } },
  },
  {
    title: 'no name is found',
    change: { 'trawl_egress_connections_total{verdict="failed_dns"}': '0+6x360 8160+6000x39' },
    fires: {
      TrawlEgressFails: {
        summary: 'Of the connections to sources, 80% cannot be made',
        description: 'Each second: failed_dns 100.00, open 10.00, refused_address 15.00',
      },
    },
  },
  {
    title: 'somebody guesses keys',
    change: { trawl_auth_failures_total: '0+5x370 2450+600x29' },
    fires: {
      TrawlHostileLoad: {
        summary: 'Somebody opens connections without requests, guesses keys, or calls far above a share',
        description: 'In ten minutes: 10 connections dropped, 6k calls without a valid key, 0 above a rate',
      },
    },
  },
  {
    title: 'somebody opens connections without requests',
    change: { trawl_connections_dropped_total: '0+1x370 970+600x29' },
    fires: {
      TrawlHostileLoad: {
        summary: 'Somebody opens connections without requests, guesses keys, or calls far above a share',
        description: 'In ten minutes: 6k connections dropped, 50 calls without a valid key, 0 above a rate',
      },
    },
  },
  {
    title: 'an account calls far above its share',
    change: { 'trawl_http_requests_total{route="/v1/usage",status="429"}': '0+5x370 1850+900x29' },
    fires: {
      TrawlHostileLoad: {
        summary: 'Somebody opens connections without requests, guesses keys, or calls far above a share',
        description: 'In ten minutes: 10 connections dropped, 50 calls without a valid key, 9k above a rate',
      },
    },
  },
  {
    title: 'receivers refuse webhooks',
    change: {
      'trawl_webhook_deliveries_total{outcome="retried"}': '0x365 0+40x34',
      'trawl_webhook_deliveries_total{outcome="delivered"}': '0+10x400',
    },
    fires: {
      TrawlWebhooksFail: {
        summary: 'Of the attempts to deliver a webhook, 80% fail',
        description: 'In ten minutes: 100 delivered, 400 retried',
      },
    },
  },
  {
    title: 'webhooks are sent late',
    change: { 'trawl_webhook_delay_seconds_bucket{le="60"}': '0+10x300 3000x99' },
    fires: {
      TrawlWebhooksSlow: {
        summary: 'Of the webhooks, 100% are first sent more than a minute after their job has ended',
        description: 'Due now: 2',
      },
    },
  },
  {
    title: 'the volume of Redis is nearly full',
    change: { [volume('available')]: '900000000x400' },
    fires: {
      TrawlVolumeFull: {
        summary: 'Only 9% of data-trawl-redis-0 is free, or growth fills it in days',
        labels: { persistentvolumeclaim: 'data-trawl-redis-0' },
      },
    },
  },
  {
    title: 'the volume of Redis grows full',
    change: { [volume('available')]: '4900000000-1000000x400' },
    fires: {
      TrawlVolumeFull: {
        summary: 'Only 45.1% of data-trawl-redis-0 is free, or growth fills it in days',
        labels: { persistentvolumeclaim: 'data-trawl-redis-0' },
      },
    },
  },
  {
    title: 'the API server refuses requests',
    change: { trawl_kube_refused_total: '0x374 0+10x25' },
    fires: {
      TrawlApiServerThrottles: {
        summary: 'The API server of Kubernetes refuses requests as too many, or they wait for their turn',
        description: 'Refused in ten minutes: 100; a new request waits for 0s',
      },
    },
  },
  {
    title: 'requests to the API server wait for their turn',
    change: { trawl_kube_wait_seconds: '0x374 12x25' },
    fires: {
      TrawlApiServerThrottles: {
        summary: 'The API server of Kubernetes refuses requests as too many, or they wait for their turn',
        description: 'Refused in ten minutes: 0; a new request waits for 12s',
      },
    },
  },
  {
    title: 'a finalizer is held',
    change: { trawl_oldest_leaving_seconds: '0x364 0+60x35' },
    fires: { TrawlFinalizersHeld: { summary: 'A deleted Job or pod of a worker is still there after 25m 0s' } },
  },
];
