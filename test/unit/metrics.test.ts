import { expect } from 'chai';
import { routes } from '../../src/api/routes.ts';
import { failures } from '../../src/base/errors.ts';
import { makeMetrics, metricsTable } from '../../src/base/metrics.ts';
import { releaseOf } from '../../src/media/yt-dlp.ts';
import { waits } from '../../src/runners/kubernetes/pending-reason.ts';
import { expectNames } from '../support/same-names.ts';

/** Every metric that dashboards and alerts depend on, with its labels. */
const wanted = `
http_requests_total{route,status} http_request_seconds{route} jobs_total{endpoint,outcome,code,blame}
job_seconds{endpoint,stage} jobs_open{state} oldest_queued_seconds holds_open charges_total{endpoint,balance} ledger_problems
webhook_deliveries_total{outcome} webhooks_due oldest_webhook_seconds auth_failures_total blocked_ips redis_seconds{script}
redis_ready durability_relaxed egress_connections_total{verdict} source_outcomes_total{site,outcome} leader reconcile_seconds
reconcile_errors_total watch_age_seconds attempts_total{class} unclassified_failures_total yt_dlp_info{version} yt_dlp_released_seconds
build_info{version,role} overdrafts_total purchases_total{outcome} mails_total{outcome} oldest_unsettled_seconds redis_memory_ratio
connections_dropped_total ledger_verify_age_seconds redis_memory_unlimited upkeep_errors_total{task}
clock_steady clock_difference_seconds object_store_ready stray_objects removal_errors_total
kube_refused_total kube_wait_seconds cleanups_postponed oldest_leaving_seconds attempts_waiting{wait} webhook_delay_seconds
admissions_closed{reason} backup_age_seconds drain_seconds redis_replicas redis_replica_seconds redis_unreplicated_total
spans_total{outcome} lapses_total{balance} certificate_ends_seconds{use}`
  .trim()
  .split(/\s+/);

function names(): string[] {
  return wanted.map((metric) => `trawl_${metric.split('{')[0]}`);
}

describe('metrics', () => {
  for (const metric of wanted) {
    const [name = '', labels = ''] = metric.replace('}', '').split('{');
    it(`${name} is shown with the labels ${labels || 'none'}`, async () => {
      const { registry, ...made } = makeMetrics();
      const all = Object.fromEntries(labels.split(',').map((label) => [label, 'x']));
      const one: object = Reflect.get(made, name);
      const write = 'set' in one ? 'set' : 'observe' in one ? 'observe' : 'inc';
      Reflect.get(one, write).apply(one, labels ? [all, 2] : [2]);
      const shown = labels.split(',').map((label) => `${label}="x"`);
      const text = await registry.getSingleMetricAsString(`trawl_${name}`);
      const line = text.split('\n').find((line) => line.endsWith(' 2') && !line.startsWith('#'));
      for (const label of labels ? shown : []) expect(line).to.contain(label);
      expect(line?.match(/="/g)?.length ?? 0).to.equal(labels ? shown.length : 0);
    });
  }

  it('begin at 0 with each value of a label that an alert watches, so that their first events are an increase', async () => {
    const { registry } = makeMetrics();
    const text = await registry.metrics();
    const begun = [...text.matchAll(/^(trawl_\w+_total)\{(\w+)="(\w+)"\} 0$/gm)];
    const names = new Set(begun.map(([, name]) => name));
    expect([...names].map((name) => name?.slice('trawl_'.length))).to.have.members([
      ...['attempts_total', 'webhook_deliveries_total', 'upkeep_errors_total', 'spans_total'],
      ...['purchases_total', 'mails_total'],
    ]);
    expect(text).to.include('\ntrawl_attempts_total{class="interrupted"} 0\n');
    const table = metricsTable();
    const rowOf = (label = '') => new RegExp(`^\\| \`${label}\` \\|.*$`, 'm').exec(table)?.[0] ?? '';
    expect(begun.filter(([, , label, value]) => !rowOf(label).includes(`\`${value}\``))).to.deep.equal([]);
    const named = [...rowOf('task').matchAll(/`(\w+)`/g)].map(([, task]) => task).slice(1);
    expect(begun.filter(([, , label]) => label === 'task').map(([, , , task]) => task)).to.have.members(named);
  });

  it('begin at 0 for each failure of a job that is our fault, so that a burst of them is an increase', async () => {
    const text = await makeMetrics().registry.getSingleMetricAsString('trawl_jobs_total');
    const begun = [...text.matchAll(/\{endpoint="(\w+)",outcome="failed",code="(\w+)",blame="us"\} 0$/gm)];
    const ours = Object.entries(failures).filter(([, { blame }]) => blame === 'us');
    const wanted = ['video', 'audio', 'metadata'].flatMap((endpoint) => ours.map(([code]) => `${endpoint} ${code}`));
    expect(begun.map(([, endpoint, code]) => `${endpoint} ${code}`)).to.have.members(wanted);
  });

  it('tell every name that the label route holds', () => {
    const row = /^\| `route` \|.*$/m.exec(metricsTable())?.[0] ?? '';
    const told = [...row.matchAll(/`([^`]+)`/g)].map(([, word]) => word).slice(1);
    const named = Object.values(routes).map(({ name }) => name);
    expect(told).to.have.members([...named, 'dashboard api', 'dashboard pages', 'other']);
  });

  for (const [version, day] of [
    ['2026.11.10', '2026-11-10'],
    ['2026.11.10.232810.dev0', '2026-11-10'],
    ['2026.1.5', '2026-01-05'],
    ['unknown', undefined],
  ] as const) {
    it(`yt_dlp_released_seconds is ${day ? `the start of ${day}` : 'absent'} for the version ${version}`, () => {
      expect(releaseOf(version)).to.equal(day && Date.parse(day) / 1000);
    });
  }

  it('are those of the table and those of Node, all with the prefix trawl_', () => {
    const all = makeMetrics()
      .registry.getMetricsAsArray()
      .map((metric) => metric.name);
    expect(all).to.include('trawl_process_resident_memory_bytes');
    const ours = all.filter((name) => !/^trawl_(process|nodejs)_/.test(name));
    expectNames('`wanted` of this test', names(), ours);
  });

  it('have a label wait whose meaning names every wait for a pod', () => {
    const row = /^\| `wait` \| (.+) \|$/m.exec(metricsTable())?.[1] ?? '';
    const told = [...row.matchAll(/`(\w+)`/g)].map(([, word]) => word!);
    expectNames('`labels.wait` in src/base/metrics.ts', told, waits);
  });

  it('have buckets for the longest recording that a request may ask for, and for the longest wait in the queue', () => {
    const all = makeMetrics().registry.getMetricsAsArray() as { name: string; buckets?: number[] }[];
    const longest = all.find(({ name }) => name === 'trawl_job_seconds')?.buckets?.at(-1);
    expect(longest).to.be.at.least(86_400);
  });

  it('have a help text of one sentence', () => {
    for (const metric of makeMetrics().registry.getMetricsAsArray()) {
      if (names().includes(metric.name)) expect(metric.help).to.match(/^[A-Z0-9][^.]+\.$/);
    }
  });

  it('refuse a label that was not declared', () => {
    const { jobs_open } = makeMetrics();
    expect(() => Reflect.apply(jobs_open.set, jobs_open, [{ account: 'a' }, 1])).to.throw('account');
  });

  it('count apart in each registry', async () => {
    const [one, other] = [makeMetrics(), makeMetrics()];
    one.overdrafts_total.inc();
    expect(await one.registry.metrics()).to.match(/^trawl_overdrafts_total 1$/m);
    expect(await other.registry.metrics()).to.match(/^trawl_overdrafts_total 0$/m);
  });

  it('show a gauge only once it was set', async () => {
    const { registry, leader } = makeMetrics();
    expect(await registry.metrics()).not.to.match(/^trawl_leader /m);
    leader.set(0);
    expect(await registry.metrics()).to.match(/^trawl_leader 0$/m);
  });

  it('have a table with one line for each, and one for each label', () => {
    const lines = metricsTable().split('\n');
    for (const metric of wanted) {
      const [name, labels = ''] = metric.replace('}', '').split('{');
      const shown = labels
        .split(',')
        .map((label) => (label ? `\`${label}\`` : ''))
        .join(' ');
      expect(
        lines.filter((line) => line.startsWith(`| \`trawl_${name}\` |`) && line.includes(`| ${shown} |`)),
      ).to.have.length(1);
      for (const label of labels ? labels.split(',') : []) {
        expect(lines.filter((line) => line.startsWith(`| \`${label}\` |`))).to.have.length(1);
      }
    }
  });
});
