/** The differences of a test's Job from the default. */
export interface JobOptions {
  readonly namespace?: string;
  readonly image?: string;
  /** The shell script that its container runs. */
  readonly script?: string;
  readonly finalizers?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  /** More of the Job's `spec`, of the pod's, and of the container. */
  readonly spec?: object;
  readonly pod?: object;
  readonly container?: object;
}

/** A Job of one pod that keeps to the restricted security standard; the finalizers are on the pod too. */
export function makeJob(name: string, options: JobOptions = {}): object {
  const { namespace = 'jobs', image = 'local.test/shell:1', script = 'true', labels = {}, finalizers = [] } = options;
  const securityContext = {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  };
  const container = {
    name: 'main',
    image,
    command: ['/bin/sh', '-c', script],
    resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { memory: '64Mi' } },
    securityContext,
    volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }],
    ...options.container,
  };
  const pod = {
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 5,
    securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [container],
    volumes: [{ name: 'scratch', emptyDir: { sizeLimit: '64Mi' } }],
    ...options.pod,
  };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace, labels, finalizers },
    spec: { backoffLimit: 0, template: { metadata: { labels, finalizers }, spec: pod }, ...options.spec },
  };
}
