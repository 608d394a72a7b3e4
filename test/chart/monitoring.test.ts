import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadYaml } from '@kubernetes/client-node/dist/yaml.js';
import { expect } from 'chai';
import { boards } from '../../dashboards/boards.ts';
import { alerts, rulesFile } from '../support/alerts.ts';
import { find, render, runTool, scenarios } from '../support/chart.ts';
import type { Json } from '../support/json.ts';
import { aFolder } from '../support/redis.ts';
import { read } from '../support/tree.ts';
import { texts } from '../support/tree-files.ts';

describe('the monitoring of the chart', () => {
  const { folder, remove } = aFolder();
  after(remove);

  it('is the file of alerts and those of dashboards, and nothing of them is a template', () => {
    const objects = render({ scenario: 'ci/everything-values.yaml' });
    const { metadata, spec } = find(objects, 'PrometheusRule', 'trawl');
    const pages = read(rulesFile).replaceAll(
      'docs/runbooks/',
      'https://git.example.com/trawl/blob/main/docs/runbooks/',
    );
    const own = pages.replace(/expr: absent\(.*\)/, `expr: ${absentIn('media')}`);
    expect(own).not.to.equal(pages);
    expect(spec).to.deep.equal(loadYaml(own));
    expect(metadata.labels).to.include({ release: 'prometheus', team: 'films' });
    for (const { name } of boards) {
      const made = find(objects, 'ConfigMap', `trawl-dashboard-${name}`);
      expect(made.metadata.labels).to.include({ dashboards: 'yes' });
      expect(made.metadata.annotations).to.deep.equal({ grafana_folder: 'films' });
      expect(made.data).to.deep.equal({ [`trawl-${name}.json`]: read(`charts/trawl/dashboards/${name}.json`) });
    }
  });

  it('has controllers expect backups where it schedules them, so that TrawlBackupOld fires when none begins', () => {
    const settingOf = (existingClaim: string) => {
      const objects = render({ values: { 'backup.existingClaim': existingClaim } });
      const [container] = find(objects, 'Deployment', 'trawl-controller').spec.template.spec.containers;
      return container.env.find(({ name }: Json) => name === 'TRAWL_BACKUPS_SCHEDULED')?.value;
    };
    expect(settingOf('backups')).to.equal('true');
    expect(settingOf('')).to.equal(undefined);
  });

  it('fires TrawlNotSeen for a release of which nothing is seen, while Prometheus sees one in another namespace', async () => {
    const values = { 'monitoring.prometheusRule.enabled': true };
    const { spec } = find(render({ values }), 'PrometheusRule', 'trawl');
    const rules = join(folder, 'rules.json');
    writeFileSync(rules, JSON.stringify(spec));
    const { annotations } = alerts.find(({ alert }) => alert === 'TrawlNotSeen')!;
    const fires = [{ exp_labels: { severity: 'critical', namespace: 'media' }, exp_annotations: annotations }];
    const seen = (labels: string, exp_alerts: readonly object[]) => ({
      name: labels,
      interval: '1m',
      input_series: [{ series: `trawl_build_info${labels}`, values: '1x20' }],
      alert_rule_test: [{ eval_time: '10m', alertname: 'TrawlNotSeen', exp_alerts }],
    });
    const tests = [
      seen('{namespace="films"}', fires),
      seen('{namespace="media"}', []),
      // A Prometheus that names no namespaces.
      seen('{}', []),
    ];
    const file = join(folder, 'tests.json');
    writeFileSync(file, JSON.stringify({ rule_files: [rules], evaluation_interval: '1m', tests }));
    const said = await runTool('promtool', ['test', 'rules', file]).catch((error) => error);
    expect(said.code ?? 0, `${said.stdout}${said.stderr}`).to.equal(0);
    const { stdout } = await runTool('promtool', ['check', 'rules', '--lint=all', '--lint-fatal', rules]);
    expect(stdout).to.include(`SUCCESS: ${alerts.length} rules found`);
  });

  it('leads to the runbooks, whether or not their address ends with a slash', () => {
    const [plain, slashed] = ['https://a.test/b', 'https://a.test/b/'].map((runbooks) => {
      const prometheusRule = { enabled: true, runbooks };
      return find(render({ values: { 'monitoring.prometheusRule': prometheusRule } }), 'PrometheusRule', 'trawl').spec;
    });
    expect(plain).to.deep.equal(slashed);
    expect(JSON.stringify(plain)).to.include('"https://a.test/b/docs/runbooks/TrawlNoLeader.md"');
  });

  it('has runbooks that list by a component only kinds which the chart makes of it', () => {
    const objects = scenarios.flatMap((scenario) => render({ scenario }));
    const kindsOf = (component: string) =>
      objects.flatMap(({ kind, apiVersion, metadata, spec }) => {
        if (metadata.labels?.['app.kubernetes.io/component'] !== component) return [];
        const name = kind.toLowerCase();
        const pods = spec?.template || spec?.jobTemplate ? ['pod'] : [];
        return [name, `${name}.${apiVersion.replace(/\/.*/, '')}`, ...pods, ...(spec?.jobTemplate ? ['job'] : [])];
      });
    const listed = [...texts].flatMap(([path, text]) =>
      path.startsWith('docs/runbooks/')
        ? [...text.matchAll(/kubectl (?:get|describe) (\S+) (?:-l|--selector) app\.kubernetes\.io\/component=(\w+)/g)]
        : [],
    );
    expect(listed).to.have.length.above(5);
    const missing = listed.flatMap(([, kinds = '', component = '']) =>
      kinds.split(',').flatMap((kind) => {
        const one = kind.replace(/s(?=\.|$)/, '');
        return kindsOf(component).includes(one) ? [] : `${kind} of ${component}`;
      }),
    );
    expect(missing).to.deep.equal([]);
  });

  it('is left out unless it is asked for', () => {
    const kinds = render().map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(kinds.filter((one) => /PrometheusRule|PodMonitor|dashboard/.test(one))).to.deep.equal([]);
  });
});

/** True when nothing is seen of this namespace, nor anything without one. */
function absentIn(namespace: string): string {
  return `absent(trawl_build_info{namespace="${namespace}"}) unless on () trawl_build_info{namespace=""}`;
}
