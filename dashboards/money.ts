import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Board } from './panels.ts';
import { amount, growth, inHour, of, rate } from './queries.ts';

/** What is held, charged and bought, and whether the books are right. */
export const money: Board = {
  name: 'money',
  title: 'Money',
  about: 'Credits that are held, charged and bought, and whether the ledgers are right.',
  hasJob: true,
  rows: {
    'At a glance': [
      {
        kind: 'number',
        logs: 'a ledger does not balance',
        title: 'Problems in the ledgers',
        empty: 'no leader',
        good: '0. Anything else needs a person at once: see TrawlLedgerProblem.',
        unit: units.Short,
        queries: { [`max(${of('ledger_problems')})`]: '' },
        limits: [
          [null, 'green'],
          [1, 'red'],
        ],
      },
      {
        kind: 'number',
        title: 'Last check of the ledgers',
        empty: 'no leader',
        good: 'Within the last hour. After three hours TrawlLedgerUnchecked fires.',
        unit: units.Seconds,
        queries: { [`max(${of('ledger_verify_age_seconds')})`]: '' },
        limits: [
          [null, 'green'],
          [7200, 'yellow'],
          [10_800, 'red'],
        ],
      },
      {
        kind: 'number',
        title: 'Credits on hold',
        empty: 'no leader',
        good: 'As many as there are open jobs and calls. It returns to 0 when nothing runs.',
        unit: units.Short,
        queries: { [amount('holds_open')]: '' },
      },
      {
        kind: 'number',
        title: 'Charged',
        good: 'One credit for each completed job and metadata call of the time that is shown.',
        unit: units.Short,
        queries: { [`${growth('charges_total')} or vector(0)`]: '' },
      },
      {
        kind: 'number',
        title: 'Overdrafts',
        good: '0. A charge found every balance empty: see TrawlOverdraft.',
        unit: units.Short,
        queries: { [`${growth('overdrafts_total')} or vector(0)`]: '' },
        limits: [
          [null, 'green'],
          [1, 'yellow'],
        ],
      },
      {
        kind: 'number',
        title: 'Longest wait for a charge',
        empty: 'no leader',
        good: 'Seconds. After ten minutes TrawlUnsettled fires: usually the object store does not answer.',
        unit: units.Seconds,
        queries: { [`max(${of('oldest_unsettled_seconds')})`]: '' },
        limits: [
          [null, 'green'],
          [60, 'yellow'],
          [600, 'red'],
        ],
      },
    ],
    Credits: [
      {
        kind: 'stack',
        title: 'Charges by balance',
        empty: 'nothing was charged',
        good: 'Subscription first, then packs, then credits; overdraft never.',
        unit: 'suffix:credits/s',
        queries: { [rate('charges_total', '', 'balance')]: '{{balance}}' },
      },
      {
        kind: 'stack',
        title: 'Charges by endpoint',
        empty: 'nothing was charged',
        good: 'It follows the completed jobs.',
        unit: 'suffix:credits/s',
        queries: { [rate('charges_total', '', 'endpoint')]: '{{endpoint}}' },
      },
      {
        kind: 'lines',
        title: 'Holds and open jobs',
        empty: 'no leader',
        good: 'It rises and falls with the open jobs. A level that only rises is a hold that nobody releases.',
        unit: units.Short,
        queries: { [amount('holds_open')]: 'on hold', [`sum(${amount('jobs_open', '', 'state')})`]: 'open jobs' },
      },
    ],
    'Lapses, purchases and mails': [
      {
        kind: 'stack',
        title: 'Credits that lapsed in the last hour',
        empty: 'nothing has lapsed',
        good: 'Quota lapses at the end of each period, mostly at midnight UTC. Packs lapse when their payment is taken back.',
        unit: units.Short,
        queries: { [inHour('lapses_total', 'balance')]: '{{balance}}' },
      },
      {
        kind: 'stack',
        title: 'Purchases in the last hour',
        empty: 'no pack was bought',
        good: 'Mostly paid. Declined ones are cards; refunded and disputed ones need a look. Unknown ones: see TrawlPurchasesUnknown.',
        unit: units.Short,
        queries: { [`${inHour('purchases_total', 'outcome')} > 0`]: '{{outcome}}' },
      },
      {
        kind: 'stack',
        title: 'Mails in the last hour',
        empty: 'no mail was sent',
        good: 'Mostly sent. Delayed ones are tried again: see TrawlMailsFail.',
        unit: units.Short,
        queries: { [`${inHour('mails_total', 'outcome')} > 0`]: '{{outcome}}' },
      },
    ],
  },
};
