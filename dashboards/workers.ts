import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Board } from './panels.ts';
import { amount, inHour, of, quantile, rate, recently, share } from './queries.ts';

/** Leaders in each namespace that has a part of trawl. */
const leaders = `(sum by (namespace) (${of('leader')}) or 0 * count by (namespace) (${of('build_info')}))`;

/** Where jobs run, and who leads. */
export const workers: Board = {
  name: 'workers',
  title: 'Workers and cluster',
  about: 'Open jobs, attempts, the leading controller and its view of the cluster.',
  hasJob: true,
  rows: {
    'At a glance': [
      {
        kind: 'number',
        title: 'Leaders',
        good: '1 in each namespace. At 0 no job starts or ends in one of them: see TrawlNoLeader.',
        unit: units.Short,
        queries: { [`max(${leaders}) > 1 or min(${leaders}) or vector(0)`]: '' },
        limits: [
          [null, 'red'],
          [1, 'green'],
          [2, 'red'],
        ],
      },
      {
        kind: 'number',
        title: 'Interrupted attempts',
        empty: 'no attempts',
        good: 'Below 5 % in the last half hour. More mean that nodes, memory or priorities end workers: see TrawlInterruptions.',
        unit: units.PercentUnit,
        queries: {
          [share(recently('attempts_total', 'class="interrupted"'), recently('attempts_total'))]: '',
        },
        limits: [
          [null, 'green'],
          [0.05, 'yellow'],
          [0.2, 'red'],
        ],
      },
      {
        kind: 'number',
        logs: '"level":"warn"',
        title: 'Failed steps of jobs',
        empty: 'no controller',
        good: 'Below 10 in a quarter of an hour. Each is repeated. See TrawlControllerErrors.',
        unit: units.Short,
        queries: { [`sum(increase(${of('reconcile_errors_total')}[15m]))`]: '' },
        limits: [
          [null, 'green'],
          [10, 'yellow'],
          [30, 'red'],
        ],
      },
      {
        kind: 'number',
        title: 'Queued jobs',
        empty: 'no leader',
        good: 'Few. Many with few running jobs mean that workers do not start.',
        unit: units.Short,
        queries: { [amount('jobs_open', 'state="queued"')]: '' },
      },
      {
        kind: 'number',
        title: 'Running jobs',
        empty: 'no leader',
        good: 'At most TRAWL_WORKERS.',
        unit: units.Short,
        queries: { [amount('jobs_open', 'state="running"')]: '' },
      },
      {
        kind: 'number',
        title: 'Releases in use',
        empty: 'not seen',
        good: '1 in each namespace. For the minutes of an upgrade 2.',
        unit: units.Short,
        queries: { [`max(count by (namespace) (count by (namespace, version) (${of('build_info')})))`]: '' },
        limits: [
          [null, 'green'],
          [2, 'yellow'],
        ],
      },
    ],
    'At a glance: cluster': [
      {
        kind: 'number',
        title: 'Age of the watch',
        empty: 'no leader, or no cluster',
        good: 'Below a minute in the leader; there is none with worker processes. See TrawlWatchStale.',
        unit: units.Seconds,
        queries: { [`max(${of('watch_age_seconds')} and on (namespace, instance) ${of('leader')} == 1)`]: '' },
        limits: [
          [null, 'green'],
          [60, 'yellow'],
          [180, 'red'],
        ],
      },
      {
        kind: 'number',
        title: 'Refused by the API server',
        empty: 'no cluster',
        good: 'Requests in ten minutes that it answered with 429: below 5. See TrawlApiServerThrottles.',
        unit: units.Short,
        queries: { [`sum(increase(${of('kube_refused_total')}[10m]))`]: '' },
        limits: [
          [null, 'green'],
          [5, 'yellow'],
          [20, 'red'],
        ],
      },
      {
        kind: 'number',
        title: 'Longest removal of a worker',
        empty: 'no cluster',
        good: 'Below five minutes. After 15 TrawlFinalizersHeld fires.',
        unit: units.Seconds,
        queries: { [`max(${of('oldest_leaving_seconds')})`]: '' },
        limits: [
          [null, 'green'],
          [300, 'yellow'],
          [900, 'red'],
        ],
      },
    ],
    Jobs: [
      {
        kind: 'stack',
        title: 'Open jobs',
        empty: 'no leader',
        good: 'Running ones up to TRAWL_WORKERS; queued ones come and go. Delayed ones wait before another attempt.',
        unit: units.Short,
        queries: { [amount('jobs_open', '', 'state')]: '{{state}}' },
      },
      {
        kind: 'stack',
        logs: 'attempt',
        title: 'Attempts that end',
        empty: 'no attempt has ended',
        good: 'Mostly done. Failed ones are judged by their job; interrupted ones start again.',
        unit: units.OpsPerSecond,
        queries: { [rate('attempts_total', '', 'class')]: '{{class}}' },
      },
      {
        kind: 'lines',
        title: 'Oldest job that waits',
        limits: [
          [null, 'green'],
          [600, 'yellow'],
          [900, 'red'],
        ],
        empty: 'no leader',
        good: 'Seconds. The lines are the limits of TrawlUnsettled, ten minutes, and of TrawlQueueStuck, 15 without a job that is done.',
        unit: units.Seconds,
        queries: {
          [`max(${of('oldest_queued_seconds')})`]: 'for a worker',
          [`max(${of('oldest_unsettled_seconds')})`]: 'to be settled',
        },
      },
    ],
    Cluster: [
      {
        kind: 'stack',
        title: 'Workers that wait for the cluster',
        empty: 'no cluster',
        good: 'Few, and `starting`. `pod` wants more of a quota, `room` nodes, `admission` a queue, `image` a registry; empty without Kubernetes.',
        unit: units.Short,
        queries: { [amount('attempts_waiting', '', 'wait')]: '{{wait}}' },
      },
      {
        kind: 'lines',
        title: 'Requests to the API server',
        empty: 'no cluster',
        right: { 'wait for a turn': units.Seconds },
        good: 'Both at 0. Refused ones are 429, waiting comes from the limit TRAWL_KUBE_RATE: see TrawlApiServerThrottles.',
        unit: units.Short,
        queries: {
          [inHour('kube_refused_total')]: 'refused in an hour',
          [`max(${of('kube_wait_seconds')})`]: 'wait for a turn',
        },
      },
      {
        kind: 'lines',
        title: 'Removal of ended workers',
        empty: 'no cluster',
        right: { 'oldest that leaves': units.Seconds },
        good: 'Postponed ones come and go with new jobs; none leaves for minutes: see TrawlFinalizersHeld.',
        unit: units.Short,
        queries: {
          [`sum(${of('cleanups_postponed')})`]: 'postponed',
          [`max(${of('oldest_leaving_seconds')})`]: 'oldest that leaves',
        },
      },
      {
        kind: 'lines',
        title: 'Age of the watch over time',
        empty: 'no cluster',
        limits: [
          [null, 'green'],
          [180, 'yellow'],
        ],
        good: 'Below a minute in the leader. A line that rises is a watch that hears nothing: see TrawlWatchStale.',
        unit: units.Seconds,
        queries: { [`max by (instance) (${of('watch_age_seconds')})`]: '{{instance}}' },
      },
    ],
    Controller: [
      {
        kind: 'lines',
        title: 'Time until certificates end',
        empty: 'no TLS between the parts',
        limits: [
          [null, 'yellow'],
          [604_800, 'green'],
        ],
        good: 'Weeks. A line that falls below a week is not renewed: see TrawlCertificateEnds.',
        unit: units.Seconds,
        queries: { [`min by (use) (${of('certificate_ends_seconds')}) - time()`]: '{{use}}' },
      },
      {
        kind: 'lines',
        title: 'Leader by instance',
        good: 'One line at 1, all others at 0.',
        unit: units.Short,
        queries: { [`max by (instance) (${of('leader')})`]: '{{instance}}' },
      },
      {
        kind: 'lines',
        title: 'Full pass, 95 %',
        empty: 'no leader',
        good: 'Below a second for hundreds of open jobs. Events do the work; the pass finds what they missed.',
        unit: units.Seconds,
        queries: { [quantile(0.95, 'reconcile_seconds')]: 'full pass' },
      },
      {
        kind: 'lines',
        logs: '"level":"warn"',
        title: 'Failed steps and tasks',
        empty: 'nothing has failed',
        good: '0. Each is repeated and logged as a warning. TrawlControllerErrors fires above the line, at six failed tasks in 15 minutes, or at one of `days`.',
        unit: units.OpsPerSecond,
        limits: [
          [null, 'green'],
          [30 / 900, 'yellow'],
        ],
        queries: {
          [rate('reconcile_errors_total')]: 'steps of jobs',
          [`${rate('upkeep_errors_total', '', 'task')} > 0`]: '{{task}}',
        },
      },
      {
        kind: 'lines',
        logs: 'object store',
        title: 'Object store answers',
        good: '1 in each part that asks it. At 0 no download can end: see TrawlObjectStoreAway.',
        unit: units.Short,
        empty: 'no part asks it',
        queries: { [`min by (instance) (${of('object_store_ready')})`]: '{{instance}}' },
      },
      {
        kind: 'lines',
        logs: 'object store',
        title: 'Files that should not be there',
        good: 'No failed removals, no stray objects, which are looked for once a day. See TrawlRemovalsFail.',
        unit: units.Short,
        empty: 'nothing was found',
        queries: {
          [inHour('removal_errors_total')]: 'failed removals in an hour',
          [amount('stray_objects')]: 'stray objects',
        },
        limits: [
          [null, 'green'],
          [6, 'yellow'],
        ],
      },
    ],
  },
};
