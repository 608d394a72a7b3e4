import { loadYaml } from '@kubernetes/client-node/dist/yaml.js';
import { read } from './tree.ts';

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: {
    readonly summary: string;
    readonly description?: string;
    /** Name in Grafana of the dashboard that shows it best. */
    readonly dashboard: string;
    readonly runbook_url: string;
  };
}

export const rulesFile = 'charts/trawl/rules/trawl.yaml';

/** Every alert of the chart. */
export const alerts: readonly Alert[] = (
  loadYaml(read(rulesFile)) as { groups: readonly { rules: readonly Alert[] }[] }
).groups.flatMap(({ rules }) => rules);
