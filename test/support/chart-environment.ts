import { Buffer } from 'node:buffer';
import { podsOf } from './chart.ts';
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

/** Variables that come from Secrets without being files. */
const secrets: Readonly<Record<string, string>> = {
  TRAWL_STRIPE_KEY: 'sk_live_word',
  TRAWL_STRIPE_WEBHOOK_SECRET: 'whsec_word',
  TRAWL_SMTP_URL: 'smtps://mail.example.com',
  TRAWL_OIDC_CLIENT_SECRET: 'word',
};

/** Returns the environment of a component's pod as its program sees it; refuses a file that no volume brings. */
export function environmentOf(objects: readonly Json[], component: string): ChartEnvironment {
  const pods = podsOf(objects).filter(({ labels }) => labels['app.kubernetes.io/component'] === component);
  if (pods.length !== 1) throw new Error(`there are ${pods.length} pods of ${component}`);
  const spec = pods[0]!.pod;
  const [{ env, volumeMounts = [] }] = spec.containers;
  const names = env.map(({ name }: Json) => name);
  if (new Set(names).size < names.length) throw new Error(`a variable stands twice in ${names}`);
  const known = env.map(({ name, value }: Json) => [name, value ?? secrets[name]]);
  return {
    values: Object.fromEntries(known.filter(([, value]: unknown[]) => typeof value === 'string')),
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
