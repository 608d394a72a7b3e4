import type { Json } from '../json.ts';
import type { AdmissionAnswer } from './admission-webhook.ts';

/** User id of all pods of a namespace, which OpenShift chooses. */
export const chosenUser = 1_000_680_000;

/** Answers what the constraint restricted-v2 of OpenShift does: it refuses a pod that names a user, and chooses one for all others. */
export function judgeAsOpenShift({ metadata = {}, spec = {} }: Json): AdmissionAnswer {
  const containers: Json[] = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  const { securityContext = {} } = spec;
  const named = [securityContext, ...containers.map((one) => one.securityContext ?? {})].some(
    ({ runAsUser, fsGroup }) => runAsUser !== undefined || fsGroup !== undefined,
  );
  if (named) return { no: 'unable to validate against any security context constraint: it names a user or a group' };
  const set = (path: string, value: unknown) => ({ op: 'add', path, value });
  const ofContainers = ['initContainers', 'containers'].flatMap((kind) =>
    ((spec[kind] ?? []) as Json[]).map((one, n) =>
      set(`/spec/${kind}/${n}/securityContext`, { ...one.securityContext, runAsUser: chosenUser, runAsNonRoot: true }),
    ),
  );
  return {
    yes: [
      set('/metadata/annotations', {
        ...{ ...metadata.annotations, 'openshift.io/scc': 'restricted-v2' },
        'seccomp.security.alpha.kubernetes.io/pod': 'runtime/default',
      }),
      set('/spec/imagePullSecrets', [{ name: `${spec.serviceAccountName}-dockercfg-x7k2p` }]),
      set('/spec/securityContext', {
        ...{ ...securityContext, fsGroup: chosenUser, seLinuxOptions: { level: 's0:c26,c5' } },
      }),
      ...ofContainers,
    ],
  };
}
