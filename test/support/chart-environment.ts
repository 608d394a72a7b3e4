import { Buffer } from 'node:buffer';
import { find } from './chart.ts';
import type { Json } from './json.ts';

/** The settings of a container of the chart, with files for those that come from Secrets. */
export interface ChartEnvironment {
  readonly values: Readonly<Record<string, string>>;
  readonly readFile: (path: string) => string;
}

/** Contents of the Secrets that an operator makes. */
const contents: Readonly<Record<string, string>> = {
  '/etc/trawl/secret/secret': Buffer.alloc(32).toString('base64'),
  '/etc/trawl/secret/old': Buffer.alloc(32, 1).toString('base64'),
  '/etc/trawl/redis/url': 'rediss://:word@redis.example.com:6379',
};

/** Returns the environment of a Deployment's pod as its program sees it; refuses a file that no volume brings. */
export function environmentOf(objects: readonly Json[], component: string): ChartEnvironment {
  const deployment = objects.find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.labels['app.kubernetes.io/component'] === component,
  );
  const { spec } = find(objects, 'Deployment', deployment?.metadata.name).spec.template;
  const [{ env, volumeMounts = [] }] = spec.containers;
  const names = env.map(({ name }: Json) => name);
  if (new Set(names).size < names.length) throw new Error(`a variable stands twice in ${names}`);
  const known = env.filter(({ value }: Json) => typeof value === 'string');
  return {
    values: Object.fromEntries(known.map(({ name, value }: Json) => [name, value])),
    readFile: (path) => {
      const mount = volumeMounts.find(({ mountPath }: Json) => path.startsWith(`${mountPath}/`));
      const volume = spec.volumes.find(({ name }: Json) => name === mount?.name);
      const items = volume?.secret?.items ?? [];
      const content = contents[path];
      const isThere = items.some((item: Json) => `${mount.mountPath}/${item.path}` === path);
      if (!isThere || content === undefined) throw new Error(`nothing brings ${path}`);
      return content;
    },
  };
}
