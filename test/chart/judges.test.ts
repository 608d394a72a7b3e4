import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { render, runTool, scenarios, tryRender } from '../support/chart.ts';
import { foreignDefinitions, oldestOpenapi, writeKubeSchemas } from '../support/cluster/kube-schemas.ts';
import type { Json } from '../support/json.ts';
import { aFolder } from '../support/redis.ts';
import { tool } from '../support/tools.ts';
import { read } from '../support/tree.ts';

const oldest = ['--kube-version', '1.31.0'];

describe('the chart before judges of others', () => {
  const { folder, remove } = aFolder();
  after(remove);

  it('has no field in any scenario that the oldest supported Kubernetes does not know', async () => {
    expect(read('charts/trawl/Chart.yaml')).to.include('kubeVersion: ">=1.31.0-0"');
    const schemas = join(folder, 'schemas');
    const openapi = oldestOpenapi();
    expect(openapi.info.version).to.match(/^v1\.31\.|unversioned/);
    expect(writeKubeSchemas(schemas, openapi)).to.be.greaterThan(80);
    const location = ['-schema-location', `${schemas}/{{.ResourceKind}}{{.KindSuffix}}.json`];
    const foreign = foreignDefinitions().map((file) => /_(\w+)\.yaml$/.exec(file)![1]!);
    expect(foreign).to.deep.equal(['certificates', 'httproutes', 'podmonitors', 'prometheusrules']);
    const skipped = ['-skip', 'Certificate,HTTPRoute,PodMonitor,PrometheusRule'];
    const written = scenarios.map((scenario) => {
      const items = render({ scenario, more: oldest, values: { 'workers.hostUsers': true } });
      return write(scenario, items);
    });
    const { stdout } = await runTool(tool('kubeconform'), ['-strict', '-summary', ...skipped, ...location, ...written]);
    expect(stdout).to.match(/Valid: \d{3}, Invalid: 0, Errors: 0/);
    const wrong = write('wrong', [
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' }, spec: { containers: [], hostUser: false } },
    ]);
    const said = await runTool(tool('kubeconform'), ['-strict', ...location, wrong]).catch(({ stdout: out }) => out);
    expect(said).to.match(/hostUser/);
  });

  it('has no finding of checkov that docs/scanners.md does not explain, and explains none that is gone', async () => {
    const files = scenarios.flatMap((scenario) => {
      const file = join(folder, `${scenario.replace('/', '-')}`);
      const { out } = tryRender({ scenario });
      writeFileSync(file, out);
      return ['--file', file];
    });
    const words = [
      '--skip-download',
      '--framework',
      'kubernetes',
      '--compact',
      '--quiet',
      '--soft-fail',
      '--output',
      'json',
    ];
    const env = { PATH: process.env.PATH, HOME: folder, LOG_LEVEL: 'ERROR' };
    const { stdout } = await runTool(tool('checkov'), [...words, ...files], { env, maxBuffer: 2 ** 26 });
    const { results, summary } = JSON.parse(stdout) as Json;
    expect(summary.parsing_errors).to.equal(0);
    expect(summary.passed).to.be.greaterThan(2_000);
    const found = results.failed_checks.map(({ check_id, resource }: Json) => `${check_id} ${partOf(resource)}`);
    expect([...new Set(found)].sort()).to.deep.equal(listExplained().sort());
  });

  function write(scenario: string, items: readonly object[]): string {
    const file = join(folder, `${scenario.replaceAll('/', '-')}.json`);
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    return file;
  }
});

/** `Deployment.media.trawl-api` is the part `api`. */
function partOf(resource: string): string {
  return /\.trawl-([a-z0-9-]+)$/.exec(resource)?.[1] ?? resource;
}

/** Every check and part that the table of docs/scanners.md explains, as `CHECK part`. */
function listExplained(): string[] {
  const rows = [...read('docs/scanners.md').matchAll(/^\| (CKV_[^|]*) \| ([^|]*) \| [A-Z][^|]*\. \|$/gm)];
  return rows.flatMap(([, checks, parts]) =>
    [...checks!.matchAll(/CKV_K8S_\d+/g)].flatMap(([check]) =>
      [...parts!.matchAll(/`([^`]+)`/g)].map(([, part]) => `${check} ${part}`),
    ),
  );
}
