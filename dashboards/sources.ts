import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Board } from './panels.ts';
import { growth, of, rate, recently, share } from './queries.ts';

/** Sites that callers name, and the proxy on the way to them. */
export const sources: Board = {
  name: 'sources',
  title: 'Sources and egress',
  about: 'Outcomes by site, what egress refuses, and how old yt-dlp is.',
  rows: {
    'At a glance': [
      {
        kind: 'number',
        title: 'Age of yt-dlp',
        empty: 'not known',
        good: 'Below 30 days: sites change daily. See TrawlYtDlpOld.',
        unit: 'suffix:days',
        queries: { [`(time() - min(${of('yt_dlp_released_seconds')})) / 86400`]: '' },
        limits: [
          [null, 'green'],
          [20, 'yellow'],
          [30, 'red'],
        ],
      },
      {
        kind: 'number',
        title: 'Failures that no rule explains',
        good: 'Below 2 % of the jobs: see TrawlUnclassifiedFailures.',
        unit: units.PercentUnit,
        empty: 'no jobs',
        queries: { [share(growth('unclassified_failures_total'), growth('jobs_total'))]: '' },
        limits: [
          [null, 'green'],
          [0.01, 'yellow'],
          [0.02, 'red'],
        ],
      },
      {
        kind: 'number',
        title: 'Connections that cannot be made',
        empty: 'none was asked for',
        good: 'Below 10 % in the last half hour. Above half the way out is broken: see TrawlEgressFails.',
        unit: units.PercentUnit,
        queries: {
          [share(
            recently('egress_connections_total', 'verdict=~"failed_dns|failed_connect|limited"'),
            recently('egress_connections_total'),
          )]: '',
        },
        limits: [
          [null, 'green'],
          [0.1, 'yellow'],
          [0.5, 'red'],
        ],
      },
    ],
    Sites: [
      {
        kind: 'table',
        title: 'Outcomes by site',
        empty: 'no job has ended',
        column: 'jobs',
        good: 'Each site mostly completes. One site alone that fails has changed: update yt-dlp.',
        unit: units.Short,
        queries: { [`sort_desc(${growth('source_outcomes_total', '', 'site, outcome')} > 0)`]: '' },
      },
      {
        kind: 'lines',
        title: 'Share of failures by site',
        empty: 'no job has ended',
        good: 'Flat. A step upwards of one site is a change of that site.',
        unit: units.PercentUnit,
        queries: {
          [`${rate('source_outcomes_total', 'outcome="failed"', 'site')} / ${rate('source_outcomes_total', '', 'site')}`]:
            '{{site}}',
        },
      },
      {
        kind: 'lines',
        logs: 'unclassified',
        title: 'Failures without a rule, by time',
        empty: 'no job has ended',
        good: '0. The log of the controller has their text.',
        unit: units.OpsPerSecond,
        queries: { [rate('unclassified_failures_total')]: 'failures' },
      },
      {
        kind: 'table',
        title: 'Versions of yt-dlp',
        empty: 'not known',
        column: 'parts',
        good: 'One version.',
        unit: units.Short,
        queries: { [`count by (version) (${of('yt_dlp_info')})`]: '' },
      },
    ],
    Egress: [
      {
        kind: 'stack',
        title: 'Connections by verdict',
        empty: 'none was asked for',
        good: 'Mostly open. `refused_…` are callers who name addresses that are not public, `failed_…` the way out.',
        unit: units.OpsPerSecond,
        queries: { [`${rate('egress_connections_total', '', 'verdict')} > 0`]: '{{verdict}}' },
      },
    ],
  },
};
