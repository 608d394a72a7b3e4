import { expect } from 'chai';
import { find, render } from '../support/chart.ts';

const proxies = { 'api.trustedProxies': '10.0.0.0/8' };
const dashboardWays = {
  ...proxies,
  dashboardUrl: 'https://people.example.com',
  ...{ 'dashboard.ingress.enabled': true, 'dashboard.ingress.hosts': ['people.example.com'] },
  ...{ 'dashboard.httpRoute.enabled': true, 'dashboard.httpRoute.parentRefs': [{ name: 'public' }] },
};

describe('the Services of the chart', () => {
  for (const type of ['LoadBalancer', 'NodePort']) {
    it(`keep the address of a caller who comes by a ${type}, and give it away only where proxies are trusted`, () => {
      const apart = { 'dashboard.apart': true, 'api.service.type': type, 'dashboard.service.type': type };
      const policies = (values: Readonly<Record<string, unknown>>) => {
        const objects = render({ values: { ...apart, ...values } });
        return ['trawl-api', 'trawl-dashboard'].map((name) => {
          const { spec } = find(objects, 'Service', name);
          return [spec.type, spec.externalTrafficPolicy];
        });
      };
      expect(policies({})).to.deep.equal([
        [type, 'Local'],
        [type, 'Local'],
      ]);
      const cluster = { ...proxies, 'api.service.externalTrafficPolicy': 'Cluster' };
      expect(policies(cluster)).to.deep.equal([
        [type, 'Cluster'],
        [type, 'Local'],
      ]);
    });

    it(`show no dashboard at a ${type} of the API, and lead people to it by a Service inside the cluster`, () => {
      const objects = render({ values: { ...dashboardWays, 'api.service.type': type } });
      const api = find(objects, 'Service', 'trawl-api').spec;
      expect(api.ports.map(({ name }: { name: string }) => name)).to.deep.equal(['http']);
      const { type: kind = 'ClusterIP', selector, ports } = find(objects, 'Service', 'trawl-dashboard').spec;
      expect({ kind, selector }).to.deep.equal({ kind: 'ClusterIP', selector: api.selector });
      const { service } = find(objects, 'Ingress', 'trawl-dashboard').spec.rules[0].http.paths[0].backend;
      const [{ name, port }] = find(objects, 'HTTPRoute', 'trawl-dashboard').spec.rules[0].backendRefs;
      expect([service, { name, port }]).to.deep.equal([
        { name: 'trawl-dashboard', port: { name: ports[0].name } },
        { name: 'trawl-dashboard', port: ports[0].port },
      ]);
      const [container] = find(objects, 'Deployment', 'trawl-api').spec.template.spec.containers;
      const served = container.ports.find(({ name }: { name: string }) => name === ports[0].targetPort);
      expect(served.containerPort).to.equal(8081);
      // Until a balancer has found out that the pod of a node ends, it sends callers there.
      expect(container.lifecycle.preStop.sleep.seconds).to.equal(30);
    });
  }

  it('of the type ClusterIP say nothing about callers outside, also with the values of a release that knew no policy', () => {
    const objects = render({ values: { 'api.service.externalTrafficPolicy': null } });
    expect(find(objects, 'Service', 'trawl-api').spec).not.to.have.property('externalTrafficPolicy');
    expect(objects.filter(({ kind }) => kind === 'Service').map(({ metadata }) => metadata.name)).not.to.include(
      'trawl-dashboard',
    );
  });

  it('are not asked twice by an nginx before them, which sends a GET to another pod when one dies, and the job is paid twice', () => {
    const prefix = 'nginx.ingress.kubernetes.io/';
    const own = { 'api.ingress.enabled': true, 'api.ingress.hosts': ['a.test'], 'api.trustedProxies': '10.0.0.0/8' };
    const marks = (more = {}) =>
      find(render({ values: { ...own, ...more } }), 'Ingress', 'trawl-api').metadata.annotations;
    const expected = { 'proxy-next-upstream': 'off', 'proxy-body-size': '2m', 'proxy-read-timeout': '3600' };
    const prefixed = Object.fromEntries(Object.entries(expected).map(([name, value]) => [prefix + name, value]));
    expect(marks()).to.deep.equal(prefixed);
    const given = { [`${prefix}proxy-body-size`]: '8m', 'example.com/a': 'b' };
    expect(marks({ 'api.ingress.annotations': given })).to.deep.equal({ ...prefixed, ...given });
    const { [`${prefix}proxy-body-size`]: _, ...others } = prefixed;
    expect(marks({ 'api.ingress.annotations': { [`${prefix}proxy-body-size`]: null } })).to.deep.equal(others);
  });
});
