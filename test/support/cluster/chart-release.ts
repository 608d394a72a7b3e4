import { join } from 'node:path';
import { chart, runTool } from '../chart.ts';
import { tool } from '../tools.ts';
import type { Cluster } from './cluster.ts';
import { kubectl } from './kubectl.ts';

/** A release in a namespace of its own name, whose pods no node runs. */
export interface ChartRelease {
  helm(...words: string[]): Promise<unknown>;
  scale(component: string, replicas: number): Promise<unknown>;
  numberOf(component: string): Promise<number>;
}

/** Gives a release of the chart with the fewest values; Helm keeps what it has in the folder. */
export function openChartRelease(cluster: Cluster, folder: string, name: string): ChartRelease {
  const homes = { HOME: folder, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
  const env = { PATH: process.env.PATH, KUBECONFIG: cluster.kubeconfig, ...homes };
  const values = ['--values', join(chart, 'ci/least-values.yaml')];
  const deployment = (component: string) => ['deployment', `${name}-${component}`, '-n', name];
  return {
    helm: (verb, ...words) => {
      const given = verb === 'rollback' ? [verb, name, ...words] : [verb, name, chart, ...values, ...words];
      return runTool(tool('helm'), [...given, '--namespace', name], { env });
    },
    scale: (component, replicas) => kubectl(cluster, ['scale', ...deployment(component), `--replicas=${replicas}`]),
    numberOf: async (component) =>
      Number(await kubectl(cluster, ['get', ...deployment(component), '-o', 'jsonpath={.spec.replicas}'])),
  };
}
