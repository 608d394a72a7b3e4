import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { egressVerdicts } from './egress-verdict.ts';
import { failures } from './errors.ts';
import { tableOf } from './markdown-table.ts';

const prefix = 'trawl_';

const attemptClasses = ['done', 'failed', 'interrupted', 'preempted', 'cancelled'];
const webhookOutcomes = ['delivered', 'retried', 'failed'];
const spanOutcomes = ['exported', 'dropped'];
const purchaseOutcomes = 'paid declined refunded disputed unbooked capped dropped unknown'.split(' ');
const mailOutcomes = ['sent', 'refused', 'delayed', 'given_up'];
const tasks = 'lead pass take requeue preempt sweep gauges verify days buy card mail'.split(' ');

const apiRoutes =
  'video audio metadata jobs job retry events batches batch usage history stats mcp files welcome docs docsFile openapi';
const routeLabels = [...apiRoutes.split(' '), 'dashboard api', 'dashboard pages', 'other'];

/** Values of each label. Every set is closed: never a job, an account, a key, a host or a URL. */
const labels = {
  route: `name of a route: ${listed(routeLabels)} for every other path`,
  status: 'HTTP status of the answer, not masked by `soft_fail`',
  endpoint: '`video`, `audio` or `metadata`',
  outcome: `\`completed\` or \`failed\` for jobs and sources, ${listed(webhookOutcomes)} for webhooks, ${listed(spanOutcomes)} for spans, ${listed(purchaseOutcomes)} for purchases, ${listed(mailOutcomes)} for mails`,
  code: 'error code of the failure (docs/errors.md), empty when completed',
  blame: '`caller`, `site` or `us`, empty when completed',
  stage:
    '`queue` until the first worker runs, nothing for a job that is cancelled before, `work` until the last one has ended, `storage` while the object store is waited for',
  state: '`queued`, `running`, or `delayed` until its next attempt may begin',
  balance: '`subscription`, `packs`, `credits` or `overdraft`',
  script: 'name of the atomic script: that of its file in `src/store`, or of its function there',
  verdict: listed(egressVerdicts),
  site: 'name of one of 20 well-known sites, else `other`',
  class: `${listed(attemptClasses)}: \`interrupted\` from outside, \`preempted\` for another account, \`cancelled\` by its caller`,
  wait: '`starting` without a reason, `pod` for a Job that has none after 5 s, such as for a quota, `room` on a node, `admission` by a queue, `image` of the worker, or `container` that cannot be made',
  task: '`lead`, `pass`, `take`, `requeue`, `preempt`, `sweep`, `days` (archive), `gauges`, `verify`, `buy` (top-ups), `card` (ends of stored cards) or `mail`',
  use: '`served` to other parts, or `trusted` in them',
  version: 'version of the program',
  role: '`up`, `api`, `dashboard`, `controller`, `inspector` or `egress`',
  reason:
    '`memory` while Redis is nearly full; with `TRAWL_DURABILITY=strict` the setting of Redis that is wrong, or `hidden` when it does not tell',
} as const;

type Label = keyof typeof labels;
type Series = Readonly<Partial<Record<Label, string>>>;

/**
 * Series with which a counter that alerts watch begins at 0. Prometheus takes a series for no increase that is born with its first
 * events, such as all workers of a dead node, which a new controller sees interrupted at once.
 */
const begun: Partial<Record<string, readonly Series[]>> = {
  attempts_total: attemptClasses.map((value) => ({ class: value })),
  jobs_total: listOwnFailures(),
  webhook_deliveries_total: webhookOutcomes.map((outcome) => ({ outcome })),
  upkeep_errors_total: tasks.map((task) => ({ task })),
  spans_total: spanOutcomes.map((outcome) => ({ outcome })),
  purchases_total: purchaseOutcomes.map((outcome) => ({ outcome })),
  mails_total: mailOutcomes.map((outcome) => ({ outcome })),
};

/** Returns the series of jobs that fail by our fault. */
function listOwnFailures(): Series[] {
  const ours = Object.entries(failures).filter(([, { blame }]) => blame === 'us');
  return ['video', 'audio', 'metadata'].flatMap((endpoint) =>
    ours.map(([code]) => ({ endpoint, outcome: 'failed', code, blame: 'us' })),
  );
}

function listed(words: readonly string[]): string {
  const codes = words.map((word) => `\`${word}\``);
  return `${codes.slice(0, -1).join(', ')} or ${codes.at(-1)}`;
}

const fast = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const answers = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const works = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400, 43_200, 86_400];

/** Every metric, by its name without the prefix. Gauges of the record come from the leading controller alone (`hideGauges`). */
const declared = {
  http_requests_total: counter('Requests that the public API has answered.', 'route', 'status'),
  http_request_seconds: histogram(
    answers,
    'Time from the arrival of an API request to the end of its answer, in seconds.',
    'route',
  ),
  connections_dropped_total: counter(
    'Connections that the public API closed because their address had more than 100 without a complete request, 1,000 idle ones, or 64 MiB of answers that it did not read.',
  ),
  jobs_total: counter("Jobs that have ended, except by an operator's command.", 'endpoint', 'outcome', 'code', 'blame'),
  job_seconds: histogram(works, 'Time that an ended job spent in one stage, in seconds.', 'endpoint', 'stage'),
  jobs_open: gauge('Jobs that have not ended yet.', 'state'),
  oldest_queued_seconds: gauge(
    'Age of the oldest job whose first worker does not run yet, in the queue or in the cluster; 0 for none.',
  ),
  holds_open: gauge('Credits held for jobs and calls that have not ended yet.'),
  charges_total: counter('Credits that were charged.', 'endpoint', 'balance'),
  ledger_problems: gauge('Problems that the hourly check of all ledgers found last; above 0 needs a person.'),
  ledger_verify_age_seconds: gauge(
    'Time since the check of all ledgers was complete, or since the first one began; well above 3600 needs a person.',
  ),
  webhook_deliveries_total: counter('Attempts to deliver a webhook that have ended.', 'outcome'),
  webhook_delay_seconds: histogram(
    works,
    'Time from the end of a job to the first attempt to deliver its webhook, in seconds; none for a delivery that is sent again.',
  ),
  webhooks_due: gauge('Webhooks that are due and not yet sent.'),
  oldest_webhook_seconds: gauge('How long the oldest due webhook is overdue; 0 when none is due.'),
  auth_failures_total: counter('Requests that were refused for a missing or unknown key.'),
  blocked_ips: gauge('Client addresses that are blocked for failed authentications.'),
  redis_seconds: histogram(fast, 'Time of one atomic script in Redis, round trip included, in seconds.', 'script'),
  redis_ready: gauge('1 while Redis can be reached, else 0.'),
  redis_memory_ratio: gauge('Share of its memory limit that Redis uses; admissions stop at 85 %.'),
  redis_memory_unlimited: gauge(
    '1 while Redis has no memory limit of its own, else 0; TRAWL_REDIS_MEMORY or 75 % of its machine is then the limit.',
  ),
  clock_steady: gauge(
    '0 for 10 minutes after the clock of Redis has jumped: nothing is removed or ended for its age then.',
  ),
  clock_difference_seconds: gauge(
    'Seconds by which the clock of this machine differs from that of Redis, which decides; above 2 is too much.',
  ),
  object_store_ready: gauge('1 while the object store answers and takes files, else 0.'),
  stray_objects: gauge(
    'Jobs whose objects were found in the object store although the record does not know them; they are removed after `TRAWL_FILE_HOURS` and a week.',
  ),
  removal_errors_total: counter(
    'Failed removals of files from the object store; each is tried again after 10 minutes.',
  ),
  durability_relaxed: gauge('1 when a crash of Redis may lose its last changes, else 0.'),
  admissions_closed: gauge('1 while new jobs and calls get 503 for this reason, else 0.', 'reason'),
  drain_seconds: gauge('Time since `trawl admin drain on`, in seconds; 0 while jobs and calls are admitted.'),
  backup_age_seconds: gauge(
    'Time since the last complete backup of the record, in seconds; before the first one, since the first try or, with `TRAWL_BACKUPS_SCHEDULED`, since the first reading; 0 without any of these.',
  ),
  redis_replicas: gauge(
    'Replicas that receive the changes of Redis; with any, an answer waits until one has its change.',
  ),
  redis_replica_seconds: histogram(fast, 'Time until a replica had a batch of changes, in seconds.'),
  redis_unreplicated_total: counter('Batches of changes that no replica had within 1 s: their callers got 503.'),
  egress_connections_total: counter('Connections asked of the egress proxy that have ended.', 'verdict'),
  source_outcomes_total: counter('Jobs that were settled, by the site of their source.', 'site', 'outcome'),
  leader: gauge('1 in the controller that leads, 0 in the others.'),
  reconcile_seconds: histogram(answers, 'Time of one full pass of the controller over all open jobs, in seconds.'),
  reconcile_errors_total: counter(
    'Failed attempts of the controller to advance a job, without starts that a quota of the cluster or a full disk of the workers delays; each is repeated with back-off.',
  ),
  upkeep_errors_total: counter(
    'Failed runs of a periodic task of the controller; each is logged as a warning and repeated.',
    'task',
  ),
  watch_age_seconds: gauge('Time since the Kubernetes watch last delivered an event or bookmark.'),
  kube_refused_total: counter(
    'Requests that the API server of Kubernetes refused as too many (429); each is repeated, and the speed is halved.',
  ),
  kube_wait_seconds: gauge(
    'Time for which a new request to the API server of Kubernetes waits for its turn within TRAWL_KUBE_RATE.',
  ),
  cleanups_postponed: gauge(
    'Ended attempts whose Job is removed later, because other Jobs wait for their pods or eight removals are under way.',
  ),
  oldest_leaving_seconds: gauge(
    'Longest time for which a deleted Job or pod of a worker is still there, such as for a finalizer; 0 when none is.',
  ),
  attempts_waiting: gauge('Attempts whose worker does not run yet, by the reason that the cluster gives.', 'wait'),
  attempts_total: counter(
    'Attempts of jobs that have ended; a cancelled one counts once its worker is stopped.',
    'class',
  ),
  unclassified_failures_total: counter(
    'Failures that no rule of the table of failures explains: the log has their text.',
  ),
  yt_dlp_info: gauge('Always 1; its label is the version of yt-dlp in use.', 'version'),
  yt_dlp_released_seconds: gauge('Unix time of the day on which the yt-dlp in use was released.'),
  spans_total: counter('Spans for the collector of TRAWL_TRACES_URL, sent or given up.', 'outcome'),
  certificate_ends_seconds: gauge(
    'Unix time at which certificates between the parts end: the first of the chain that this part serves, or the last of the authorities that it trusts.',
    'use',
  ),
  build_info: gauge('Always 1; its labels are the version of trawl and the role of the process.', 'version', 'role'),
  purchases_total: counter(
    'Purchases of packs: paid, declined, refunded or disputed; unbooked when the account that paid is removed or unknown; capped by the monthly cap; dropped when it is wanted no more after a try that was not paid; unknown when the provider gave no answer, which is asked for again.',
    'outcome',
  ),
  mails_total: counter(
    'Mails: sent, refused for good, delayed by an error, or given up: damaged, or more than a week old.',
    'outcome',
  ),
  lapses_total: counter(
    'Credits that lapsed: unused quota at the end of its period, or the rest of a pack whose payment was taken back.',
    'balance',
  ),
  overdrafts_total: counter('Charges for which every balance was empty.'),
  oldest_unsettled_seconds: gauge(
    'Longest time for which a job whose worker has ended waits to be settled; 0 when none waits.',
  ),
} as const;

type Declared = typeof declared;
type MetricInstance<M> = M extends { kind: 'counter'; labels: readonly (infer L extends string)[] }
  ? Counter<L>
  : M extends { kind: 'gauge'; labels: readonly (infer L extends string)[] }
    ? Gauge<L>
    : M extends { labels: readonly (infer L extends string)[] }
      ? Histogram<L>
      : never;

export type Metrics = { readonly [Name in keyof Declared]: MetricInstance<Declared[Name]> } & {
  readonly registry: Registry;
  readonly refreshers: Set<() => Promise<void>>;
};

export async function refreshMetrics({ refreshers }: Pick<Metrics, 'refreshers'>): Promise<void> {
  await Promise.all([...refreshers].map((look) => look()));
}

export async function renderMetrics(metrics: Pick<Metrics, 'registry' | 'refreshers'>): Promise<string> {
  await refreshMetrics(metrics);
  // prom-client writes a mean of nothing as Nan, which the format spells NaN.
  return (await metrics.registry.metrics()).replaceAll(/ Nan$/gm, ' NaN');
}

export function makeMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix });
  const made = Object.entries(declared).map(([name, metric]) => [name, make(name, metric, registry)]);
  return { ...Object.fromEntries(made), registry, refreshers: new Set() };
}

/** Removes every series of these gauges: a role shows only what it knows, so a gauge that it does not set is absent, not 0. */
export function hideGauges(gauges: readonly Pick<Gauge, 'reset' | 'remove'>[]): void {
  for (const gauge of gauges) {
    gauge.reset();
    // A reset gauge without labels is 0.
    gauge.remove({});
  }
}

export function metricsTable(): string {
  const rows = Object.entries(declared).map(([name, { kind, labels, text }]) => {
    return [`\`${prefix}${name}\``, kind, labels.map((label) => `\`${label}\``).join(' '), text];
  });
  const sets = Object.entries(labels).map(([label, text]) => [`\`${label}\``, text]);
  return `${tableOf(['Name', 'Kind', 'Labels', 'Meaning'], rows)}\n${tableOf(['Label', 'Holds'], sets)}`;
}

function counter<const L extends Label = never>(text: string, ...labels: readonly L[]) {
  return { kind: 'counter', text, labels } as const;
}

function gauge<const L extends Label = never>(text: string, ...labels: readonly L[]) {
  return { kind: 'gauge', text, labels } as const;
}

function histogram<const L extends Label = never>(buckets: readonly number[], text: string, ...labels: readonly L[]) {
  return { kind: 'histogram', buckets, text, labels } as const;
}

function make(name: string, metric: Declared[keyof Declared], registry: Registry) {
  const options = { name: prefix + name, help: metric.text, labelNames: metric.labels, registers: [registry] };
  if (metric.kind === 'counter') {
    const counter = new Counter<Label>(options);
    for (const series of begun[name] ?? []) counter.inc(series, 0);
    return counter;
  }
  if (metric.kind === 'histogram') return new Histogram({ ...options, buckets: [...metric.buckets] });
  const gauge = new Gauge(options);
  hideGauges([gauge]);
  return gauge;
}
