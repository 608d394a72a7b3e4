import { dumpYaml, type KubernetesObject } from '@kubernetes/client-node';
import type { Shape } from './job-manifest.ts';
import {
  makeAdmission,
  makeAdmissionBinding,
  makeNetworkPolicies,
  makeQuota,
  type Ways,
} from './namespace-policies.ts';
import { makeRole, makeRoleBinding } from './permissions.ts';

/** Returns every object that guards the namespace of the workers, in the order in which they are applied. */
export function listManifests(shape: Shape, ways: Ways, maxJobs: number): KubernetesObject[] {
  const { namespace } = shape;
  return [
    makeRole(namespace),
    makeRoleBinding(namespace, ways.namespace),
    makeQuota(namespace, maxJobs),
    ...makeNetworkPolicies(shape, ways),
    makeAdmission(shape),
    makeAdmissionBinding(shape),
  ];
}

/** Returns objects as YAML documents for `kubectl apply --filename -`. */
export function writeYaml(objects: readonly KubernetesObject[]): string {
  return objects.map((object) => `---\n${dumpYaml(object, { lineWidth: -1, noRefs: true })}`).join('');
}
