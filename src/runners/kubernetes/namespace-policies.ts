import type {
  V1LimitRange,
  V1NetworkPolicy,
  V1NetworkPolicyEgressRule,
  V1NetworkPolicyPeer,
  V1ResourceQuota,
  V1ValidatingAdmissionPolicy,
  V1ValidatingAdmissionPolicyBinding,
} from '@kubernetes/client-node';
import { type AdmissionAllowances, admissionVariables, listAdmissionRules, noAllowances } from './admission-rules.ts';
import { makeWorkerResources, type WorkerShape } from './job-manifest.ts';
import { workerLabels } from './labels.ts';

/** Destinations of workers besides the cluster's DNS. */
export interface AllowedTargets {
  /** Namespace of controller and egress. */
  readonly namespace: string;
  readonly gatewayPort: number;
  readonly egressPort: number;
  /** DNS servers, as the peers of a NetworkPolicy, and their ports; kube-dns unless given. */
  readonly dns?: { readonly to: V1NetworkPolicyPeer[]; readonly ports: readonly number[] };
  /** Addresses and ports of an object store that is not public. */
  readonly stores: readonly { readonly cidr: string; readonly port: number }[];
  /** Port of an object store in the namespace of controller and egress, as the chart can install one for trying out. */
  readonly bundledStorePort?: number;
}

/** Returns a quota of Jobs and pods; finished ones count until their cleanup. */
export function makeQuota(namespace: string, maxJobs: number): V1ResourceQuota {
  const hard = { 'count/jobs.batch': String(maxJobs), 'count/pods': String(maxJobs) };
  return { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'trawl-workers', namespace }, spec: { hard } };
}

/** Returns the limits of every container: those of a worker, which thus keeps them as the admission policy wants them. */
export function makeLimitRange(shape: WorkerShape): V1LimitRange {
  const { limits } = makeWorkerResources(shape);
  return {
    apiVersion: 'v1',
    kind: 'LimitRange',
    metadata: { name: 'trawl-workers', namespace: shape.namespace },
    spec: { limits: [{ type: 'Container', ...(limits && { max: limits }) }] },
  };
}

/** Returns the policy that admits only Jobs and pods of this shape, whoever creates or changes them. */
export function makeAdmissionPolicy(
  shape: WorkerShape,
  allowances: AdmissionAllowances = noAllowances,
): V1ValidatingAdmissionPolicy {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: admissionOf(shape) },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [rule('batch', 'jobs'), rule('', 'pods', 'pods/ephemeralcontainers')],
      },
      // A Job with yesterday's image can be cleaned up under today's policy.
      matchConditions: [{ name: 'changed', expression: isChanged }],
      variables: admissionVariables,
      validations: listAdmissionRules(shape, allowances),
    },
  };
}

export function makeAdmissionBinding(shape: Pick<WorkerShape, 'namespace'>): V1ValidatingAdmissionPolicyBinding {
  const name = admissionOf(shape);
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: {
      policyName: name,
      validationActions: ['Deny'],
      matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': shape.namespace } } },
    },
  };
}

/** Returns network policies that deny all traffic of the namespace except to the destinations of workers. */
export function makeNetworkPolicies(
  { namespace }: Pick<WorkerShape, 'namespace'>,
  targets: AllowedTargets,
): V1NetworkPolicy[] {
  const policy = (name: string, spec: V1NetworkPolicy['spec']): V1NetworkPolicy => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace },
    spec,
  });
  const tcp = (port: number) => [{ protocol: 'TCP', port }];
  const toPart = (component: string, port: number) => ({
    ...toPods(targets.namespace, { 'app.kubernetes.io/name': 'trawl', 'app.kubernetes.io/component': component }),
    ports: tcp(port),
  });
  return [
    policy('trawl-nothing', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] }),
    policy('trawl-workers', {
      podSelector: { matchLabels: workerLabels },
      policyTypes: ['Egress'],
      egress: [
        {
          ...(targets.dns ? { to: targets.dns.to } : toPods('kube-system', { 'k8s-app': 'kube-dns' })),
          ports: (targets.dns?.ports ?? [53]).flatMap((port) => ['UDP', 'TCP'].map((protocol) => ({ protocol, port }))),
        },
        toPart('controller', targets.gatewayPort),
        toPart('egress', targets.egressPort),
        ...(targets.bundledStorePort === undefined ? [] : [toPart('s3', targets.bundledStorePort)]),
        ...targets.stores.map(({ cidr, port }) => ({ to: [{ ipBlock: { cidr } }], ports: tcp(port) })),
      ],
    }),
  ];
}

/** Kueue suspends and resumes a Job; the controller has no reason to change a label or an annotation. */
const isChanged = `request.operation == 'CREATE' || (request.kind.kind == 'Job'
  ? object.spec.exists(f, f != 'suspend' && (!(f in oldObject.spec) || object.spec[f] != oldObject.spec[f])) ||
    oldObject.spec.exists(f, !(f in object.spec))
  : object.spec != oldObject.spec) || (request.userInfo.username.endsWith(':trawl-controller') &&
  ['labels', 'annotations'].exists(k, object.metadata[?k].orValue({}) != oldObject.metadata[?k].orValue({})))`;

function admissionOf({ namespace }: Pick<WorkerShape, 'namespace'>): string {
  return `trawl-workers-in-${namespace}`;
}

function rule(group: string, ...resources: string[]) {
  return { apiGroups: [group], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources };
}

function toPods(namespace: string, matchLabels: Record<string, string>): Pick<V1NetworkPolicyEgressRule, 'to'> {
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
  return { to: [{ namespaceSelector, podSelector: { matchLabels } }] };
}
