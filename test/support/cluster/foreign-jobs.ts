import type { Json } from '../json.ts';

/** The name of the refused shape, the change that gives it to our Job, and the message. */
export const foreignJobs: [title: string, change: (pod: Json, worker: Json, job: Json) => void, said: string][] = [
  ['another image', (_, worker) => (worker.image = 'local.test/shell:1'), 'only the image of workers'],
  ['a command', (_, worker) => (worker.command = ['/bin/sh']), 'workers have no command'],
  ['other words', (_, worker) => (worker.args = ['api']), 'only the args of workers'],
  [
    'an option in place of the address that it tries',
    (_, worker) => (worker.args = ['worker', '--try-network', '--token-file']),
    'only the args of workers',
  ],
  [
    'more words after the address that it tries',
    (_, worker) => (worker.args = ['worker', '--try-network', 'a:1', 'b:2']),
    'only the args of workers',
  ],
  [
    'a hook that runs a command',
    (_, worker) => (worker.lifecycle = { postStart: { exec: { command: ['node'] } } }),
    'workers have no lifecycle',
  ],
  [
    'an environment that loads code',
    (_, worker) => worker.env.push({ name: 'NODE_OPTIONS', value: '--import=/scratch/x.js' }),
    'only the env of workers',
  ],
  [
    'an environment out of a Secret',
    (_, worker) => worker.env.push({ name: 'TRAWL_SANDBOX', valueFrom: { secretKeyRef: { name: 'x', key: 'y' } } }),
    'only the env of workers',
  ],
  [
    'plugins out of the work folder',
    (_, worker) => worker.env.push({ name: 'TRAWL_YTDLP_PLUGINS', value: '/scratch/x' }),
    'only the env of workers',
  ],
  [
    'the gateway of somebody else',
    (_, worker) => (worker.env[0].value = 'http://192.0.2.1:1'),
    'only the env of workers',
  ],
  ['a second container', (pod, worker) => pod.containers.push({ ...worker, name: 'second' }), 'one container'],
  [
    'a container before it',
    (pod, worker) => (pod.initContainers = [{ ...worker, name: 'first' }]),
    'workers have no initContainers',
  ],
  ['another account', (pod) => (pod.serviceAccountName = 'trawl-controller'), 'only the serviceAccountName of workers'],
  [
    'a token for the API server',
    (pod) => (pod.automountServiceAccountToken = true),
    'only the automountServiceAccountToken of workers',
  ],
  [
    'a folder of the node',
    (pod) => pod.volumes.push({ name: 'node', hostPath: { path: '/' } }),
    'only the volumes of workers',
  ],
  [
    'a Secret as a volume',
    (pod) => pod.volumes.push({ name: 'secret', secret: { secretName: 'x' } }),
    'only the volumes of workers',
  ],
  [
    'a token for somebody else',
    (pod) => (pod.volumes[1].projected.sources[0].serviceAccountToken.audience = 'https://kubernetes.default.svc'),
    'only the volumes of workers',
  ],
  [
    'a work folder in memory',
    (pod) => (pod.volumes[0].emptyDir = { medium: 'Memory', sizeLimit: '64Mi' }),
    'only the volumes of workers',
  ],
  ['a larger work folder', (pod) => (pod.volumes[0].emptyDir.sizeLimit = '1Ti'), 'only the volumes of workers'],
  [
    'a folder over the program',
    (_, worker) => worker.volumeMounts.push({ name: 'work', mountPath: '/opt/trawl/src' }),
    'only the volumeMounts of workers',
  ],
  [
    'the network of the node',
    (pod) => Object.assign(pod, { hostNetwork: true, hostUsers: true }),
    'only the hostUsers of workers',
  ],
  [
    'the processes of the node',
    (pod) => Object.assign(pod, { hostPID: true, hostUsers: true }),
    'only the hostUsers of workers',
  ],
  ['the users of the node', (pod) => (pod.hostUsers = true), 'only the hostUsers of workers'],
  [
    'all rights on the node',
    (_, worker) => Object.assign(worker.securityContext, { privileged: true, allowPrivilegeEscalation: true }),
    'only the securityContext of workers',
  ],
  [
    'a root folder that can be written',
    (_, worker) => (worker.securityContext.readOnlyRootFilesystem = false),
    'only the securityContext of workers',
  ],
  ['no limit of memory', (_, worker) => delete worker.resources.limits.memory, 'only the resources of workers'],
  [
    'more memory',
    (_, { resources }) => (resources.limits.memory = resources.requests.memory = '10Ti'),
    'only the resources of workers',
  ],
  ['no limit of time', (pod) => delete pod.activeDeadlineSeconds, 'only the activeDeadlineSeconds of workers'],
  ['ten years', (pod) => (pod.activeDeadlineSeconds = 315_360_000), 'only the activeDeadlineSeconds of workers'],
  [
    'a hundred years for the Job',
    (_pod, _worker, job) => (job.spec.activeDeadlineSeconds = 3_153_600_000),
    'only the activeDeadlineSeconds of worker Jobs',
  ],
  [
    'the priority of the system',
    (pod) => (pod.priorityClassName = 'system-node-critical'),
    'only the priorityClassName of workers',
  ],
  ['a node of its choice', (pod) => (pod.nodeName = 'control-plane'), 'workers have no nodeName'],
  [
    'nodes of its choice',
    (pod) => (pod.nodeSelector = { 'node-role.kubernetes.io/control-plane': '' }),
    'only the nodeSelector of workers',
  ],
  ['an affinity', (pod) => (pod.affinity = { nodeAffinity: {} }), 'only the affinity of workers'],
  [
    'a tolerance of everything',
    (pod) => pod.tolerations.push({ operator: 'Exists' }),
    'only the tolerations of workers',
  ],
  [
    'names of its choice',
    (pod) => (pod.hostAliases = [{ ip: '192.0.2.1', hostnames: ['gateway'] }]),
    'workers have no hostAliases',
  ],
  [
    'a resolver of its choice',
    (pod) => Object.assign(pod, { dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.1'] } }),
    'only the dnsConfig of workers',
  ],
  ['a secret for images', (pod) => (pod.imagePullSecrets = [{ name: 'x' }]), 'workers have no imagePullSecrets'],
  ['another scheduler', (pod) => (pod.schedulerName = 'nobody'), 'only the schedulerName of workers'],
  [
    'an annotation that another program obeys',
    (_pod, _worker, job) => (job.spec.template.metadata.annotations['vault.hashicorp.com/agent-inject'] = 'true'),
    'only the annotations of workers',
  ],
  [
    'a label that another program obeys',
    (_pod, _worker, job) => (job.spec.template.metadata.labels['sidecar.istio.io/inject'] = 'true'),
    'only the labels of workers',
  ],
  [
    'an annotation of the Job',
    (_pod, _worker, job) => (job.metadata.annotations = { 'example.com/order': 'x' }),
    'only the annotations of workers',
  ],
  [
    'a queue of Kueue',
    (_pod, _worker, job) => (job.metadata.labels['kueue.x-k8s.io/queue-name'] = 'x'),
    'only the labels',
  ],
  [
    'a thousand pods',
    (_pod, _worker, job) => Object.assign(job.spec, { parallelism: 1000, completions: 1000 }),
    'only the completions of worker Jobs',
  ],
  ['another try', (_pod, _worker, job) => (job.spec.backoffLimit = 6), 'only the backoffLimit of worker Jobs'],
];
