import { readFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { rereadAfter } from '../../base/reread.ts';

export interface ClusterAccess {
  readonly server: string;
  /** Returns what the next connection is opened with: a cluster replaces its authority while we run. */
  tls(): Promise<ClusterTls>;
  /** Returns the headers of the next request: the token may change at any time. */
  headers(): Promise<Readonly<Record<string, string>>>;
}

interface ClusterTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** Credentials are read again after it. */
const credentialsMs = 60_000;
const account = '/var/run/secrets/kubernetes.io/serviceaccount';

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the access to the cluster of KUBECONFIG, else to the one that this pod runs in. */
export async function findClusterAccess(env: Environment): Promise<ClusterAccess> {
  if (env.KUBECONFIG) return readKubeconfig(env.KUBECONFIG);
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) throw new Error('There is no cluster: KUBECONFIG is not set, and this is no pod of one.');
  const tls = rereadAfter(0, async () => ({ ca: readFileSync(`${account}/ca.crt`, 'utf8') }));
  await tls();
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    tls,
    headers: rereadAfter(credentialsMs, async () => ({
      authorization: `Bearer ${readFileSync(`${account}/token`, 'utf8').trim()}`,
    })),
  };
}

async function readKubeconfig(path: string): Promise<ClusterAccess> {
  // Loaded only outside of a cluster: the package is large and slow to load.
  const { KubeConfig } = await import('@kubernetes/client-node/dist/config.js');
  const read = rereadAfter(credentialsMs, async () => {
    const config = new KubeConfig();
    config.loadFromFile(path);
    const cluster = config.getCurrentCluster();
    if (!cluster) throw new Error('KUBECONFIG names no cluster.');
    const options: Parameters<typeof config.applyToHTTPSOptions>[0] = {};
    await config.applyToHTTPSOptions(options);
    return { server: cluster.server, options };
  });
  const { server } = await read();
  return {
    server: server.replace(/\/+$/, ''),
    tls: async () => {
      const { ca, cert, key, servername, rejectUnauthorized } = (await read()).options;
      const known = Object.entries({ ca, cert, key, servername }).filter(([, value]) => value !== undefined);
      const texts: Omit<ClusterTls, 'rejectUnauthorized'> = Object.fromEntries(
        known.map(([name, value]) => [name, String(value)]),
      );
      return { ...texts, ...(rejectUnauthorized === false && { rejectUnauthorized }) };
    },
    headers: async (): Promise<Readonly<Record<string, string>>> => {
      const { Authorization: authorization } = ((await read()).options.headers ?? {}) as { Authorization?: string };
      return authorization === undefined ? {} : { authorization };
    },
  };
}
