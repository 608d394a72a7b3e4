import { isIPv6 } from 'node:net';
import { expect } from 'chai';
import { readConfig } from '../../src/base/config.ts';
import { needsDashboardPort } from '../../src/roles/run-dashboard.ts';
import { needsOwnPorts } from '../../src/roles/serve-api.ts';
import { sharedRules, sharedSettings } from '../../src/roles/shared.ts';
import { find, podsOf, render, scenarios, tryRender } from '../support/chart.ts';
import { environmentOf } from '../support/chart-environment.ts';
import type { Json } from '../support/json.ts';
import { read } from '../support/tree.ts';

/** What each role needs, as src/roles says. */
const needs = {
  api: { required: sharedSettings, rules: [...sharedRules, needsOwnPorts] },
  dashboard: { required: sharedSettings, rules: [...sharedRules, needsDashboardPort] },
  controller: { required: [...sharedSettings, 'TRAWL_EGRESS_ADDRESS', 'TRAWL_KUBE_NAMESPACE'], rules: sharedRules },
  inspector: { required: ['TRAWL_INSPECTOR_ADDRESS', 'TRAWL_EGRESS_ADDRESS'] },
  egress: {},
} as const;
const roles = Object.keys(needs) as (keyof typeof needs)[];
/** Scenarios in which the dashboard has pods of its own. */
const apart: readonly string[] = ['ci/everything-values.yaml', 'ci/open-values.yaml'];
const { version } = JSON.parse(read('package.json'));
const longest = 'r'.repeat(53);
const labelOf = (object: Json) => object.metadata.labels['app.kubernetes.io/component'];

describe('the pods of the chart', () => {
  for (const scenario of scenarios) {
    describe(`with ${scenario}`, () => {
      let objects: Json[];
      before(() => {
        objects = render({ scenario });
      });

      for (const role of roles.filter((name) => name !== 'dashboard' || apart.includes(scenario))) {
        it(`give the ${role} settings that it starts with`, () => {
          const { values, readFile } = environmentOf(objects, role);
          const config = readConfig(values, needs[role], readFile);
          expect(config.host === '0.0.0.0' || isIPv6(config.host)).to.equal(true);
          const deployment = objects.find((object) => object.kind === 'Deployment' && labelOf(object) === role);
          expect(deployment?.spec.template.spec.containers[0].args[0]).to.equal(role);
        });
      }

      it('reach each other by Services that lead to a port of a pod', () => {
        const config = readConfig(
          environmentOf(objects, 'controller').values,
          {},
          environmentOf(objects, 'controller').readFile,
        );
        const addresses = [config.gatewayAddress, config.egressAddress, config.inspectorAddress];
        for (const address of addresses) {
          if (address === null || 'path' in address) throw new Error('it has no address');
          const [name = '', namespace] = address.host.split('.');
          const { metadata, spec } = find(objects, 'Service', name);
          expect({ namespace, port: address.port }).to.deep.equal({
            namespace: metadata.namespace,
            port: spec.ports[0].port,
          });
          const { pod } = podsOf(objects.filter(({ kind }) => kind === 'Deployment')).find(({ labels }) =>
            Object.entries(spec.selector).every(([key, value]) => labels[key] === value),
          )!;
          const port = pod.containers[0].ports.find((one: Json) => one.name === spec.ports[0].targetPort);
          // A network policy sees the port of the pod, and one number for both is hard to mistake.
          expect(port.containerPort).to.equal(spec.ports[0].port);
        }
      });

      it('meet Pod Security restricted, write only where a volume is, and learn of no Service of their namespace', () => {
        const pods = podsOf(objects);
        expect(pods.length).to.be.at.least(6);
        for (const { name, pod } of pods) {
          expect(pod.enableServiceLinks, name).to.equal(false);
          expect(pod.securityContext, name).to.include({ runAsNonRoot: true });
          expect(pod.securityContext.seccompProfile, name).to.deep.equal({ type: 'RuntimeDefault' });
          expect('runAsUser' in pod.securityContext, name).to.equal(scenario !== 'ci/open-values.yaml');
          for (const { securityContext, resources } of [...(pod.initContainers ?? []), ...pod.containers]) {
            expect(securityContext, name).to.deep.equal({
              allowPrivilegeEscalation: false,
              privileged: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ['ALL'] },
            });
            expect(Object.keys(resources.limits), name).to.include.members(['memory', 'ephemeral-storage']);
          }
        }
      });

      it('have a token of the cluster only where they ask it for something', () => {
        const withToken = podsOf(objects).filter(({ pod }) => pod.automountServiceAccountToken !== false);
        const doctor = scenario === 'ci/everything-values.yaml' ? ['doctor'] : [];
        const policies = scenario === 'ci/open-values.yaml' ? [] : ['policies'];
        expect(withToken.map(({ labels }) => labels['app.kubernetes.io/component']).sort()).to.deep.equal([
          'controller',
          ...doctor,
          ...policies,
          'uninstall',
        ]);
      });

      it('have a policy each, or none has', () => {
        const policies = objects.filter(
          ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.namespace === 'media',
        );
        const closed = policies.filter(({ spec }) => 'app.kubernetes.io/component' in spec.podSelector.matchLabels);
        const components = new Set(podsOf(objects).map(({ labels }) => labels['app.kubernetes.io/component']));
        const expected = scenario === 'ci/open-values.yaml' ? [] : [...components].sort();
        const selected = closed.map(({ spec }) => spec.podSelector.matchLabels['app.kubernetes.io/component']);
        expect(selected.sort()).to.deep.equal(expected);
        expect(policies.length - closed.length).to.equal(scenario === 'ci/open-values.yaml' ? 0 : 1);
      });
    });
  }

  it('serve the dashboard apart with its port, its secrets and its ways, which the API then has not', () => {
    const objects = render({ scenario: 'ci/everything-values.yaml' });
    const settingsOf = (name: string): Json[] => find(objects, 'Deployment', name).spec.template.spec.containers[0].env;
    const secrets = (name: string) =>
      settingsOf(name).flatMap((one) => (/^TRAWL_(STRIPE|SMTP|OIDC_CLIENT_SECRET)/.test(one.name) ? [one.name] : []));
    expect([secrets('trawl-api'), secrets('trawl-dashboard')]).to.deep.equal([
      [],
      ['TRAWL_SMTP_URL', 'TRAWL_STRIPE_KEY', 'TRAWL_STRIPE_WEBHOOK_SECRET', 'TRAWL_OIDC_CLIENT_SECRET'],
    ]);
    const { values, readFile } = environmentOf(objects, 'api');
    expect(readConfig(values, {}, readFile).dashboardPort).to.equal(null);
    for (const component of ['controller', 'doctor']) {
      const own = environmentOf(objects, component);
      expect(readConfig(own.values, {}, own.readFile).dashboardPort, component).to.equal(null);
    }
    const { spec } = find(objects, 'NetworkPolicy', 'trawl-api');
    expect(JSON.stringify(spec)).not.to.match(/8081|10\.3\.0/);
    const { ingress, egress } = find(objects, 'NetworkPolicy', 'trawl-dashboard').spec;
    expect(JSON.stringify(ingress[0])).to.include('8081').and.include('office');
    expect(JSON.stringify(egress)).to.include('10.3.0.5').and.include('10.3.0.6');
    expect(find(objects, 'Service', 'trawl-api').spec.ports).to.have.length(1);
    expect(find(objects, 'HorizontalPodAutoscaler', 'trawl-dashboard').spec.scaleTargetRef.name).to.equal(
      'trawl-dashboard',
    );
    expect(find(objects, 'PodDisruptionBudget', 'trawl-dashboard').spec.maxUnavailable).to.equal('50%');
  });

  it('answer people by an Ingress and a route that lead to what serves the dashboard', () => {
    const ways = (isApart: boolean) => {
      const objects = render({
        values: {
          ...{
            dashboardUrl: 'https://people.example.com',
            'api.trustedProxies': '10.0.0.0/8',
            'dashboard.apart': isApart,
          },
          ...{ 'dashboard.ingress.enabled': true, 'dashboard.ingress.hosts': ['people.example.com'] },
          ...{ 'dashboard.httpRoute.enabled': true, 'dashboard.httpRoute.parentRefs': [{ name: 'public' }] },
        },
      });
      const { service } = find(objects, 'Ingress', 'trawl-dashboard').spec.rules[0].http.paths[0].backend;
      const [route] = find(objects, 'HTTPRoute', 'trawl-dashboard').spec.rules[0].backendRefs;
      const { ports } = find(objects, 'Service', service.name).spec;
      expect([route.name, ports.find((port: Json) => port.name === service.port.name).port]).to.deep.equal([
        service.name,
        route.port,
      ]);
      return service.name;
    };
    expect([ways(false), ways(true)]).to.deep.equal(['trawl-api', 'trawl-dashboard']);
  });

  it('have settings that belong together, though a Job of one command uses few of them', () => {
    const values = { 'settings.TRAWL_RESERVED_WORKERS': '400', 'controller.podLabels': { tier: 'back' } };
    const more = { 'controller.extraVolumes': [{ name: 'more', emptyDir: {} }] };
    const objects = render({ scenario: 'ci/everything-values.yaml', values: { ...values, ...more } });
    const commands = ['backup', 'bootstrap', 'doctor', 'policies', 'test', 'uninstall'];
    for (const component of [...roles, ...commands]) {
      const { values, readFile } = environmentOf(objects, component);
      const { smtpUrl, mailFrom, workers, reservedWorkers } = readConfig(values, {}, readFile);
      expect({ workers, reservedWorkers }, component).to.deep.equal({ workers: 500, reservedWorkers: 400 });
      expect(mailFrom, component).to.equal('Films <billing@example.com>');
      const paid = ['dashboard', 'controller', 'doctor', 'policies'];
      expect(smtpUrl !== null, component).to.equal(paid.includes(component));
    }
    for (const { pod, labels } of podsOf(objects)) {
      const component = labels['app.kubernetes.io/component'];
      if (![...commands, 'controller'].includes(component)) continue;
      expect(labels.tier, component).to.equal('back');
      expect(
        pod.volumes.map((volume: Json) => volume.name),
        component,
      ).to.include('more');
    }
  });

  it('let in on the other side what a policy lets out, the doctor included', () => {
    for (const scenario of scenarios.filter((name) => name !== 'ci/open-values.yaml')) {
      const objects = render({ scenario, values: { 'doctor.enabled': true } });
      const policies = objects.filter(({ kind }) => kind === 'NetworkPolicy').map(({ spec }) => spec);
      const selects = (peer: Json, labels: Json) =>
        Object.entries(peer.podSelector?.matchLabels ?? { none: true }).every(([key, value]) => labels[key] === value);
      const ways = podsOf(objects).flatMap(({ labels }) => {
        const rules = policies.filter((policy) => selects(policy, labels)).flatMap(({ egress = [] }) => egress);
        const inside = rules.filter(({ to }: Json) =>
          to.some((peer: Json) => peer.podSelector && !peer.namespaceSelector),
        );
        return inside.map(({ to: [target], ports: [{ port }] }: Json) => ({ labels, target, port }));
      });
      expect(ways.length, scenario).to.be.at.least(7);
      for (const { labels, target, port } of ways) {
        const ingress = policies.filter((policy) => selects(target, policy.podSelector.matchLabels ?? {}));
        const open = ingress
          .flatMap((policy) => policy.ingress)
          .filter(({ ports }) => ports.some((one: Json) => one.port === port));
        const way = `${scenario}: ${labels['app.kubernetes.io/component']} to port ${port}`;
        const isLetIn = open.some(({ from }) => !from || from.some((peer: Json) => selects(peer, labels)));
        expect(isLetIn, way).to.equal(true);
      }
    }
  });

  it('give the doctor the ways out of the controller, whose mail server and payment provider it asks', () => {
    const objects = render({ scenario: 'ci/everything-values.yaml' });
    const ways = (name: string) => find(objects, 'NetworkPolicy', name).spec.egress;
    expect(ways('trawl-doctor')).to.deep.equal(ways('trawl-controller'));
  });

  it('only egress reaches the Internet', () => {
    const store = [{ cidr: '10.0.0.9/32', port: 443 }];
    const open = render({ values: { 'networkPolicy.s3': store, 'networkPolicy.workersS3': store } })
      .filter(({ kind }) => kind === 'NetworkPolicy')
      .filter(({ spec }) => JSON.stringify(spec.egress ?? []).includes('0.0.0.0/0'));
    expect(open.map(({ metadata }) => metadata.name)).to.deep.equal(['trawl-egress']);
  });

  it('reach the Internet at the ports that egress reads, also where these begin with zeros', () => {
    const { out } = tryRender({
      values: { 'settings.TRAWL_EGRESS_PORTS': '080, 0443' },
      more: ['-s', 'templates/egress.yaml'],
    });
    // Helm and kubectl read 0443 as the octal number 291.
    expect(out.match(/\bport: \d+/g))
      .to.include.members(['port: 80', 'port: 443'])
      .and.not.include('port: 0443');
  });

  it('have images of our own, by tag or by digest', () => {
    const names = (objects: Json[]) => [
      ...new Set(
        podsOf(objects).flatMap(({ pod }) =>
          [...(pod.initContainers ?? []), ...pod.containers].map(({ image }) => image),
        ),
      ),
    ];
    expect(names(render({ scenario: 'values-try.yaml' })).sort()).to.deep.equal(
      ['redis', 's3', 'server', 'worker'].map((name) => `trawl-${name}:${version}`),
    );
    expect(names(render({ scenario: 'ci/everything-values.yaml' })).sort()).to.deep.equal([
      'registry.example.com/trawl/trawl-server@sha256:0e072dddd1f7f8fc8909a2ca6f65e76c5f0d2fcfb8be47935ae3457e8bbceb20',
      'registry.example.com/trawl/trawl-worker:0.1.0-films',
    ]);
  });

  it('leave their number to the autoscaler where there is one', () => {
    const objects = render({ scenario: 'values-ha.yaml' });
    const fixed = objects.filter(({ kind, spec }) => kind === 'Deployment' && 'replicas' in spec).map(labelOf);
    const scaled = objects
      .filter(({ kind }) => kind === 'HorizontalPodAutoscaler')
      .map(({ spec }) => spec.scaleTargetRef.name);
    expect(fixed.sort()).to.deep.equal(['controller', 'egress']);
    expect(scaled.sort()).to.deep.equal(['trawl-api', 'trawl-inspector']);
  });

  it('have names and labels that Kubernetes takes, whatever the release is called', () => {
    for (const release of ['trawl', 'x', longest]) {
      for (const scenario of scenarios) {
        const objects = render({ release, scenario });
        for (const { kind, metadata } of objects) {
          // A StatefulSet puts its name with eleven more letters into a label.
          const most = kind === 'StatefulSet' ? 52 : kind === 'Service' ? 63 : 253;
          expect(metadata.name.length, metadata.name).to.be.at.most(most);
          for (const value of Object.values(metadata.labels ?? {}) as string[])
            expect(value.length, value).to.be.at.most(63);
        }
        const keys = objects.map(({ kind, metadata }) => [kind, metadata.namespace, metadata.name].join(' '));
        expect(keys.filter((key, n) => keys.indexOf(key) !== n)).to.deep.equal([]);
      }
    }
  });
});
