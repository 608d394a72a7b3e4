import type {
  V1NetworkPolicy,
  V1NetworkPolicyEgressRule,
  V1ResourceQuota,
  V1ValidatingAdmissionPolicy,
  V1ValidatingAdmissionPolicyBinding,
} from '@kubernetes/client-node';
import { makePodSpec, tokenAudience, type WorkerShape } from './job-manifest.ts';
import { workerLabels } from './labels.ts';

/** Destinations of workers besides the cluster's DNS. */
export interface AllowedTargets {
  /** Namespace of controller and egress. */
  readonly namespace: string;
  readonly gatewayPort: number;
  readonly egressPort: number;
  /** Addresses and ports of an object store that is not public. */
  readonly stores: readonly { readonly cidr: string; readonly port: number }[];
}

/** Returns a quota of Jobs and pods; finished ones count until their cleanup. */
export function makeQuota(namespace: string, most: number): V1ResourceQuota {
  const hard = { 'count/jobs.batch': String(most), 'count/pods': String(most) };
  return { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'trawl-workers', namespace }, spec: { hard } };
}

/** Returns the policy that admits only Jobs and pods of this shape, whoever creates or changes them. */
export function makeAdmissionPolicy(shape: WorkerShape): V1ValidatingAdmissionPolicy {
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
      variables: [
        { name: 'pod', expression: `request.kind.kind == 'Job' ? object.spec.template.spec : object.spec` },
        { name: 'worker', expression: 'variables.pod.containers[0]' },
      ],
      validations: listRules(shape).map(([message, ...expressions]) => ({
        message: `trawl: ${message}`,
        expression: expressions.map((expression) => `(${expression})`).join(' && '),
      })),
    },
  };
}

/** Returns the binding of that policy to the namespace of the workers. */
export function makeAdmissionBinding({
  namespace,
}: Pick<WorkerShape, 'namespace'>): V1ValidatingAdmissionPolicyBinding {
  const name = admissionOf({ namespace });
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: {
      policyName: name,
      validationActions: ['Deny'],
      matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } },
    },
  };
}

/** Returns network policies that deny all traffic of the namespace except to the destinations of workers. */
export function makeNetworkPolicies(
  { namespace }: Pick<WorkerShape, 'namespace'>,
  ways: AllowedTargets,
): V1NetworkPolicy[] {
  const policy = (name: string, spec: V1NetworkPolicy['spec']): V1NetworkPolicy => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace },
    spec,
  });
  return [
    policy('trawl-nothing', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] }),
    policy('trawl-workers', {
      podSelector: { matchLabels: workerLabels },
      policyTypes: ['Egress'],
      egress: [
        {
          ...toPods('kube-system', { 'k8s-app': 'kube-dns' }),
          ports: [
            { protocol: 'UDP', port: 53 },
            { protocol: 'TCP', port: 53 },
          ],
        },
        { ...toPods(ways.namespace, partOf('controller')), ports: [{ protocol: 'TCP', port: ways.gatewayPort }] },
        { ...toPods(ways.namespace, partOf('egress')), ports: [{ protocol: 'TCP', port: ways.egressPort }] },
        ...ways.stores.map(({ cidr, port }) => ({ to: [{ ipBlock: { cidr } }], ports: [{ protocol: 'TCP', port }] })),
      ],
    }),
  ];
}

const isChanged = `request.operation == 'CREATE' || (request.kind.kind == 'Job'
  ? object.spec.template.spec != oldObject.spec.template.spec : object.spec != oldObject.spec)`;

/** Returns the rules of a worker pod, each with the message of its refusal and the CEL expressions that must hold. */
function listRules(shape: WorkerShape): [message: string, ...expressions: string[]][] {
  const { args, env } = makePodSpec(shape, 1).containers[0] ?? {};
  const names = env?.map(({ name }) => name).filter((name) => !name.startsWith('TRAWL_'));
  const say = JSON.stringify;
  const lacks = (place: string, ...fields: string[]) => fields.map((field) => `!has(variables.${place}.${field})`);
  const isFalse = (place: string, ...fields: string[]) =>
    fields.map((field) => `!variables.${place}.?${field}.orValue(false)`);
  return [
    ['one container', 'variables.pod.containers.size() == 1', ...lacks('pod', 'initContainers', 'ephemeralContainers')],
    ['only the image of workers', `variables.worker.image == ${say(shape.image)}`],
    [
      'only the command of workers',
      `variables.worker.?args.orValue([]) == ${say(args)}`,
      ...lacks('worker', 'command', 'lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'),
    ],
    [
      'only the environment of workers',
      `variables.worker.?env.orValue([]).all(e,
        (e.name.startsWith('TRAWL_') || e.name in ${say(names)}) && !has(e.valueFrom))`,
      ...lacks('worker', 'envFrom'),
    ],
    [
      'only the account of workers, and no token for the API server',
      `variables.pod.serviceAccountName == ${say(shape.serviceAccount)}`,
      'variables.pod.?automountServiceAccountToken == optional.of(false)',
    ],
    [
      'only an empty folder and a token for the gateway as volumes',
      `variables.pod.?volumes.orValue([]).all(v, has(v.emptyDir) || (has(v.projected) && v.projected.sources.all(s,
        has(s.serviceAccountToken) && s.serviceAccountToken.?audience == optional.of(${say(tokenAudience)}))))`,
    ],
    [
      'nothing of the node',
      ...isFalse('pod', 'hostNetwork', 'hostPID', 'hostIPC'),
      ...(shape.hostUsers ? [] : ['variables.pod.?hostUsers == optional.of(false)']),
      `variables.pod.?runtimeClassName.orValue('') == ${say(shape.runtimeClass ?? '')}`,
    ],
    [
      'no rights that workers do not need',
      ...isFalse('worker.?securityContext', 'privileged'),
      'variables.worker.?securityContext.?allowPrivilegeEscalation == optional.of(false)',
      'variables.worker.?securityContext.?readOnlyRootFilesystem == optional.of(true)',
    ],
    [
      'limits of time, memory and disk',
      'has(variables.pod.activeDeadlineSeconds)',
      `['memory', 'ephemeral-storage'].all(r, r in variables.worker.?resources.?limits.orValue({}))`,
    ],
  ];
}

function admissionOf({ namespace }: Pick<WorkerShape, 'namespace'>): string {
  return `trawl-workers-in-${namespace}`;
}

function rule(group: string, ...resources: string[]) {
  return { apiGroups: [group], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources };
}

function partOf(component: string): Record<string, string> {
  return { 'app.kubernetes.io/name': 'trawl', 'app.kubernetes.io/component': component };
}

function toPods(namespace: string, matchLabels: Record<string, string>): Pick<V1NetworkPolicyEgressRule, 'to'> {
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
  return { to: [{ namespaceSelector, podSelector: { matchLabels } }] };
}
