import * as units from '@grafana/grafana-foundation-sdk/units';
import { money } from './money.ts';
import type { Board, Panel } from './panels.ts';
import { amount, growth, of, quantile, rate, recently, rolesAway, share, upTo } from './queries.ts';
import { record } from './record.ts';
import { sources } from './sources.ts';
import { workers } from './workers.ts';
import { queryWorst, worstWords } from './worst-color.ts';

const failed = 'outcome="failed"';

const rows = {
  'At a glance: what callers feel': [
    {
      kind: 'number',
      title: 'Calls without our errors',
      good: 'At least 99.9 %. Below that the API answers with 5xx: see TrawlApiErrors.',
      unit: units.PercentUnit,
      empty: 'no calls',
      queries: {
        [`1 - ${share(growth('http_requests_total', 'status=~"5.."'), growth('http_requests_total'))}`]: '',
      },
      limits: [
        [null, 'red'],
        [0.99, 'yellow'],
        [0.999, 'green'],
      ],
    },
    {
      kind: 'number',
      title: 'Jobs without our faults',
      good: 'At least 99 %. Failures of callers and sites do not count here.',
      unit: units.PercentUnit,
      empty: 'no jobs',
      queries: { [`1 - ${share(growth('jobs_total', 'blame="us"'), growth('jobs_total'))}`]: '' },
      limits: [
        [null, 'red'],
        [0.94, 'yellow'],
        [0.99, 'green'],
      ],
    },
    {
      kind: 'number',
      title: 'Jobs run within a minute',
      good: 'At least 95 %. Below that workers or nodes are too few.',
      unit: units.PercentUnit,
      empty: 'no jobs',
      queries: {
        [share(
          growth('job_seconds_bucket', `stage="queue", ${upTo(60)}`),
          growth('job_seconds_count', 'stage="queue"'),
        )]: '',
      },
      limits: [
        [null, 'red'],
        [0.7, 'yellow'],
        [0.95, 'green'],
      ],
    },
    {
      kind: 'number',
      title: 'Oldest job in the queue',
      empty: 'no leader',
      good: 'Seconds. Minutes mean that all workers are busy; above 15 minutes TrawlQueueStuck fires if none is done meanwhile.',
      unit: units.Seconds,
      queries: { [`max(${of('oldest_queued_seconds')})`]: '' },
      limits: [
        [null, 'green'],
        [60, 'yellow'],
        [900, 'red'],
      ],
    },
    {
      kind: 'number',
      title: 'Oldest due webhook',
      empty: 'no leader',
      good: 'Below a minute. Above five minutes TrawlWebhooksLate fires.',
      unit: units.Seconds,
      queries: { [`max(${of('oldest_webhook_seconds')})`]: '' },
      limits: [
        [null, 'green'],
        [60, 'yellow'],
        [300, 'red'],
      ],
    },
    {
      kind: 'number',
      title: 'Admissions closed',
      good: '0. At 1 new jobs and calls get 503: see TrawlAdmissionsClosed.',
      unit: units.Short,
      queries: { [`max(${of('admissions_closed')}) or vector(0)`]: '' },
      limits: [
        [null, 'green'],
        [1, 'red'],
      ],
    },
  ],
  'At a glance: webhooks and what jobs need': [
    {
      kind: 'number',
      title: 'Webhook attempts that fail',
      empty: 'no webhook was sent',
      good: 'Below 5 % in the last half hour. Above half of them, within ten minutes, TrawlWebhooksFail fires: receivers or egress are away.',
      unit: units.PercentUnit,
      queries: {
        [share(
          recently('webhook_deliveries_total', 'outcome=~"retried|failed"'),
          recently('webhook_deliveries_total'),
        )]: '',
      },
      limits: [
        [null, 'green'],
        [0.05, 'yellow'],
        [0.5, 'red'],
      ],
    },
    {
      kind: 'number',
      title: 'Parts that are gone',
      empty: 'not seen',
      good: '0. Above that there is no API, no inspector or no egress at all: see TrawlPartAway.',
      unit: units.Short,
      queries: { [`count(${rolesAway(['api', 'inspector', 'egress'])}) or 0 * count(${of('build_info')})`]: '' },
      limits: [
        [null, 'green'],
        [1, 'red'],
      ],
    },
    {
      kind: 'number',
      title: 'Parts without Redis',
      empty: 'not seen',
      good: '0. Above that calls get 503 and no job starts or ends: see TrawlRedisAway.',
      unit: units.Short,
      queries: { [`count(${of('redis_ready')} == 0) or 0 * count(${of('redis_ready')})`]: '' },
      limits: [
        [null, 'green'],
        [1, 'red'],
      ],
    },
    {
      kind: 'number',
      title: 'Parts without the object store',
      empty: 'no part asks it',
      good: '0. Above that no download can end: see TrawlObjectStoreAway.',
      unit: units.Short,
      queries: { [`count(${of('object_store_ready')} == 0) or 0 * count(${of('object_store_ready')})`]: '' },
      limits: [
        [null, 'green'],
        [1, 'red'],
      ],
    },
  ],
  Calls: [
    {
      kind: 'stack',
      title: 'Calls by status',
      good: 'Mostly 2xx. 4xx are refusals that callers cause; 5xx are ours.',
      unit: units.RequestsPerSecond,
      queries: { [rate('http_requests_total', '', 'status')]: '{{status}}' },
    },
    {
      kind: 'lines',
      title: 'Time of calls, 95 %',
      good: 'Below 50 ms for all but waiting polls, event streams and metadata, which take as long as their source.',
      unit: units.Seconds,
      queries: { [quantile(0.95, 'http_request_seconds', '', 'route')]: '{{route}}' },
    },
    {
      kind: 'lines',
      title: 'Refused keys and dropped connections',
      limits: [
        [null, 'green'],
        [1000 / 600, 'yellow'],
      ],
      good: 'Close to 0. Above the line, 1,000 in ten minutes, TrawlHostileLoad fires: somebody guesses keys or opens connections.',
      unit: units.RequestsPerSecond,
      queries: {
        [rate('auth_failures_total')]: 'calls without a valid key',
        [rate('connections_dropped_total')]: 'connections dropped',
      },
    },
    {
      kind: 'lines',
      title: 'Blocked addresses',
      empty: 'no leader',
      good: 'Few. One address of many callers is usually a proxy that TRAWL_TRUSTED_PROXIES does not name.',
      unit: units.Short,
      queries: { [amount('blocked_ips')]: 'addresses' },
    },
  ],
  Jobs: [
    {
      kind: 'stack',
      logs: 'the job ended',
      title: 'Jobs that end, by outcome and blame',
      empty: 'no job has ended',
      good: 'Mostly completed. A growing share of `site` points to an old yt-dlp, of `us` to a fault.',
      unit: units.OpsPerSecond,
      queries: { [rate('jobs_total', '', 'outcome, blame')]: '{{outcome}} {{blame}}' },
    },
    {
      kind: 'lines',
      title: 'Time to the file by stage',
      empty: 'no job has ended',
      good: 'Queue and storage take seconds; work depends on the size of the media. 50 %, 95 %: that share of jobs passed the stage within this time; mean: all stages.',
      unit: units.Seconds,
      queries: {
        [`${rate('job_seconds_sum')} / ${rate('job_seconds_count', 'stage="queue"')}`]: 'whole, mean',
        [quantile(0.5, 'job_seconds', '', 'stage')]: '{{stage}} 50 %',
        [quantile(0.95, 'job_seconds', '', 'stage')]: '{{stage}} 95 %',
      },
    },
    {
      kind: 'table',
      logs: 'the job ended',
      title: 'Failures by code',
      empty: 'no job has failed',
      column: 'jobs',
      good: 'Codes with blame `us` should not be here. The log names jobs; the row One job takes an id.',
      unit: units.Short,
      queries: { [`sort_desc(${growth('jobs_total', failed, 'code, blame')} > 0)`]: '' },
    },
  ],
  Traces: [
    {
      kind: 'stack',
      logs: 'spans are dropped: the collector does not take them',
      title: 'Spans for the collector',
      empty: 'nothing is traced',
      good: 'Empty without TRAWL_TRACES_URL, else all exported. Dropped ones mean that the collector is away or too slow; jobs notice nothing. See TrawlSpansDropped.',
      unit: units.OpsPerSecond,
      queries: { [`${rate('spans_total', '', 'outcome')} > 0`]: '{{outcome}}' },
    },
  ],
  Webhooks: [
    {
      kind: 'lines',
      title: 'Delay of webhooks, 50 % and 95 %',
      empty: 'no webhook was sent',
      limits: [
        [null, 'green'],
        [60, 'yellow'],
      ],
      good: 'Below a few seconds from the end of a job to the first attempt. See TrawlWebhooksSlow.',
      unit: units.Seconds,
      queries: {
        [quantile(0.5, 'webhook_delay_seconds')]: '50 %',
        [quantile(0.95, 'webhook_delay_seconds')]: '95 %',
      },
    },
    {
      kind: 'stack',
      logs: 'an attempt to deliver a webhook ended',
      title: 'Webhook attempts',
      empty: 'no webhook was sent',
      good: 'Mostly delivered. Retried and failed ones are usually receivers that are away.',
      unit: units.OpsPerSecond,
      queries: { [rate('webhook_deliveries_total', '', 'outcome')]: '{{outcome}}' },
    },
  ],
} satisfies Board['rows'];

/** One number for each row of numbers of this dashboard and for each other dashboard: an SRE reads from left to right where to look. */
const worst: readonly Panel[] = [
  makeWorst('What callers feel', rows['At a glance: what callers feel']),
  makeWorst('Webhooks and what jobs need', rows['At a glance: webhooks and what jobs need']),
  ...[money, workers, sources, record].map((board) => ({
    ...makeWorst(board.title, Object.values(board.rows).flat()),
    opens: board.name,
  })),
];

function makeWorst(title: string, panels: readonly Panel[]): Panel {
  return {
    kind: 'number',
    title,
    good: 'good: all its numbers are green. look: one is yellow. act: one is red, or its alert fires. A click on a dashboard opens it.',
    unit: units.Short,
    words: worstWords,
    queries: { [queryWorst(panels.filter(({ kind }) => kind === 'number'))]: '' },
    limits: [
      [null, 'green'],
      [1, 'yellow'],
      [2, 'red'],
    ],
  };
}

/** What callers feel. */
export const service: Board = {
  name: 'service',
  title: 'Service',
  about: 'What callers feel: whether calls and jobs succeed, and how long they take.',
  hasJob: true,
  rows: { 'Where to look': worst, ...rows },
};
