import { readConfig } from '../../../src/base/config.ts';
import type { WorkerShape } from '../../../src/runners/kubernetes/job-manifest.ts';
import { podShapeOf } from '../../../src/runners/kubernetes/pod-shape.ts';
import { type Rendering, render } from '../chart.ts';
import { environmentOf } from '../chart-environment.ts';
import type { Json } from '../json.ts';
import { until } from '../until.ts';
import type { Cluster } from './cluster.ts';
import { foreignDefinitions } from './kube-schemas.ts';
import { apply, kubectl } from './kubectl.ts';
import { makeWorkerPod } from './worker-namespace.ts';

const lastGroup = 'apis/monitoring.coreos.com/v1';
/** What `refusal` returns for an object that the server made. */
export const letIn = 'it was let in';

/** Makes the kinds of others known to a cluster: HTTPRoute, PodMonitor, PrometheusRule and Certificate. */
export async function defineForeignKinds(cluster: Cluster): Promise<void> {
  const definitions = foreignDefinitions().flatMap((file) => ['-f', file]);
  await kubectl(cluster, ['apply', '--server-side', ...definitions]);
  await kubectl(cluster, ['wait', '--for=condition=Established', '--timeout=180s', ...definitions]);
  // The list of documents is small, and newer than the one document that kubeconform's schemas are made of.
  const isListed = async () => Object.keys((await cluster.admin.ask('GET', '/openapi/v3')).paths).includes(lastGroup);
  await until(isListed, 20, 'the server lists the kinds of others');
}

/** Has the server judge objects as if it made them; returns a line for each. */
export async function dryRun(cluster: Cluster, items: readonly Json[]): Promise<string[]> {
  // The server refuses a pod, also one that it only would make, whose account is not there.
  await apply(cluster, ...items.filter(({ kind }) => kind === 'ServiceAccount'));
  const list = { apiVersion: 'v1', kind: 'List', items };
  const said = await kubectl(cluster, ['apply', '--dry-run=server', '--validate=strict', '-f', '-'], list);
  return said.trim().split('\n');
}

/** Returns what the server says against a request. */
export function refusal(asked: Promise<unknown>): Promise<string> {
  return asked.then(
    () => letIn,
    (error: Error) => error.message,
  );
}

export interface ClosedNamespace {
  /** Shape of the workers that are let in. */
  readonly shape: WorkerShape;
  /** Returns what the server says against a worker with this change. */
  readonly judge: (change?: (pod: Json, worker: Json, marks: Json) => void) => Promise<string>;
}

/** Makes what the chart puts into the namespace of the workers, and waits until it is closed to others. */
export async function closeNamespace(cluster: Cluster, rendering: Rendering): Promise<ClosedNamespace> {
  const objects = render(rendering);
  const { values, readFile } = environmentOf(objects, 'controller');
  const shape = podShapeOf(readConfig(values, {}, readFile));
  const ofCluster = objects.filter(({ kind }) => kind.startsWith('ValidatingAdmission'));
  const inside = objects.filter(({ metadata }) => metadata.namespace === shape.namespace);
  await apply(cluster, ...inside, ...ofCluster);
  const path = `/api/v1/namespaces/${shape.namespace}/pods?dryRun=All`;
  const judge: ClosedNamespace['judge'] = (change = () => undefined) => {
    const pod = makeWorkerPod('probe', shape);
    change(pod.spec, pod.spec.containers[0], pod.metadata);
    return refusal(cluster.admin.ask('POST', path, pod));
  };
  await until(async () => (await judge((pod) => (pod.hostname = 'x'))) !== letIn, 20, 'it is closed');
  return { shape, judge };
}
