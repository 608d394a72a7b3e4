import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Authority, makeAuthority, type Owner } from '../certificate.ts';
import { freePort } from '../free-port.ts';
import { until } from '../until.ts';
import {
  type ControlPlaneProcess,
  type ControlPlaneProgram,
  controllers,
  startControlPlaneProcess,
} from './control-plane-process.ts';
import { type Kube, openKube } from './kube.ts';

/**
 * A control plane of its own for a test: etcd, API server, controllers and scheduler, without a node.
 *
 *     const cluster = await startCluster();
 *     const kubelet = await startFakeKubelet(cluster);      // fake-kubelet.ts
 *     await makeNamespace(cluster, 'jobs');
 *     await cluster.admin.ask('POST', '/apis/batch/v1/namespaces/jobs/jobs', job);
 *     await cluster.parts['kube-apiserver'].kill();          // and start(), freeze(), thaw()
 *     await kubelet.stop();
 *     await cluster.stop();
 */
export interface Cluster {
  readonly url: string;
  readonly folder: string;
  readonly authority: Authority;
  /** A client that may do everything. */
  readonly admin: Kube;
  /** The file that kubectl and programs under test need to be that client. */
  readonly kubeconfig: string;
  readonly parts: Readonly<Record<ControlPlaneProgram, ControlPlaneProcess>>;
  /** Writes such a file for somebody else; what they may do is what the test's roles say. */
  kubeconfigOf(owner: Owner): string;
  /** Another client, as somebody. */
  openAs(owner: Owner): Kube;
  /** Kills every part and removes the folder. */
  stop(): Promise<void>;
}

export interface ClusterOptions {
  /** The address of this machine that the API server listens on. */
  readonly address?: string;
  /** More flags for some parts; the last of two wins. */
  readonly flags?: Flags;
  /** Name of another API server that `make tools` builds. */
  readonly apiServer?: string;
}

type Flags = Readonly<Partial<Record<ControlPlaneProgram, readonly string[]>>>;

/** Flags that let a lost node be noticed within seconds, where Kubernetes takes a minute. */
export const quickLoss: Flags = {
  'kube-controller-manager': [
    '--node-monitor-period=1s',
    '--node-monitor-grace-period=8s',
    '--node-eviction-rate=10',
    '--secondary-node-eviction-rate=10',
  ],
};

/** Flags that take off the limits which the controllers and the scheduler set themselves. */
export const raisedLimits: Flags = {
  'kube-controller-manager': [
    '--kube-api-qps=500',
    '--kube-api-burst=500',
    '--concurrent-job-syncs=50',
    '--concurrent-gc-syncs=50',
  ],
  'kube-scheduler': ['--kube-api-qps=500', '--kube-api-burst=500'],
};

const administrator: Owner = { name: 'admin', group: 'system:masters' };

/** Starts a control plane and waits until pods can be created. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { address = '127.0.0.1', flags = {}, apiServer = 'kube-apiserver' } = options;
  const folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  const url = `https://${address}:${await freePort(address)}`;
  const authority = makeAuthority('test');
  const inFolder = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const kubeconfigOf = (owner: Owner) =>
    inFolder(`${owner.name.replaceAll(':', '-')}.kubeconfig`, writeKubeconfig(url, authority, owner));
  const openAs = (owner: Owner) => openKube(url, authority.cert, authority.issue(owner));
  writeKeys(authority, address, inFolder);
  const kubeconfig = kubeconfigOf(administrator);
  kubeconfigOf({ name: 'system:kube-controller-manager' });
  kubeconfigOf({ name: 'system:kube-scheduler' });
  const words = listWords(folder, url, `http://127.0.0.1:${await freePort()}`);
  const parts: Partial<Record<ControlPlaneProgram, ControlPlaneProcess>> = {};
  const admin = openAs(administrator);
  const stop = async () => {
    admin.close();
    await Promise.all(Object.values(parts).map((part) => part.kill()));
    rmSync(folder, { recursive: true, force: true });
  };
  const startBoth = async (names: readonly ControlPlaneProgram[], answers: () => Promise<unknown>) => {
    for (const name of names) {
      const built = name === 'kube-apiserver' ? apiServer : name;
      parts[name] = startControlPlaneProcess(folder, name, [...words[name], ...(flags[name] ?? [])], built);
    }
    await until(
      () => names.some((name) => !parts[name]?.isRunning()) || answers(),
      60,
      `${names.join(' and ')} answer`,
    );
    const ended = names.find((name) => !parts[name]?.isRunning());
    if (ended) throw new Error(`${ended}: ${readFileSync(join(folder, `${ended}.log`), 'utf8').slice(-2000)}`);
  };
  try {
    await startBoth(['etcd', 'kube-apiserver'], () => answers(admin, '/readyz'));
    // These end when the API server does not answer soon.
    await startBoth(['kube-controller-manager', 'kube-scheduler'], () => hasServiceAccount(admin, 'default'));
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, folder, authority, admin, kubeconfig, parts: parts as Cluster['parts'], kubeconfigOf, openAs, stop };
}

/** Makes a namespace and waits until pods can be created in it. */
export async function makeNamespace({ admin }: Cluster, name: string, labels = {}): Promise<void> {
  await admin.ask('POST', '/api/v1/namespaces', { metadata: { name, labels } });
  await until(() => hasServiceAccount(admin, name), 20, `the ServiceAccount of ${name} is there`);
}

/**
 * Returns true when the API server answers after a restart. Its roles exist since the first start: that it looks through all of
 * them again took 165 s on a busy machine, while it answered everything else.
 */
export function isReady(admin: Kube): Promise<boolean> {
  return answers(admin, '/readyz?exclude=poststarthook/rbac/bootstrap-roles');
}

/** Pods of a namespace are refused before it has its ServiceAccount. */
function hasServiceAccount(admin: Kube, namespace: string): Promise<boolean> {
  return answers(admin, `/api/v1/namespaces/${namespace}/serviceaccounts/default`);
}

function answers(admin: Kube, path: string): Promise<boolean> {
  return admin.ask('GET', path).then(
    () => true,
    () => false,
  );
}

function writeKeys(authority: Authority, address: string, write: (name: string, text: string) => string): void {
  const hosts = ['127.0.0.1', address, '10.96.0.1', 'localhost', 'kubernetes.default.svc'];
  const server = authority.issue({ name: 'kube-apiserver', hosts: [...new Set(hosts)] });
  const client = authority.issue({ name: 'kube-apiserver', group: 'system:masters' });
  // Real clusters sign tokens with RSA.
  const signing = generateKeyPairSync('rsa', { modulusLength: 2048 });
  write('ca.crt', authority.cert);
  write('server.crt', server.cert);
  write('server.key', server.key);
  write('client.crt', client.cert);
  write('client.key', client.key);
  write('tokens.key', signing.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString());
  write('tokens.pub', signing.publicKey.export({ type: 'spki', format: 'pem' }).toString());
}

/** JSON is YAML. */
function writeKubeconfig(server: string, authority: Authority, owner: Owner): string {
  const { key, cert } = authority.issue(owner);
  const encode = (text: string) => Buffer.from(text).toString('base64');
  const user = { 'client-certificate-data': encode(cert), 'client-key-data': encode(key) };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': encode(authority.cert) } }],
    users: [{ name: 'test', user }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  });
}

/** The arguments of each process; the scheduler and the controllers serve nothing. */
function listWords(folder: string, url: string, etcd: string): Record<ControlPlaneProgram, readonly string[]> {
  const { hostname, port } = new URL(url);
  const file = (name: string) => join(folder, name);
  const client = (name: string) => [
    `--kubeconfig=${file(`system-${name}.kubeconfig`)}`,
    '--leader-elect=false',
    '--secure-port=0',
    '--profiling=false',
  ];
  return {
    etcd: [
      `--data-dir=${file('etcd')}`,
      `--listen-client-urls=${etcd}`,
      `--advertise-client-urls=${etcd}`,
      '--listen-peer-urls=http://localhost:0',
      '--unsafe-no-fsync',
      '--log-level=warn',
    ],
    'kube-apiserver': [
      `--etcd-servers=${etcd}`,
      `--bind-address=${hostname}`,
      `--advertise-address=${hostname}`,
      `--secure-port=${port}`,
      '--endpoint-reconciler-type=none',
      `--client-ca-file=${file('ca.crt')}`,
      `--tls-cert-file=${file('server.crt')}`,
      `--tls-private-key-file=${file('server.key')}`,
      '--authorization-mode=Node,RBAC',
      '--enable-admission-plugins=NodeRestriction',
      '--anonymous-auth=false',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-signing-key-file=${file('tokens.key')}`,
      `--service-account-key-file=${file('tokens.pub')}`,
      '--service-cluster-ip-range=10.96.0.0/16',
      '--allow-privileged=true',
      '--profiling=false',
      `--kubelet-certificate-authority=${file('ca.crt')}`,
      `--kubelet-client-certificate=${file('client.crt')}`,
      `--kubelet-client-key=${file('client.key')}`,
      '--kubelet-preferred-address-types=InternalIP',
    ],
    'kube-controller-manager': [
      ...client('kube-controller-manager'),
      '--use-service-account-credentials=true',
      `--service-account-private-key-file=${file('tokens.key')}`,
      `--root-ca-file=${file('ca.crt')}`,
      `--controllers=${controllers.join(',')}`,
    ],
    'kube-scheduler': client('kube-scheduler'),
  };
}
