import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { alerts, rulesFile } from '../support/alerts.ts';
import { aFolder } from '../support/redis.ts';
import { root } from '../support/tree.ts';
import { healthy } from './healthy-series.ts';
import { scenarios, silentScenarios } from './scenarios.ts';

const run = promisify(execFile);
const rules = join(root, rulesFile);
/** Six and a half hours: the longest window of an alert, and its `for`. */
const at = '390m';

describe('the alerts before promtool', () => {
  const { folder, remove } = aFolder();
  after(remove);

  it('are rules without a complaint', async () => {
    const { stdout } = await run('promtool', ['check', 'rules', '--lint=all', '--lint-fatal', rules]);
    expect(stdout).to.include(`SUCCESS: ${alerts.length} rules found`);
  });

  it('have a scenario each in which they fire', () => {
    const fired = new Set(scenarios.flatMap(({ fires }) => Object.keys(fires)).concat('TrawlNotSeen'));
    expect(alerts.map(({ alert }) => alert).filter((name) => !fired.has(name))).to.deep.equal([]);
  });

  it('are silent in a healthy system', async () => {
    await judge('healthy', {}, {});
  });

  it('are silent, but for TrawlNotSeen, where nothing is installed', async () => {
    const nothing = Object.fromEntries(Object.keys(healthy).map((series) => [series, '_x400']));
    await judge('nothing', nothing, { TrawlNotSeen: { labels: {}, summary: 'Prometheus sees no part of trawl' } });
  });

  it('are silent in a healthy system with the bounds of histograms as Prometheus 3 stores them', async () => {
    await judge('healthy as in Prometheus 3', {}, {}, { store: asInPrometheus3 });
  });

  for (const { title, change } of silentScenarios) {
    it(`are silent ${title}`, async () => {
      await judge(title, change, {}, { everyMinutes: 1 });
    });
  }

  for (const { title, change, fires } of scenarios) {
    const said = `${title}: ${Object.keys(fires).join(' and ')}, and nothing else`;
    const expected = Object.fromEntries(
      Object.entries(fires).map(([name, { labels, ...says }]) => {
        return [name, { labels: { namespace: 'films', ...labels }, ...says }] as const;
      }),
    );
    it(`fire when ${said}`, async () => {
      await judge(title, change, expected);
    });
    if (!Object.keys(change).some((series) => /\ble="/.test(series))) continue;
    it(`fire with the bounds of histograms as Prometheus 3 stores them when ${said}`, async () => {
      await judge(`${title} as in Prometheus 3`, change, expected, { store: asInPrometheus3 });
    });
  }

  /** Runs one scenario: each alert that is not named must be silent. */
  async function judge(
    name: string,
    change: Readonly<Record<string, string>>,
    fired: Readonly<
      Record<string, { readonly labels: object; readonly summary: string; readonly description?: string }>
    >,
    { store = (series: string) => series, everyMinutes = 5 } = {},
  ): Promise<void> {
    const series = Object.entries({ ...healthy, ...change });
    const test = {
      name,
      interval: '1m',
      input_series: series.map(([one, values]) => ({ series: store(inNamespace(one)), values })),
      alert_rule_test: alerts.map(({ alert, labels, annotations }) => {
        const { labels: own, ...says } = fired[alert] ?? {};
        const firing = own && {
          exp_labels: { severity: labels.severity, ...own },
          exp_annotations: { ...annotations, ...says },
        };
        return { eval_time: at, alertname: alert, exp_alerts: firing ? [firing] : [] };
      }),
    };
    const file = join(folder, `${name.replaceAll(/\W/g, '-')}.yaml`);
    writeFileSync(
      file,
      JSON.stringify({ rule_files: [rules], evaluation_interval: `${everyMinutes}m`, tests: [test] }),
    );
    const { code, said } = await run('promtool', ['test', 'rules', file]).then(
      ({ stdout }) => ({ code: 0, said: stdout }),
      ({ code: failed, stdout, stderr }) => ({ code: failed, said: `${stdout}${stderr}` }),
    );
    expect(code, said).to.equal(0);
  }
});

/** Prometheus 3 stores the bound 60 of a histogram as 60.0. */
function asInPrometheus3(series: string): string {
  return series.replace(/le="(\d+)"/, 'le="$1.0"');
}

function inNamespace(series: string): string {
  if (series.includes('namespace=')) return series;
  return series.includes('{') ? series.replace('{', '{namespace="films",') : `${series}{namespace="films"}`;
}
