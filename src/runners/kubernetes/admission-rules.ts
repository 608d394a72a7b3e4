import type { V1PodSpec } from '@kubernetes/client-node';
import { equals, literal } from './cel.ts';
import { makeJob, trialArgs, type WorkerShape } from './job-manifest.ts';
import { finalizer } from './labels.ts';

/** Parts of Jobs and pods that the operator lets differ from what the controller makes. */
export interface AdmissionAllowances {
  /** Images besides that of the settings, such as the one before an upgrade. */
  readonly images: readonly string[];
  /** Other values of a field of the pod, or of its container (`worker.resources`), that the cluster gives it. */
  readonly fields: readonly { readonly name: string; readonly value: unknown }[];
  /** Keys of annotations and labels that the cluster adds. */
  readonly marks: readonly string[];
}

export const noAllowances: AdmissionAllowances = { images: [], fields: [], marks: [] };

interface AdmissionRule {
  readonly message: string;
  readonly expression: string;
  readonly messageExpression?: string;
}

/** Rules of fields that are not compared with one value. */
type OwnRules = Readonly<Record<string, AdmissionRule>>;
type ObjectFields = Readonly<Record<string, unknown>>;

/** Values that the API server gives a field without one; it leaves out `hostUsers` or tells its default. */
const podDefaults = { dnsPolicy: 'ClusterFirst', schedulerName: 'default-scheduler' };
const jobDefaults = {
  completionMode: 'NonIndexed',
  manualSelector: false,
  podReplacementPolicy: 'TerminatingOrFailed',
  suspend: false,
};
/** Others may make a Job wait: for its admission, or until a pod on a dead node is known to have failed. */
const changedByOthers = [
  ['suspend', true],
  ['podReplacementPolicy', 'Failed'],
] as const;
/** Fields that the API server computes, and refuses when somebody else has set them to another value. */
const computedOfPod = ['priority', 'preemptionPolicy'];
/** Fields that a pod may lack when nothing is wanted of them. */
const placementFields = ['nodeSelector', 'affinity', 'priorityClassName'];
/** The API server pulls every image anew where its plugin AlwaysPullImages is enabled. */
const changedByPlugins = [['imagePullPolicy', 'Always']] as const;
const computedOfJob = ['selector'];
const controllerLabels = ['controller-uid', 'job-name'].flatMap((name) => [name, `batch.kubernetes.io/${name}`]);
const controllerFinalizer = 'batch.kubernetes.io/job-tracking';
const kueuePrefix = 'kueue.x-k8s.io/';
/** Expression of RE2 for `host:port`, which begins with no hyphen as an option does. */
const trialTarget = '^[0-9a-z.:\\[\\]][0-9a-z.:\\[\\]-]*:[0-9]+$';

/** Fields that OpenShift gives the security of a pod and of its container when they name no user, and its annotations; the last one repeats the field of a pod. */
const chosenByCluster = {
  pod: ['fsGroup', 'supplementalGroups', 'seLinuxOptions'],
  worker: ['runAsUser', 'runAsNonRoot', 'seLinuxOptions'],
  marks: [
    ...['openshift.io/scc', 'openshift.io/required-scc', 'security.openshift.io/validated-scc-subject-type'],
    'seccomp.security.alpha.kubernetes.io/pod',
  ],
};

export const admissionVariables = [
  { name: 'pod', expression: `request.kind.kind == 'Job' ? object.spec.template.spec : object.spec` },
  { name: 'marks', expression: `request.kind.kind == 'Job' ? object.spec.template.metadata : object.metadata` },
  { name: 'worker', expression: 'variables.pod.containers[0]' },
];

/**
 * Returns the rules for Jobs and pods of workers: every field is compared with what `makeJob` makes, so that a field that is
 * new there is compared too, and a field that it lacks must be absent.
 */
export function listAdmissionRules(shape: WorkerShape, allowances: AdmissionAllowances): AdmissionRule[] {
  const { metadata, spec } = makeJob({ name: 'a-1', jobId: 'a', attempt: 1, maxMs: 0 }, shape);
  const { metadata: marks, spec: pod } = spec?.template ?? {};
  const { containers, activeDeadlineSeconds: podSeconds = 0, ...podFields } = pod ?? ({} as V1PodSpec);
  const { nodeSelector, affinity, priorityClassName, ...otherFields } = podFields;
  const { image, ...workerFields } = containers[0] ?? { name: '' };
  const marksOfOthers = [...allowances.marks, ...(shape.clusterUser ? chosenByCluster.marks : [])];
  const securityOf = (name: 'pod' | 'worker', { securityContext = {} }: { securityContext?: object }): OwnRules =>
    shape.clusterUser ? { securityContext: compareSecurity(name, securityContext) } : {};
  const { activeDeadlineSeconds: jobSeconds = 0, ttlSecondsAfterFinished = 0, template: _, ...jobFields } = spec ?? {};
  const alternatives = (prefix: string) => alternativesOf(allowances, prefix);
  const images = [image, ...allowances.images];
  const hasQueue = shape.queue !== null;
  const defaults = {
    ...podDefaults,
    serviceAccount: shape.serviceAccount,
    ...(shape.hostUsers && { hostUsers: true }),
  };
  const added = [...computedOfPod, ...(shape.runtimeClass ? ['overhead'] : [])];
  const pullSecrets = shape.clusterUser ? [['imagePullSecrets', []] as const] : [];
  return [
    rule('one container', 'variables.pod.containers.size() == 1'),
    rule('only the image of workers', `variables.worker.image in ${literal(images)}`),
    ...compareFields('worker', workerFields, {}, [...changedByPlugins, ...alternatives('worker')], ['image'], {
      ...securityOf('worker', workerFields),
      args: compareArgs([workerFields.args, ...alternatives('worker').flatMap(valuesOf('args'))]),
    }),
    atMost('pod', 'activeDeadlineSeconds', shape.maxSeconds + podSeconds),
    ...Object.entries({ nodeSelector, affinity }).map(([field, value = {}]) => {
      const values = alternatives('').flatMap(valuesOf(field));
      // An empty one and none are the same.
      const equal = [value, ...values].map((one) => `variables.pod.?${field}.orValue({}) == ${literal(one)}`);
      return rule(`only the ${field} of workers`, equal.join(' || '));
    }),
    comparePriority(priorityClassName, alternatives('').flatMap(valuesOf('priorityClassName'))),
    ...compareFields(
      'pod',
      otherFields,
      defaults,
      [...alternatives('').filter(([field]) => !placementFields.includes(field)), ...pullSecrets],
      ['containers', 'activeDeadlineSeconds', ...placementFields, ...added],
      { ...securityOf('pod', otherFields), ...comparePullSecrets(shape, alternatives('')) },
    ),
    ...compareMarks('variables.marks', marks, hasQueue, marksOfOthers),
    rule(
      'only the finalizers of workers',
      `variables.marks.?finalizers.orValue([]).all(f, f in ${literal([finalizer, controllerFinalizer])})`,
    ),
    ...[
      ...compareMarks('object.metadata', metadata, hasQueue, marksOfOthers),
      atMost('job', 'activeDeadlineSeconds', shape.maxSeconds + jobSeconds),
      atMost('job', 'ttlSecondsAfterFinished', ttlSecondsAfterFinished),
      ...compareFields('job', jobFields, jobDefaults, changedByOthers, [
        ...['template', 'activeDeadlineSeconds', 'ttlSecondsAfterFinished'],
        ...computedOfJob,
      ]),
    ].map(ofJobs),
  ];
}

/** Returns the other values that fields of the pod may have, or those of its part with this prefix. */
function alternativesOf({ fields }: AdmissionAllowances, prefix: string) {
  return fields.flatMap(({ name, value }) => {
    const [first = '', second] = name.split('.');
    return (prefix === '' ? second === undefined : first === prefix && second)
      ? [[second ?? first, value] as const]
      : [];
  });
}

/** Compares what the controller sets, and lets the cluster choose a user and groups that are not root's, and an SELinux level, but no type. */
function compareSecurity(name: 'pod' | 'worker', expected: object): AdmissionRule {
  const context = `${paths[name]}.securityContext`;
  const known = literal([...Object.keys(expected), ...chosenByCluster[name]]);
  const same = Object.entries(expected).map(
    ([key, value]) => `${context}[?${literal(key)}] == optional.of(${literal(value)})`,
  );
  return rule(
    `only the securityContext of ${owners[name]}`,
    `has(${context})`,
    `${context}.all(f, f in ${known})`,
    ...same,
    `${context}.?runAsUser.orValue(1) > 0`,
    `${context}.?runAsNonRoot.orValue(true)`,
    `${context}.?seLinuxOptions.orValue({}).all(f, f == 'level')`,
    ...(name === 'pod'
      ? [`${context}.?fsGroup.orValue(1) > 0`, `${context}.?supplementalGroups.orValue([]).all(g, g > 0)`]
      : []),
  );
}

/** Lets in the Secret for its own registry that OpenShift gives each service account, and through it each pod, beside those that are allowed. */
function comparePullSecrets(shape: WorkerShape, alternatives: ReturnType<typeof alternativesOf>): OwnRules {
  if (!shape.clusterUser) return {};
  const allowed = alternatives.flatMap(valuesOf('imagePullSecrets')).flat();
  const isOwn = `s.name.startsWith(${literal(shape.serviceAccount)} + '-dockercfg-')`;
  const secrets = `${paths.pod}.?imagePullSecrets.orValue([])`;
  const expression = `${secrets}.all(s, ${isOwn} || s in ${literal(allowed)})`;
  return { imagePullSecrets: rule(`only the imagePullSecrets of ${owners.pod}`, expression) };
}

/** Compares the priority; the default one of the cluster, which pods get and Jobs do not, is let in where none is wanted. */
function comparePriority(wanted: string | undefined, others: readonly unknown[]): AdmissionRule {
  const path = `${paths.pod}.priorityClassName`;
  const equal = [...(wanted === undefined ? [] : [wanted]), ...others].map((value) => equals(path, value));
  const none = [`request.kind.kind != 'Job'`, `!has(${path})`, ...equal].join(' || ');
  const message = `only the priorityClassName of ${owners.pod}`;
  return wanted === undefined ? rule(message, none) : rule(message, `has(${path})`, equal.join(' || '));
}

/** Compares the arguments; the pod that tries what workers reach has an address of its own. */
function compareArgs(known: readonly unknown[]): AdmissionRule {
  const args = `${paths.worker}.args`;
  const first = trialArgs.map((arg, n) => `${args}[${n}] == ${literal(arg)}`).join(' && ');
  const { length } = trialArgs;
  const isTrial = `${args}.size() == ${length + 1} && ${first} && ${args}[${length}].matches(${literal(trialTarget)})`;
  const equal = known.map((value) => equals(args, value));
  return rule(`only the args of ${owners.worker}`, `has(${args})`, [...equal, isTrial].join(' || '));
}

function valuesOf(field: string) {
  return ([name, value]: readonly [field: string, value: unknown]) => (name === field ? [value] : []);
}

function atMost(name: keyof typeof paths, field: string, max: number): AdmissionRule {
  const value = `${paths[name]}.?${field}.orValue(${2 ** 31})`;
  return rule(`only the ${field} of ${owners[name]}`, `${value} <= ${max}`);
}

const owners = { pod: 'workers', worker: 'workers', job: 'worker Jobs' } as const;
const paths = { pod: 'variables.pod', worker: 'variables.worker', job: 'object.spec' } as const;

/** Compares every field of an object; one with a default may be absent, and no field but these and `others` may be there. */
function compareFields(
  name: keyof typeof paths,
  expected: ObjectFields,
  defaults: ObjectFields,
  alternatives: readonly (readonly [field: string, value: unknown])[],
  others: readonly string[],
  ownRules: OwnRules = {},
): AdmissionRule[] {
  const path = paths[name];
  const owner = owners[name];
  const wanted = new Map<string, unknown[]>();
  const given = Object.entries({ ...expected, ...defaults, ...expected }).filter(([, value]) => value !== undefined);
  for (const [field, value] of [...given, ...alternatives]) wanted.set(field, [...(wanted.get(field) ?? []), value]);
  const rules = [...wanted].map(([field, values]) => {
    const own = ownRules[field];
    if (own) return own;
    const isOptional = field in defaults || !(field in expected);
    const equal = values.map((value) => equals(`${path}.${field}`, value)).join(' || ');
    const there = `has(${path}.${field})`;
    return rule(`only the ${field} of ${owner}`, isOptional ? `!${there} || (${equal})` : `${there} && (${equal})`);
  });
  const known = literal([...wanted.keys(), ...others]);
  const unknown = {
    message: `trawl: ${owner} have no other fields`,
    messageExpression: `'trawl: ${owner} have no ' + ${path}.filter(f, !(f in ${known})).join(', ')`,
    expression: `${path}.all(f, f in ${known})`,
  };
  return [...rules, unknown];
}

/** Compares labels and annotations, besides those that the Job controller, Kueue and what is allowed add. */
function compareMarks(
  path: string,
  expected: { labels?: { [key: string]: string }; annotations?: { [key: string]: string } } | undefined,
  hasQueue: boolean,
  allowed: readonly string[],
): AdmissionRule[] {
  return (['labels', 'annotations'] as const).map((kind) => {
    const wanted = Object.entries(expected?.[kind] ?? {});
    const known = literal([...wanted.map(([key]) => key), ...allowed, ...(kind === 'labels' ? controllerLabels : [])]);
    const marks = `${path}.?${kind}.orValue({})`;
    const queued = hasQueue ? ` || k.contains(${literal(kueuePrefix)})` : '';
    const values = wanted.map(([key, value]) =>
      // The label that names the job differs.
      key === 'trawl/job'
        ? `${literal(key)} in ${marks}`
        : `${marks}[?${literal(key)}].orValue('') == ${literal(value)}`,
    );
    return rule(`only the ${kind} of workers`, ...values, `${marks}.all(k, k in ${known}${queued})`);
  });
}

function rule(message: string, ...expressions: string[]): AdmissionRule {
  return { message: `trawl: ${message}`, expression: expressions.map((one) => `(${one})`).join(' && ') };
}

function ofJobs(of: AdmissionRule): AdmissionRule {
  return { ...of, expression: `request.kind.kind != 'Job' || (${of.expression})` };
}
