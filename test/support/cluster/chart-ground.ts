import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Authority, makeAuthority } from '../certificate.ts';
import { runTool } from '../chart.ts';
import type { Json } from '../json.ts';
import { aFolder } from '../redis.ts';
import { credentials, startS3, type TestS3 } from '../s3.ts';
import { type Source, startSource } from '../source-server.ts';
import { tool } from '../tools.ts';
import { until } from '../until.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { controllers } from './control-plane-process.ts';
import { findWorkerArchive, writeShellImage } from './image.ts';
import { apply, kubectl } from './kubectl.ts';
import { type Network, openNetwork } from './network.ts';
import { type Node, startNode } from './node.ts';
import { type ClusterServices, startServices } from './services.ts';

export const namespace = 'media';
export const workersNamespace = `${namespace}-workers`;
const serverOfTls = ['gateway', 'inspector', 'egress'] as const;
/** Letters of the name of a release that the names of its objects begin with. */
const maxNameLetters = 40;

/** Redis as pods reach it. */
export interface ReachableRedis {
  readonly url: string;
  /** Addresses and ports of all its servers. */
  readonly peers: readonly { readonly cidr: string; readonly port: number }[];
  readonly stop: () => Promise<void>;
}

/** A cluster with one real node, a Redis, an S3 server and a source beside it, in which the chart is installed. */
export interface ChartGround {
  readonly network: Network;
  readonly cluster: Cluster;
  readonly node: Node;
  readonly s3: TestS3;
  readonly source: Source;
  readonly redis: ReachableRedis;
  /** Runs helm in the namespace of the release. */
  readonly helm: (...words: readonly string[]) => Promise<{ readonly code: number; readonly said: string }>;
  /** Runs helm, and throws what the cluster says when it fails. */
  readonly succeed: (...words: readonly string[]) => Promise<string>;
  /** Words of helm that name the values, and wait. */
  readonly values: readonly string[];
  /** Opens an account and returns its key. */
  readonly openAccount: (release: string, slug: string, credits: number) => Promise<string>;
  /** Asks an API pod that runs. */
  readonly ask: (key: string, path: string) => Promise<Json>;
  readonly submit: (key: string, path: string) => Promise<string>;
  readonly completes: (key: string, jobId: string) => Promise<unknown>;
  /** A running pod of this component, a ready one if there is any. */
  readonly podOf: (component: string, namespace?: string) => Promise<Json>;
  readonly close: () => Promise<void>;
}

export interface GroundOptions {
  /** Releases that will be installed, one after the other: the certificates of servers name them. */
  readonly releases?: readonly string[];
  /** More images for the node. */
  readonly archives?: readonly string[];
}

/** Starts all of it. */
export async function startChartGround(
  openRedis: (address: string) => Promise<ReachableRedis>,
  { releases = ['trawl'], archives = [] }: GroundOptions = {},
): Promise<ChartGround> {
  const { folder, remove } = aFolder();
  const ends: (() => unknown)[] = [remove];
  const close = async () => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  try {
    const network = openNetwork();
    ends.push(network.close);
    const { address } = network;
    const flags = {
      'kube-apiserver': ['--endpoint-reconciler-type=lease'],
      'kube-controller-manager': [`--controllers=${[...controllers, 'persistentvolume-binder-controller'].join(',')}`],
    };
    const cluster = await startCluster({ address, flags });
    ends.push(cluster.stop);
    const node = await startNode(cluster, network, 1, [...writeArchives(folder), ...archives], { hasDns: true });
    ends.push(node.remove);
    const services: ClusterServices = await startServices(cluster, network, 1);
    ends.push(services.close);
    const redis = await openRedis(address);
    ends.push(redis.stop);
    const s3 = await startS3(address);
    ends.push(s3.stop);
    const source = await startSource(address);
    ends.push(source.stop);
    const authority = makeAuthority('pods');
    await makeSecrets(cluster, redis.url, authority, releases);
    const values = valuesOf({ address, clusterUrl: cluster.url, redis, s3, source, ca: authority.cert });
    writeFileSync(join(folder, 'values.json'), JSON.stringify(values));
    // Pods that start beside much other work begin again until their Redis answers in time.
    const words = ['--values', join(folder, 'values.json'), '--wait', '--timeout', '600s'];
    return { network, cluster, node, s3, source, redis, values: words, close, ...openRelease(cluster, source, folder) };
  } catch (error) {
    await close();
    throw error;
  }
}

function writeArchives(folder: string): string[] {
  const worker = findWorkerArchive();
  const shell = join(folder, 'shell.tar');
  writeShellImage(shell);
  return [shell, worker, join(dirname(worker), 'server.tar')];
}

async function makeSecrets(
  cluster: Cluster,
  url: string,
  authority: Authority,
  releases: readonly string[],
): Promise<void> {
  await kubectl(cluster, ['create', 'namespace', namespace]);
  await kubectl(cluster, ['label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=restricted']);
  const secret = (name: string, stringData: object) => {
    return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, stringData };
  };
  const certificates = serverOfTls.map((server) => {
    const hosts = releases.map((release) => `${release.slice(0, maxNameLetters)}-${server}.${namespace}.svc`);
    const { cert, key } = authority.issue({ name: server, hosts });
    return secret(`${server}-tls`, { 'tls.crt': cert, 'tls.key': key });
  });
  await apply(
    cluster,
    secret('trawl', { secret: randomBytes(32).toString('base64') }),
    secret('redis', { url }),
    secret('store', credentials),
    ...certificates,
  );
}

/** Parts around a release that its values name. */
interface Surroundings {
  readonly address: string;
  readonly clusterUrl: string;
  readonly redis: Pick<ReachableRedis, 'peers'>;
  readonly s3: { readonly settings: Pick<TestS3['settings'], 's3Endpoint' | 's3Bucket'> };
  readonly source: Pick<Source, 'url' | 'host'>;
  readonly ca: string;
}

/** Returns values of a release in this ground. */
export function valuesOf({ address, clusterUrl, redis, s3, source, ca }: Surroundings): object {
  // The node also has room for the pods that an upgrade replaces, of which egress stays while it carries downloads.
  const resources = { requests: { cpu: '50m' } };
  const one = { replicas: 1, podDisruptionBudget: { enabled: false }, resources };
  const { s3Endpoint, s3Bucket } = s3.settings;
  const cidr = `${address}/32`;
  const ofStore = [{ cidr, port: Number(new URL(s3Endpoint).port) }];
  return {
    publicUrl: 'http://trawl.test',
    secret: { existingSecret: 'trawl' },
    redis: { existingSecret: 'redis' },
    s3: { bucket: s3Bucket, endpoint: s3Endpoint, pathStyle: true, existingSecret: 'store' },
    ...{ api: one, controller: one, inspector: one, egress: one, dashboard: one },
    workers: { most: 24, cpu: '1m', memory: '512Mi', hostUsers: true },
    // Many workers that start at once on few processors take long to read a page.
    settings: {
      TRAWL_EGRESS_ALLOW: `${cidr}:*`,
      TRAWL_MAX_FILE_BYTES: '40000000',
      TRAWL_INSPECT_SECONDS: '300',
    },
    tls: { enabled: true, secrets: Object.fromEntries(serverOfTls.map((server) => [server, `${server}-tls`])), ca },
    networkPolicy: {
      ...{ redis: redis.peers, s3: ofStore, workersS3: ofStore },
      dns: { to: [{ ipBlock: { cidr } }] },
      kubernetes: { cidrs: [cidr], ports: [Number(new URL(clusterUrl).port)] },
      egressTo: [{ cidr, port: Number(source.host.split(':').at(-1)) }],
    },
    test: { film: `${source.url}/films/clip.mp4` },
  };
}

function openRelease(cluster: Cluster, source: Source, folder: string) {
  const homes = { HOME: folder, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
  const helm: ChartGround['helm'] = async (...words) => {
    const options = { env: { PATH: process.env.PATH, KUBECONFIG: cluster.kubeconfig, ...homes }, maxBuffer: 2 ** 26 };
    return runTool(tool('helm'), [...words, '--namespace', namespace], options).then(
      ({ stdout, stderr }) => ({ code: 0, said: stdout + stderr }),
      ({ code, stdout, stderr }) => ({ code, said: `${stdout}${stderr}` }),
    );
  };
  const succeed: ChartGround['succeed'] = async (...words) => {
    const { code, said } = await helm(...words);
    if (code === 0) return said;
    const pods = await kubectl(cluster, ['get', 'pods,events', '--all-namespaces']);
    const ours = ['logs', '-n', namespace, '-l', 'app.kubernetes.io/name=trawl', '--tail=8', '--prefix'];
    throw new Error(`helm ${words.join(' ')}: ${said}\n${pods}\n${await kubectl(cluster, ours).catch(String)}`);
  };
  const podOf: ChartGround['podOf'] = async (component, from = namespace) => {
    // The pod of an operator has the labels of the controller.
    const of = `app.kubernetes.io/component=${component}${from === namespace ? ',pod-template-hash' : ''}`;
    const words = ['-l', of, '--field-selector=status.phase=Running'];
    const { items } = JSON.parse(await kubectl(cluster, ['get', 'pods', '-n', from, ...words, '-o', 'json']));
    const alive: Json[] = items.filter(({ metadata }: Json) => !metadata.deletionTimestamp);
    return alive.find(({ status }) => status.containerStatuses?.every(({ ready }: Json) => ready)) ?? alive[0];
  };
  const ask: ChartGround['ask'] = async (key, path) => {
    const pod = await podOf('api');
    const answer = await fetch(`http://${pod.status.podIP}:8080${path}`, { headers: { 'x-api-key': key } });
    return answer.json();
  };
  const openAccount: ChartGround['openAccount'] = async (release, slug, credits) => {
    const line = ['admin', 'account', 'open', slug, '--credits', String(credits), '--json'];
    const words = ['exec', '-n', namespace, controllerOf(release), '--', 'node', '/opt/trawl/src/main.ts'];
    return JSON.parse(await kubectl(cluster, [...words, ...line])).key;
  };
  // A key may begin ten calls in a second; the API rests while it is replaced.
  const submit: ChartGround['submit'] = (key, path) =>
    until(
      async () => {
        const query = encodeURIComponent(source.url + path);
        return (await ask(key, `/v1/video/download?query=${query}`).catch(() => ({}))).job_id;
      },
      20,
      'the job is taken',
    );
  const completes: ChartGround['completes'] = (key, jobId) =>
    until(
      async () => {
        const job = await ask(key, `/v1/jobs/${jobId}`);
        if (job.success === false) throw new Error(JSON.stringify(job));
        return job.success;
      },
      120,
      'the job completes',
    );
  return { helm, succeed, podOf, ask, openAccount, submit, completes };
}

/** Returns the Deployment of the controller, as kubectl takes it. */
export function controllerOf(release: string): string {
  return `deployment/${release.slice(0, maxNameLetters)}-controller`;
}
