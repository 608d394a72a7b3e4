import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Board } from './panels.ts';
import { amount, inHour, of, quantile, rate } from './queries.ts';

/** Redis, which keeps the record. */
export const record: Board = {
  name: 'record',
  title: 'Record',
  about: 'Redis: memory, times, durability, replicas and its clock, which decides.',
  rows: {
    'At a glance': [
      {
        kind: 'number',
        title: 'Parts that reach Redis',
        empty: 'not seen',
        good: '100 %. Below that TrawlRedisAway fires.',
        unit: units.PercentUnit,
        queries: { [`avg(${of('redis_ready')})`]: '' },
        limits: [
          [null, 'red'],
          [1, 'green'],
        ],
      },
      {
        kind: 'number',
        title: 'Memory in use',
        empty: 'not known',
        good: 'Below 75 %. Admissions stop at 85 %: see TrawlRecordFull.',
        unit: units.PercentUnit,
        queries: { [`max(${of('redis_memory_ratio')})`]: '' },
        limits: [
          [null, 'green'],
          [0.75, 'yellow'],
          [0.85, 'red'],
        ],
      },
      {
        kind: 'number',
        title: 'Without a memory limit',
        empty: 'not known',
        good: '0. At 1 the kernel ends Redis when the machine is full.',
        unit: units.Short,
        queries: { [`max(${of('redis_memory_unlimited')})`]: '' },
        limits: [
          [null, 'green'],
          [1, 'yellow'],
        ],
      },
      {
        kind: 'number',
        title: 'May lose changes',
        empty: 'not known',
        good: '0. At 1 a crash of Redis may lose what was answered: see TrawlDurabilityRelaxed.',
        unit: units.Short,
        queries: { [`max(${of('durability_relaxed')})`]: '' },
        limits: [
          [null, 'green'],
          [1, 'yellow'],
        ],
      },
      {
        kind: 'number',
        title: 'Clock is steady',
        empty: 'not known',
        good: '1. At 0 nothing is removed or ended for its age: see TrawlClockMoved.',
        unit: units.Short,
        queries: { [`min(${of('clock_steady')})`]: '' },
        limits: [
          [null, 'yellow'],
          [1, 'green'],
        ],
      },
      {
        kind: 'number',
        title: 'Webhooks due',
        empty: 'no leader',
        good: 'Few. Many mean that receivers or egress are away.',
        unit: units.Short,
        queries: { [amount('webhooks_due')]: '' },
      },
    ],
    Redis: [
      {
        kind: 'lines',
        title: 'Memory over time',
        empty: 'not known',
        good: 'Flat over days. A slope says when the limit is reached.',
        unit: units.PercentUnit,
        queries: { [`max(${of('redis_memory_ratio')})`]: 'of the limit' },
        limits: [
          [null, 'green'],
          [0.75, 'yellow'],
          [0.85, 'red'],
        ],
      },
      {
        kind: 'lines',
        title: 'Time of scripts, 95 %',
        good: 'Below 5 ms without replicas. All together high points to the disk of Redis.',
        unit: units.Seconds,
        queries: { [quantile(0.95, 'redis_seconds', '', 'script')]: '{{script}}' },
      },
      {
        kind: 'lines',
        title: 'Scripts',
        good: 'It follows calls and jobs.',
        unit: units.OpsPerSecond,
        queries: { [rate('redis_seconds_count', '', 'script')]: '{{script}}' },
      },
      {
        kind: 'lines',
        logs: 'redis',
        title: 'Replicas',
        good: 'As many as there are. With any, an answer waits until one has its change.',
        unit: units.Short,
        queries: {
          [`max(${of('redis_replicas')})`]: 'replicas',
          [inHour('redis_unreplicated_total')]: 'changes that none had in time, in an hour',
        },
      },
      {
        kind: 'lines',
        title: 'Time until a replica has changes, 95 %',
        empty: 'no replica',
        good: 'Below 10 ms. There is none without replicas.',
        unit: units.Seconds,
        queries: { [quantile(0.95, 'redis_replica_seconds')]: '95 %' },
      },
      {
        kind: 'lines',
        title: 'Admissions closed',
        good: 'All lines at 0. The name of a line is the reason.',
        unit: units.Short,
        queries: { [`max by (reason) (${of('admissions_closed')})`]: '{{reason}}' },
      },
      {
        kind: 'lines',
        title: 'Drain',
        limits: [
          [null, 'green'],
          [3600, 'yellow'],
        ],
        good: '0. A line that climbs is the time since `trawl admin drain on`; after an hour TrawlDrainForgotten fires.',
        unit: units.Seconds,
        queries: { [`max(${of('drain_seconds')})`]: 'lasts' },
      },
      {
        kind: 'lines',
        title: 'Age of the last backup',
        empty: 'no leader',
        limits: [
          [null, 'green'],
          [93_600, 'yellow'],
        ],
        good: 'A saw below a day. 0 where no backup was ever begun or scheduled; see TrawlBackupOld.',
        unit: units.Seconds,
        queries: { [`max(${of('backup_age_seconds')})`]: 'since the last backup' },
      },
      {
        kind: 'lines',
        title: 'Clocks against that of Redis',
        limits: [
          [null, 'green'],
          [2, 'yellow'],
        ],
        good: 'Within 2 s. One line off is its node, all lines off the machine of Redis.',
        unit: units.Seconds,
        queries: { [`max by (instance) (${of('clock_difference_seconds')})`]: '{{instance}}' },
      },
    ],
  },
};
