import { type ChartGround, namespace, workersNamespace } from '../support/cluster/chart-ground.ts';
import { kubectl } from '../support/cluster/kubectl.ts';

/** Ways that each pod has with the chart's policies; a pod's way to itself is not tried. */
export const allowedWays = {
  api: ['inspector', 'redis', 's3'],
  controller: ['egress', 'inspector', 'kubernetes', 'redis', 's3'],
  inspector: ['egress'],
  egress: ['source'],
  dashboard: ['inspector', 'redis', 's3'],
  worker: ['egress', 'gateway', 's3'],
};

type Component = keyof typeof allowedWays;
/** `host:port` of each target. */
export type Targets = Readonly<Record<string, string>>;

/** Service that leads to the pod itself. */
const own: Readonly<Record<Component, string>> = {
  api: 'api',
  controller: 'gateway',
  inspector: 'inspector',
  egress: 'egress',
  dashboard: 'dashboard',
  worker: '',
};

/** Prints the names of the targets that can be connected to. */
const script = `
const net = require('node:net');
const targets = JSON.parse(process.argv[1]);
const tried = Object.entries(targets).map(([name, target]) => new Promise((resolve) => {
  const [host, port] = target.split(':');
  const wire = net.connect({ host, port: Number(port) });
  const settle = (found) => { clearTimeout(timer); wire.destroy(); resolve(found); };
  const timer = setTimeout(settle, 3000, []);
  wire.on('connect', () => settle([name]));
  wire.on('error', () => settle([]));
}));
Promise.all(tried).then((found) => console.log(JSON.stringify(found.flat().sort())));
`;

export function listTargets({ network, cluster, node, redis, s3, source }: ChartGround): Targets {
  const service = (name: string, port: number) => `trawl-${name}.${namespace}.svc:${port}`;
  const [peer] = redis.peers;
  return {
    api: service('api', 80),
    dashboard: service('dashboard', 8081),
    egress: service('egress', 4750),
    gateway: service('gateway', 8082),
    inspector: service('inspector', 8083),
    kubernetes: `${network.address}:${new URL(cluster.url).port}`,
    kubelet: `${node.address}:10250`,
    redis: `${network.address}:${peer?.port}`,
    s3: new URL(s3.settings.s3Endpoint ?? '').host,
    source: source.host,
  };
}

/** Returns what each pod reaches. */
export async function findWays(ground: ChartGround, targets: Targets): Promise<Record<Component, string[]>> {
  const found = Object.keys(allowedWays).map(async (component) => {
    const { [own[component as Component]]: _, ...others } = targets;
    const from = component === 'worker' ? workersNamespace : namespace;
    const pod = await ground.podOf(component, from);
    const words = ['exec', '-n', from, pod.metadata.name, '--', 'node', '-e', script, JSON.stringify(others)];
    return [component, JSON.parse(await kubectl(ground.cluster, words))] as const;
  });
  return Object.fromEntries(await Promise.all(found)) as Record<Component, string[]>;
}
