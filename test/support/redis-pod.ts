import { find, podsOf, render } from './chart.ts';
import type { Json } from './json.ts';
import { read } from './tree.ts';

/** What a program has that `kubectl exec` starts in the pod of the chart's Redis. */
export interface RedisPod {
  /** Programs of its image, which has no shell. */
  readonly programs: readonly string[];
  /** Variables of its container. */
  readonly env: Readonly<Record<string, string>>;
  /** The file of settings with its password. */
  readonly configuration: string;
}

export function renderRedisPod(): RedisPod {
  const objects = render({ scenario: 'values-try.yaml' });
  const { data } = find(objects, 'Secret', 'trawl-generated');
  const textOf = (key: string) => Buffer.from(data[key], 'base64').toString();
  const { pod } = podsOf([find(objects, 'StatefulSet', 'trawl-redis')])[0]!;
  const variables: Json[] = pod.containers[0].env ?? [];
  const [, gathered = ''] = /gather\.ts \/redis ([^&]+)&&/.exec(read('docker/Dockerfile')) ?? [];
  return {
    programs: [...gathered.matchAll(/\/usr\/bin\/(\S+)/g)].map(([, name]) => name!),
    env: Object.fromEntries(variables.map(({ name, valueFrom }) => [name, textOf(valueFrom.secretKeyRef.key)])),
    configuration: textOf('redis-configuration'),
  };
}
