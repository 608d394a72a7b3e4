import type { KubernetesObject } from '@kubernetes/client-node';
import { dumpYaml } from '@kubernetes/client-node/dist/yaml.js';
import type { AdmissionAllowances } from './admission-rules.ts';
import type { WorkerShape } from './job-manifest.ts';
import {
  type AllowedTargets,
  makeAdmissionBinding,
  makeAdmissionPolicy,
  makeLimitRange,
  makeNetworkPolicies,
  makeQuota,
} from './namespace-policies.ts';
import { makeRole, makeRoleBinding } from './permissions.ts';

/** Returns every object that guards the namespace of the workers, in the order in which they are applied. */
export function listManifests(
  shape: WorkerShape,
  targets: AllowedTargets,
  maxJobs: number,
  allowances?: AdmissionAllowances,
): KubernetesObject[] {
  const { namespace } = shape;
  return [
    makeRole(namespace),
    makeRoleBinding(namespace, targets.namespace),
    makeQuota(namespace, maxJobs),
    // A LimitRange would refuse resources of workers that the operator allows besides.
    ...(allowances?.fields.some(({ name }) => name === 'worker.resources') ? [] : [makeLimitRange(shape)]),
    ...makeNetworkPolicies(shape, targets),
    makeAdmissionPolicy(shape, allowances),
    makeAdmissionBinding(shape),
  ];
}

/** Returns objects as YAML documents for `kubectl apply --filename -`. */
export function writeYaml(objects: readonly KubernetesObject[]): string {
  return objects.map((object) => `---\n${dumpYaml(object, { lineWidth: -1, noRefs: true })}`).join('');
}
