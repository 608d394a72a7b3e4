import { dumpYaml, type KubernetesObject } from '@kubernetes/client-node';
import type { WorkerShape } from './job-manifest.ts';
import {
  type AllowedTargets,
  makeAdmissionBinding,
  makeAdmissionPolicy,
  makeNetworkPolicies,
  makeQuota,
} from './namespace-policies.ts';
import { makeRole, makeRoleBinding } from './permissions.ts';

/** Returns every object that guards the namespace of the workers, in the order in which they are applied. */
export function listManifests(shape: WorkerShape, ways: AllowedTargets, maxJobs: number): KubernetesObject[] {
  const { namespace } = shape;
  return [
    makeRole(namespace),
    makeRoleBinding(namespace, ways.namespace),
    makeQuota(namespace, maxJobs),
    ...makeNetworkPolicies(shape, ways),
    makeAdmissionPolicy(shape),
    makeAdmissionBinding(shape),
  ];
}

/** Returns objects as YAML documents for `kubectl apply --filename -`. */
export function writeYaml(objects: readonly KubernetesObject[]): string {
  return objects.map((object) => `---\n${dumpYaml(object, { lineWidth: -1, noRefs: true })}`).join('');
}
