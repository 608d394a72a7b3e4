import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadYaml } from '@kubernetes/client-node/dist/yaml.js';
import { expect } from 'chai';
import { makeChartTemplates } from '../../src/admin/chart-templates.ts';
import type { Setting } from '../../src/base/settings/kinds.ts';
import { settings } from '../../src/base/settings/settings.ts';
import { chart, find, helm, leavesOf, render, runTool, scenarios, tryRender } from '../support/chart.ts';
import type { Json } from '../support/json.ts';
import { aFolder } from '../support/redis.ts';
import { tool } from '../support/tools.ts';
import { read, root } from '../support/tree.ts';
import { files } from '../support/tree-files.ts';
import { refusals } from './refused-values.ts';

const values = loadYaml(read('charts/trawl/values.yaml')) as Json;
const dashboardIngress = { 'dashboard.ingress.enabled': true, 'api.trustedProxies': '10.0.0.0/8' };
const accepted: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
  [
    'a Service inside the cluster, whatever is said of callers outside',
    { 'api.service.externalTrafficPolicy': 'Cluster' },
  ],
  [
    'an object store whose addresses are public and private',
    { 'networkPolicy.s3': ['10.2.0.0/16', '52.216.0.0/15'].map((cidr) => ({ cidr, port: 443 })) },
  ],
  [
    'an object store of the cluster that workers reach',
    {
      's3.endpoint': 'http://minio.storage.svc:9000',
      'networkPolicy.workersS3': [{ cidr: '10.96.0.9/32', port: 9000 }],
    },
  ],
  ['a way to every address of IPv6', { 'networkPolicy.s3': [{ cidr: '::/0', port: 443 }] }],
  [
    'a limit of CPU, resources of other names, and a number as a quantity',
    {
      'api.resources.limits': { cpu: 1, memory: '1Gi', 'example.com/card': 1 },
      'redis.bundled.resources.requests': { cpu: 1, memory: '1Gi', 'hugepages-2Mi': '64Mi' },
    },
  ],
  ['large numbers', { 'workers.most': 2_000_000, 'workers.mostEnded': 0, 'backup.keep': 1 }],
  ['the last port', { 'api.service.port': 65535, 'networkPolicy.redis': [{ cidr: '10.0.0.7/32', port: '65535' }] }],
  ['budgets in percent', { 'api.podDisruptionBudget.maxUnavailable': '100%' }],
  ['a budget in quotes', { 'api.podDisruptionBudget.maxUnavailable': '1' }],
  ['quantities of each form', { 'workers.cpu': '1.5', 'workers.memory': '4096M' }],
  [
    'values that nothing reads, whatever they are',
    {
      ...{ 'backup.schedule': '', 'bootstrap.account': '', 'bootstrap.credits': 0, 'networkPolicy.enabled': false },
      ...{ 'networkPolicy.redis': [{ cidr: '10.0.0.7/32' }], 'networkPolicy.dns.ports': null },
      ...{ 'dashboard.autoscaling.enabled': true, 'dashboard.autoscaling.minReplicas': 11 },
    },
  ],
  ['DNS servers of the cluster, which its policy allows', { 'settings.TRAWL_DNS_SERVERS': '10.96.0.10' }],
  ['a word of cron', { 'backup.schedule': '@daily', 'backup.existingClaim': 'backups' }],
  [
    'a word in place of a number, and no value',
    { 'settings.TRAWL_REDIS_MEMORY': '', 'settings.TRAWL_ATTEMPTS': '007' },
  ],
  [
    'an Ingress and a route for each host of a domain, which the URL has in capitals, with a slash at its end',
    {
      ...dashboardIngress,
      'dashboard.ingress.hosts': ['*.example.com'],
      ...{ 'dashboard.httpRoute.enabled': true, 'dashboard.httpRoute.parentRefs': [{ name: 'public' }] },
      'dashboard.httpRoute.hostnames': ['*.com'],
      dashboardUrl: 'https://Films.Example.COM:8443/',
    },
  ],
];

describe('the values of the chart', () => {
  it('are linted without a word against any scenario', () => {
    for (const scenario of scenarios) {
      const { code, out, err } = helm('lint', '--strict', '--quiet', chart, '--values', join(chart, scenario));
      expect({ code, said: out + err }, scenario).to.deep.equal({ code: 0, said: '' });
    }
  });

  for (const [title, wrong, sentence] of refusals) {
    it(`are refused with a sentence for ${title}`, () => {
      const { code, err } = tryRender({ values: wrong });
      expect(code).to.equal(1);
      expect(err).to.match(sentence);
    });
  }

  for (const [title, values] of accepted) {
    it(`take ${title}`, () => {
      const { code, err } = tryRender({ values });
      expect({ code, err }).to.deep.equal({ code: 0, err: '' });
    });
  }

  it('count as not given where a file of values has their name and nothing behind it', () => {
    const lists = ['egress.extraVolumes', 'egress.extraVolumeMounts', 'workers.extraImages'];
    const ways = ['networkPolicy.billing', 'networkPolicy.openid', 'networkPolicy.egressTo'];
    const empty = ['settings', ...lists, ...ways].map((name) => [name, null]);
    expect(render({ values: Object.fromEntries(empty) })).to.deep.equal(render());
  });

  it('are refused for a release whose name no Service may have', () => {
    const said = 'the name of the release, films.trawl, must have no dot';
    expect(tryRender({ release: 'films.trawl' }).err).to.include(said);
    const more = ['--kube-version', '1.35.0'];
    expect(tryRender({ release: '2films', more }).err).to.include(
      '2films, must begin with a letter before Kubernetes 1.36',
    );
    expect(tryRender({ release: '2films' }).code).to.equal(0);
  });

  it('stay texts where names look like numbers or words of YAML', () => {
    const secrets = ['secret', 'redis', 's3', 'bootstrap', 'billing', 'openid'].map((part) => `${part}.existingSecret`);
    const keysOf = [
      'secret.key',
      'secret.oldKey',
      'redis.key',
      's3.accessKeyIdKey',
      's3.secretAccessKeyKey',
      'bootstrap.key',
    ];
    const others = [
      'backup.existingClaim',
      'controller.cookiesSecret',
      'caCertificates.configMap',
      'tls.secrets.gateway',
    ];
    const classes = ['api.priorityClassName', 'workers.priorityClass', 'api.ingress.className'];
    const kindsOf = (release: string, namespace: string, name: string) => {
      const values = Object.fromEntries([...secrets, ...keysOf, ...others, ...classes].map((value) => [value, name]));
      const scenario = 'ci/everything-values.yaml' as const;
      const made = render({ release, namespace, scenario, values: { ...values, 'workers.namespace': '' } });
      return JSON.parse(JSON.stringify(made), (_, value) => (typeof value === 'string' ? 'a text' : value));
    };
    const plain = kindsOf('films', 'media', 'name');
    expect(kindsOf('true', '20260', '2026')).to.deep.equal(plain);
    expect(kindsOf('null', '0x10', '1e3')).to.deep.equal(plain);
  });

  it('make texts of labels, annotations and selectors that are written as a number or as true', () => {
    const written = (n: number) => ({ [`whole${n}`]: 1_000_000, [`yes${n}`]: true });
    const of = (name: string) => [`api.${name}`, `controller.${name}`, `egress.${name}`];
    const names = ['podLabels', 'podAnnotations', 'nodeSelector', 'serviceAccount.annotations'].flatMap(of);
    const others = ['api.service.annotations', 'api.ingress.annotations', 'dashboard.service.annotations'];
    const places = [
      'commonLabels',
      'workers.serviceAccount.annotations',
      'monitoring.podMonitor.labels',
      ...others,
      ...names,
    ];
    const values = Object.fromEntries(places.map((place, n) => [place, written(n)]));
    const made = JSON.stringify(render({ scenario: 'ci/everything-values.yaml', values }));
    for (const n of places.keys()) expect(made).to.include(`"whole${n}":"1000000"`).and.include(`"yes${n}":"true"`);
    expect(made).not.to.match(/"(whole|yes)\d+":(?!")/);
  });

  it('need workers that share user ids before Kubernetes 1.33', () => {
    const more = ['--kube-version', '1.32.0'];
    expect(tryRender({ more }).err).to.match(/workers\.hostUsers must be true before Kubernetes 1\.33/);
    expect(tryRender({ more, values: { 'workers.hostUsers': true } }).code).to.equal(0);
    expect(tryRender({ more: ['--kube-version', '1.30.0'] }).err).to.include('incompatible');
  });

  it('make no Secret anew at an upgrade that does not see the old one', () => {
    const { code, err } = tryRender({ scenario: 'values-try.yaml', more: ['--is-upgrade'] });
    expect(code).to.equal(1);
    expect(err).to.include('the Secret trawl-generated is gone');
  });

  it('keep generated Secrets when the release is uninstalled, and make none unless they are told to', () => {
    const ofTry = render({ scenario: 'values-try.yaml' }).filter(({ kind }) => kind === 'Secret');
    expect(ofTry.map(({ metadata }) => metadata.annotations['helm.sh/resource-policy'])).to.deep.equal(['keep']);
    const values = { 'redis.bundled.deleteData': true };
    const objects = render({ scenario: 'values-try.yaml', values });
    expect(find(objects, 'Secret', 'trawl-generated').metadata).not.to.have.property('annotations');
    const external = {
      ...values,
      'redis.bundled.enabled': false,
      'redis.existingSecret': 'redis',
      'networkPolicy.enabled': false,
    };
    const [kept] = render({ scenario: 'values-try.yaml', values: external }).filter(({ kind }) => kind === 'Secret');
    expect(kept?.metadata.annotations, 'the secret of a record elsewhere').to.have.property('helm.sh/resource-policy');
    expect(find(objects, 'StatefulSet', 'trawl-redis').spec.persistentVolumeClaimRetentionPolicy).to.deep.equal({
      ...{ whenDeleted: 'Delete', whenScaled: 'Retain' },
    });
    expect(Buffer.from(Buffer.from(ofTry[0]?.data.secret, 'base64').toString(), 'base64')).to.have.length(32);
    expect(render().filter(({ kind }) => kind === 'Secret')).to.deep.equal([]);
  });

  it('have a sentence each, from which README.md and the schema are made', async () => {
    const { folder, remove } = aFolder();
    try {
      const page = join(folder, 'README.md');
      copyFileSync(join(chart, 'README.md'), page);
      const given = join(chart, 'values.yaml');
      const marks = ['--header-search', '^<!-- AUTO-GENERATED -->', '--footer-search', '^<!-- /AUTO-GENERATED -->'];
      await runTool(tool('helm-tool'), ['inject', '-i', given, '-o', page, ...marks]);
      expect(readFileSync(page, 'utf8') === read('charts/trawl/README.md'), 'make verify').to.equal(true);
      const { stdout } = await runTool(tool('helm-tool'), ['schema', '-i', given]);
      expect(JSON.parse(stdout)).to.deep.equal(JSON.parse(read('charts/trawl/values.schema.json')));
    } finally {
      remove();
    }
    const lines = read('charts/trawl/values.yaml').split('\n');
    const bare = lines.filter((line, n) => {
      const isLeaf = /^ *\w+: *\S/.test(line);
      return isLeaf && !/^ *(requests|limits):/.test(line) && !/^ *# \S/.test(lines[n - 1] ?? '');
    });
    expect(bare).to.deep.equal([]);
  });

  it('are read by a template each', () => {
    const templates = files
      .filter((path) => path.startsWith('charts/trawl/templates/'))
      .map(read)
      .join('\n');
    const unread = leavesOf(values).filter((path) => !new RegExp(`\\.${path.split('.').at(-1)}\\b`).test(templates));
    expect(unread).to.deep.equal([]);
  });

  it('leave out no setting that the chart does not know, and show no secret', () => {
    const { '_settings.tpl': known = '' } = makeChartTemplates();
    expect(read('charts/trawl/templates/_settings.tpl')).to.equal(known);
    const checks = read('charts/trawl/templates/_checks.tpl');
    const secrets = settings.filter(({ secret }: Setting) => secret).map(({ name }) => name);
    expect(secrets.filter((name) => !checks.includes(`\n${name}: `))).to.deep.equal([]);
    const names = [...checks.matchAll(/^(TRAWL_\w+): /gm)].map(([, name]) => name);
    expect(names.filter((name) => !settings.some((setting) => setting.name === name))).to.deep.equal([]);
  });

  it('make manifests/install.yaml, which holds no hook and no test', () => {
    const words = [
      'template',
      'trawl',
      chart,
      '--namespace',
      'trawl',
      '--kube-version',
      '1.36.0',
      '--no-hooks',
      '--skip-tests',
    ];
    const { out } = helm(...words, '--values', join(root, 'manifests', 'install-values.yaml'));
    const [first, ...rest] = read('manifests/install.yaml').split('\n');
    expect(first).to.include('manifests/install-values.yaml');
    expect(rest.join('\n') === out, 'make verify').to.equal(true);
    expect(out).not.to.match(/helm\.sh\/hook/);
  });

  it('decide about the notes of an install, which promise nothing that these values turn off', () => {
    const notes = (values: Readonly<Record<string, unknown>>) => {
      const sets = Object.entries(values).flatMap(([name, value]) => [
        '--set-json',
        `${name}=${JSON.stringify(value)}`,
      ]);
      const least = ['--namespace', 'media', '--values', join(chart, 'ci/least-values.yaml'), ...sets];
      return helm('install', 'trawl', chart, '--dry-run=client', ...least).out.split('\nNOTES:\n')[1];
    };
    expect(notes({}))
      .to.include('--logs does the same, and tries whether')
      .and.include('helm uninstall fails while jobs are open. It leaves what you made yourself and nothing else.');
    const tls = { 'tls.enabled': true, 'tls.caConfigMap': 'ours', 'tls.certManager.issuerRef': { name: 'ours' } };
    expect(notes({ ...tls, 'test.film': '', 'test.policies': false, 'uninstall.force': true }))
      .to.include('--logs makes an account and no job, because test.film is empty.')
      .and.include('helm uninstall leaves open jobs behind (uninstall.force). It leaves what you made')
      .and.include('nothing else, and cert-manager the Secrets of its certificates.');
  });

  it('hold the version of the program', () => {
    const { version } = JSON.parse(read('package.json'));
    const { version: ofChart, appVersion } = loadYaml(read('charts/trawl/Chart.yaml')) as Json;
    expect({ ofChart, appVersion }).to.deep.equal({ ofChart: version, appVersion: version });
  });

  it('render with the library of Helm 3 as with Helm 4', async () => {
    const { stdout } = await runTool(tool('helm-unittest'), ['--strict', chart]);
    expect(stdout).to.match(/Tests:\s+\d+ passed, \d+ total/);
  });
});
