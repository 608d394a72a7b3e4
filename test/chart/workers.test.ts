import { isDeepStrictEqual } from 'node:util';
import { loadYaml } from '@kubernetes/client-node/dist/yaml.js';
import { expect } from 'chai';
import { makeChartTemplates } from '../../src/admin/chart-templates.ts';
import { readConfig } from '../../src/base/config.ts';
import { listManifests } from '../../src/runners/kubernetes/namespace-manifests.ts';
import { podShapeOf } from '../../src/runners/kubernetes/pod-shape.ts';
import { find, type Rendering, render, scenarios } from '../support/chart.ts';
import { environmentOf } from '../support/chart-environment.ts';
import type { Json } from '../support/json.ts';
import { read } from '../support/tree.ts';

/** What the rules differ with, each by itself and with others. */
const variants: readonly (readonly [string, Rendering])[] = [
  ...scenarios.map((scenario) => [scenario, { scenario }] as const),
  ['a priority', { values: { 'workers.priorityClass': 'low' } }],
  ['a runtime class and a queue', { values: { 'workers.runtimeClass': 'gvisor', 'workers.queue': 'films' } }],
  ['a queue and marks', { values: { 'workers.queue': 'films', 'workers.extraMarks': ['a/b'] } }],
  ['shared user ids', { values: { 'workers.hostUsers': true } }],
  ['plugins', { values: { 'settings.TRAWL_YTDLP_PLUGINS': '/opt/a' } }],
  [
    'enforced policies and pull secrets',
    { values: { 'workers.policiesEnforced': true, imagePullSecrets: [{ name: 'a' }] } },
  ],
  [
    'a user of the cluster and pull secrets',
    { values: { adaptSecurityContext: 'force', imagePullSecrets: [{ name: 'a' }] } },
  ],
  [
    'TLS with the authorities of a ConfigMap',
    { values: { 'tls.enabled': true, 'tls.certManager.issuerRef': { name: 'a' }, 'tls.caConfigMap': 'bundle' } },
  ],
  ['folders of plugins with blanks between', { values: { 'settings.TRAWL_YTDLP_PLUGINS': ' /a : /b' } }],
  ['a limit that begins with zeros', { values: { 'settings.TRAWL_MAX_FILE_BYTES': '0100000000' } }],
  ['other limits', { values: { 'settings.TRAWL_MAX_FILE_BYTES': '53687091200', 'workers.memory': '1500Mi' } }],
  [
    'a place of their own',
    {
      values: {
        'workers.nodeSelector': { pool: 'films' },
        'workers.tolerations': [{ key: 'films', operator: 'Exists' }],
        'workers.affinity': { podAntiAffinity: {} },
        'workers.dnsConfig': { options: [{ name: 'ndots', value: '3' }] },
      },
    },
  ],
  ['another release', { release: 'x', namespace: 'films' }],
  ['a long release', { release: 'a'.repeat(53), namespace: 'n'.repeat(40) }],
];

const otherResources: readonly object[] = (loadYaml(read('charts/trawl/ci/everything-values.yaml')) as Json).workers
  .extraResources;

describe("the namespace of the chart's workers", () => {
  for (const [title, rendering] of variants) {
    it(`holds what trawl manifests prints for the controller of the chart, field by field: ${title}`, () => {
      const objects = render(rendering);
      const env = environmentOf(objects, 'controller');
      const config = readConfig(env.values, {}, env.readFile);
      const workers = valuesOf(rendering, objects);
      const expected = listManifests(podShapeOf(config), workers.ways, workers.maxJobs, workers.allowances);
      const { kubeNamespace } = config;
      const made = expected.map(({ kind = '', metadata }) => {
        const found = find(objects.filter(isIn(metadata?.namespace ?? null)), kind, metadata?.name ?? '');
        return withoutLabels(found);
      });
      expect(made).to.deep.equal(JSON.parse(JSON.stringify(expected)));
      const guards = objects.filter(isIn(kubeNamespace)).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      const others = guards.filter(
        (name) => !expected.some(({ kind, metadata }) => name === `${kind} ${metadata?.name}`),
      );
      expect(others.filter((name) => name !== 'ConfigMap trawl-authorities')).to.deep.equal([
        'ServiceAccount trawl-worker',
      ]);
    });
  }

  it('is made with Pod Security restricted, unless it is there already', () => {
    const { metadata } = find(render(), 'Namespace', 'media-workers');
    expect(metadata.labels).to.include({ 'pod-security.kubernetes.io/enforce': 'restricted' });
    expect(render({ scenario: 'ci/everything-values.yaml' }).some(({ kind }) => kind === 'Namespace')).to.equal(false);
  });

  it('has rules that are as they are generated', () => {
    const { '_admission.tpl': rules = '' } = makeChartTemplates();
    expect(read('charts/trawl/templates/_admission.tpl') === rules, 'make verify').to.equal(true);
  });
});

function isIn(namespace: string | null) {
  return ({ metadata }: Json) => (metadata.namespace ?? null) === namespace;
}

function withoutLabels(object: Json): Json {
  const { labels: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** What `trawl manifests` is told with options, out of the objects that are not compared with it. */
function valuesOf({ namespace = 'media', scenario, values = {} }: Rendering, objects: readonly Json[]) {
  const everything = scenario === 'ci/everything-values.yaml';
  const isBundled = objects.some(({ kind, metadata }) => kind === 'StatefulSet' && metadata.name.endsWith('-s3'));
  const pullSecrets = everything ? [{ name: 'registry' }, { name: 'mirror' }] : (values.imagePullSecrets ?? []);
  const stores = [
    { cidr: '10.2.0.9/32', port: 9000 },
    { cidr: 'fd00::/8', port: 9000 },
  ];
  const most = { 'values-ha.yaml': 2_200, 'values-try.yaml': 2_002, 'ci/everything-values.yaml': 600 } as const;
  return {
    maxJobs: scenario && scenario in most ? most[scenario as keyof typeof most] : 2_020,
    ways: {
      namespace,
      gatewayPort: 8082,
      egressPort: 4750,
      stores: everything ? stores : [],
      ...(everything && { dns: { to: [{ ipBlock: { cidr: '10.96.0.53/32' } }], ports: [53, 5353] } }),
      ...(isBundled && { bundledStorePort: 7070 }),
    },
    allowances: {
      images: everything ? ['registry.example.com/trawl/trawl-worker:0.0.9'] : [],
      fields: [
        ...(everything ? otherResources : []).map((value) => ({ name: 'worker.resources', value })),
        ...(isDeepStrictEqual(pullSecrets, []) ? [] : [{ name: 'imagePullSecrets', value: pullSecrets }]),
      ],
      marks: everything ? ['kubernetes.io/limit-ranger', 'team'] : ((values['workers.extraMarks'] ?? []) as string[]),
    },
  };
}
