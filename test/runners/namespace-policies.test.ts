import { expect } from 'chai';
import {
  makeAdmissionBinding,
  makeAdmissionPolicy,
  makeNetworkPolicies,
  makeQuota,
} from '../../src/runners/kubernetes/namespace-policies.ts';
import { aShape } from '../support/cluster/runner.ts';

const shape = aShape('workers');
const named = (name: string) => ({ matchLabels: { 'kubernetes.io/metadata.name': name } });
const part = (component: string) => ({
  matchLabels: { 'app.kubernetes.io/name': 'trawl', 'app.kubernetes.io/component': component },
});
const tcp = (port: number) => [{ protocol: 'TCP', port }];

describe('what stands around the Jobs of a cluster', () => {
  it('limits how many there are', () => {
    expect(makeQuota('workers', 500)).to.deep.equal({
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'trawl-workers', namespace: 'workers' },
      spec: { hard: { 'count/jobs.batch': '500', 'count/pods': '500' } },
    });
  });

  it('lets workers connect to the resolver, the gateway, egress and a private object store, and nobody to them', () => {
    const ways = {
      namespace: 'trawl',
      gatewayPort: 8082,
      egressPort: 3128,
      stores: [{ cidr: '10.1.0.0/16', port: 9000 }],
    };
    const [nothing, workers] = makeNetworkPolicies(shape, ways).map(({ spec }) => spec);
    expect(nothing).to.deep.equal({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
    expect(workers).to.deep.equal({
      podSelector: {
        matchLabels: { 'app.kubernetes.io/managed-by': 'trawl', 'app.kubernetes.io/component': 'worker' },
      },
      policyTypes: ['Egress'],
      egress: [
        {
          to: [{ namespaceSelector: named('kube-system'), podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } } }],
          ports: [{ protocol: 'UDP', port: 53 }, ...tcp(53)],
        },
        { to: [{ namespaceSelector: named('trawl'), podSelector: part('controller') }], ports: tcp(8082) },
        { to: [{ namespaceSelector: named('trawl'), podSelector: part('egress') }], ports: tcp(3128) },
        { to: [{ ipBlock: { cidr: '10.1.0.0/16' } }], ports: tcp(9000) },
      ],
    });
  });

  it('admits what is made and what is changed in this namespace alone, and refuses when it cannot judge', () => {
    const { metadata, spec } = makeAdmissionPolicy(shape);
    expect(spec?.failurePolicy).to.equal('Fail');
    expect(
      spec?.matchConstraints?.resourceRules?.flatMap(({ resources, operations }) => [resources, operations]),
    ).to.deep.equal([
      ...[['jobs'], ['CREATE', 'UPDATE']],
      ...[
        ['pods', 'pods/ephemeralcontainers'],
        ['CREATE', 'UPDATE'],
      ],
    ]);
    expect(makeAdmissionBinding(shape).spec).to.deep.equal({
      policyName: metadata?.name,
      validationActions: ['Deny'],
      matchResources: { namespaceSelector: named('workers') },
    });
  });

  it('asks for the runtime class that was set, and for users of the pod alone unless it was said otherwise', () => {
    const expressions = (change: object) =>
      makeAdmissionPolicy({ ...shape, ...change })
        .spec?.validations?.map(({ expression }) => expression)
        .join(' ');
    expect(expressions({ runtimeClass: 'gvisor' })).to.include(`orValue('') == "gvisor"`);
    expect(expressions({})).to.include(`orValue('') == ""`).and.include('hostUsers');
    expect(expressions({ hostUsers: true })).to.not.include('hostUsers');
    for (const name of ['hostNetwork', 'hostPID', 'hostIPC']) expect(expressions({ hostUsers: true })).to.include(name);
  });
});
