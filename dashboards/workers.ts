import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Board } from './panels.ts';
import { inHour, of, quantile, rate, recently } from './queries.ts';

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
        good: '1. At 0 no job starts or ends: see TrawlNoLeader.',
        unit: units.Short,
        queries: { [`sum(${of('leader')})`]: '' },
        limits: [
          [null, 'red'],
          [1, 'green'],
          [2, 'red'],
        ],
      },
      {
        kind: 'number',
        title: 'Queued jobs',
        good: 'Few. Many with few running jobs mean that workers do not start.',
        unit: units.Short,
        queries: { [`sum(${of('jobs_open', 'state="queued"')})`]: '' },
      },
      {
        kind: 'number',
        title: 'Running jobs',
        good: 'At most TRAWL_WORKERS.',
        unit: units.Short,
        queries: { [`sum(${of('jobs_open', 'state="running"')})`]: '' },
      },
      {
        kind: 'number',
        title: 'Interrupted attempts',
        good: 'Below 5 % in the last half hour. More mean that nodes, memory or priorities end workers: see TrawlInterruptions.',
        unit: units.PercentUnit,
        queries: {
          [`(${recently('attempts_total', 'class="interrupted"')} or vector(0)) / ${recently('attempts_total')}`]: '',
        },
        limits: [
          [null, 'green'],
          [0.05, 'yellow'],
          [0.2, 'red'],
        ],
      },
      {
        kind: 'number',
        title: 'Age of the watch',
        good: 'Below a minute on Kubernetes; empty with worker processes. See TrawlWatchStale.',
        unit: units.Seconds,
        queries: { [`min(${of('watch_age_seconds')})`]: '' },
        limits: [
          [null, 'green'],
          [60, 'yellow'],
          [180, 'red'],
        ],
      },
      {
        kind: 'number',
        title: 'Releases in use',
        good: '1. For the minutes of an upgrade 2.',
        unit: units.Short,
        queries: { [`count(count by (version) (${of('build_info')}))`]: '' },
        limits: [
          [null, 'green'],
          [2, 'yellow'],
        ],
      },
    ],
    Jobs: [
      {
        kind: 'stack',
        title: 'Open jobs',
        good: 'Running ones up to TRAWL_WORKERS; queued ones come and go.',
        unit: units.Short,
        queries: { [`sum by (state) (${of('jobs_open')})`]: '{{state}}' },
      },
      {
        kind: 'stack',
        logs: 'attempt',
        title: 'Attempts that end',
        good: 'Mostly done. Failed ones are judged by their job; interrupted ones start again.',
        unit: units.OpsPerSecond,
        queries: { [rate('attempts_total', '', 'class')]: '{{class}}' },
      },
      {
        kind: 'lines',
        title: 'Oldest job that waits',
        good: 'Seconds, both for a worker and for its end to be recorded.',
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
        good: 'Few, and `starting`. `room` wants nodes, `admission` a queue, `image` a registry; empty without Kubernetes.',
        unit: units.Short,
        queries: { [`sum by (wait) (${of('attempts_waiting')})`]: '{{wait}}' },
      },
      {
        kind: 'lines',
        title: 'Requests to the API server',
        good: 'Both at 0. Refused ones are 429, waiting ones the limit TRAWL_KUBE_RATE: see TrawlApiServerThrottles.',
        unit: units.Short,
        queries: {
          [inHour('kube_refused_total')]: 'refused in an hour',
          [`max(${of('kube_wait_seconds')})`]: 'seconds of waiting',
        },
      },
      {
        kind: 'lines',
        title: 'Removal of ended workers',
        good: 'Postponed ones come and go with new jobs; none leaves for minutes: see TrawlFinalizersHeld.',
        unit: units.Short,
        queries: {
          [`sum(${of('cleanups_postponed')})`]: 'postponed',
          [`max(${of('oldest_leaving_seconds')})`]: 'seconds of leaving',
        },
      },
      {
        kind: 'lines',
        title: 'Age of the watch over time',
        good: 'Below a minute in the leader. A line that rises is a watch that hears nothing: see TrawlWatchStale.',
        unit: units.Seconds,
        queries: { [`max by (instance) (${of('watch_age_seconds')})`]: '{{instance}}' },
      },
    ],
    Controller: [
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
        good: 'Below a second for hundreds of open jobs. Events do the work; the pass finds what they missed.',
        unit: units.Seconds,
        queries: { [quantile(0.95, 'reconcile_seconds')]: 'full pass' },
      },
      {
        kind: 'lines',
        logs: '"level":"warn"',
        title: 'Failed steps and tasks',
        good: '0. Each is repeated, and the log has a warning: see TrawlControllerErrors.',
        unit: units.OpsPerSecond,
        queries: {
          [rate('reconcile_errors_total')]: 'steps of jobs',
          [rate('upkeep_errors_total', '', 'task')]: '{{task}}',
        },
      },
      {
        kind: 'lines',
        logs: 'object store',
        title: 'Object store',
        good: 'Ready at 1, no failed removals, no stray objects.',
        unit: units.Short,
        queries: {
          [`min(${of('object_store_ready')})`]: 'ready',
          [inHour('removal_errors_total')]: 'failed removals in an hour',
          [`max(${of('stray_objects')})`]: 'stray objects',
        },
      },
    ],
  },
};
