import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { chart, runTool } from '../support/chart.ts';
import { type Cluster, startCluster } from '../support/cluster/cluster.ts';
import { findWorkerArchive, writeShellImage } from '../support/cluster/image.ts';
import { apply, kubectl } from '../support/cluster/kubectl.ts';
import { type Network, openNetwork } from '../support/cluster/network.ts';
import { type Node, startNode } from '../support/cluster/node.ts';
import { type ClusterServices, startServices } from '../support/cluster/services.ts';
import { startTcpProxy, type TcpProxy } from '../support/cluster/tcp-proxy.ts';
import type { Json } from '../support/json.ts';
import { aFolder, startTestServer, type TestRecord } from '../support/redis.ts';
import { credentials, startS3, type TestS3 } from '../support/s3.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { tool } from '../support/tools.ts';
import { until } from '../support/until.ts';

const namespace = 'media';
const workers = `${namespace}-workers`;

describe('the chart on a real node', function () {
  this.timeout(600_000);
  const { folder, remove } = aFolder();
  let network: Network;
  let cluster: Cluster;
  let node: Node;
  let services: ClusterServices;
  let redis: TestRecord;
  let redisProxy: TcpProxy;
  let s3: TestS3;
  let source: Source;

  before(async () => {
    const worker = findWorkerArchive();
    const shell = join(folder, 'shell.tar');
    writeShellImage(shell);
    network = openNetwork();
    const { address } = network;
    const flags = { 'kube-apiserver': ['--endpoint-reconciler-type=lease'] };
    cluster = await startCluster({ address, flags });
    node = await startNode(cluster, network, 1, [shell, worker, join(dirname(worker), 'server.tar')], { hasDns: true });
    services = await startServices(cluster, network, 1);
    redis = await startTestServer();
    redisProxy = await startTcpProxy(redis.url, address);
    s3 = await startS3(address);
    source = await startSource(address);
    await kubectl(cluster, ['create', 'namespace', namespace]);
    await kubectl(cluster, ['label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=restricted']);
    const secret = (name: string, stringData: object) => {
      return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, stringData };
    };
    const url = `redis://${address}:${new URL(redisProxy.url).port}`;
    await apply(
      cluster,
      secret('trawl', { secret: randomBytes(32).toString('base64') }),
      secret('redis', { url }),
      secret('store', credentials),
    );
    writeFileSync(join(folder, 'values.json'), JSON.stringify(valuesOf(new URL(url).port)));
  });
  after(async () => {
    await services?.close();
    await node?.remove();
    await cluster?.stop();
    network?.close();
    for (const part of [source, s3, redisProxy, redis]) await part?.stop();
    remove();
  });

  const valuesOf = (redisPort: string) => {
    const one = { replicas: 1, podDisruptionBudget: { enabled: false } };
    const { s3Endpoint, s3Bucket } = s3.settings;
    const cidr = `${network.address}/32`;
    const ofStore = [{ cidr, port: Number(new URL(s3Endpoint).port) }];
    return {
      publicUrl: 'http://trawl.test',
      secret: { existingSecret: 'trawl' },
      redis: { existingSecret: 'redis' },
      s3: { bucket: s3Bucket, endpoint: s3Endpoint, pathStyle: true, existingSecret: 'store' },
      ...{ api: one, controller: one, inspector: one, egress: one },
      workers: { most: 4, cpu: '10m', memory: '512Mi', hostUsers: true },
      settings: { TRAWL_EGRESS_ALLOW: `${cidr}:*`, TRAWL_MAX_FILE_BYTES: '1000000' },
      networkPolicy: { redis: [{ cidr, port: Number(redisPort) }], s3: ofStore, workersS3: ofStore },
      test: { film: `${source.url}/films/clip.mp4` },
    };
  };

  const helm = async (...words: readonly string[]) => {
    const env = { PATH: process.env.PATH, KUBECONFIG: cluster.kubeconfig, ...homes(folder) };
    const options = { env, maxBuffer: 2 ** 26 };
    return runTool(tool('helm'), [...words, '--namespace', namespace], options).then(
      ({ stdout, stderr }) => ({ code: 0, said: stdout + stderr }),
      ({ code, stdout, stderr }) => ({ code, said: `${stdout}${stderr}` }),
    );
  };
  const succeed = async (...words: readonly string[]) => {
    const { code, said } = await helm(...words);
    if (code !== 0) {
      const pods = await kubectl(cluster, ['get', 'pods,events', '--all-namespaces']);
      const logs = await kubectl(cluster, [
        'logs',
        '-n',
        namespace,
        '-l',
        'app.kubernetes.io/name=trawl',
        '--tail=8',
        '--prefix',
      ]).catch(String);
      throw new Error(`helm ${words.join(' ')}: ${said}\n${pods}\n${logs}`);
    }
    return said;
  };
  const values = () => ['--values', join(folder, 'values.json'), '--wait', '--timeout', '240s'];
  const openAccount = async (slug: string): Promise<string> => {
    const line = ['node', '/opt/trawl/src/main.ts', 'admin', 'account', 'open', slug, '--credits', '5', '--json'];
    return JSON.parse(await kubectl(cluster, ['exec', '-n', namespace, 'deployment/trawl-controller', '--', ...line]))
      .key;
  };
  const ask = async (key: string, path: string): Promise<Json> => {
    const selector = 'app.kubernetes.io/component=api';
    const words = [
      'get',
      'pods',
      '-n',
      namespace,
      '-l',
      selector,
      '--field-selector=status.phase=Running',
      '-o',
      'json',
    ];
    const { items } = JSON.parse(await kubectl(cluster, words));
    const pod = items.find(({ metadata }: Json) => !metadata.deletionTimestamp);
    const answer = await fetch(`http://${pod.status.podIP}:8080${path}`, { headers: { 'x-api-key': key } });
    return answer.json();
  };
  const completes = (key: string, id: string) =>
    until(
      async () => {
        const job = await ask(key, `/v1/jobs/${id}`);
        if (job.success === false) throw new Error(JSON.stringify(job));
        return job.success;
      },
      120,
      'the job completes',
    );

  it('is installed with one command, and every pod is ready', async () => {
    const said = await succeed('install', 'trawl', chart, ...values());
    expect(said).to.include('Three commands lead to the first file');
    const pods = JSON.parse(await kubectl(cluster, ['get', 'pods', '-n', namespace, '-o', 'json'])).items;
    expect(pods).to.have.length(4);
  });

  it('passes its own test: a job from the account to its file, charged once', async () => {
    const said = await succeed('test', 'trawl', '--logs', '--filter', 'name=trawl-test', '--timeout', '240s');
    expect(said).to.include('A worker downloaded the film').and.include('The job was charged once');
  });

  it('says that this cluster does not enforce network policies', async () => {
    const { code, said } = await helm(
      'test',
      'trawl',
      '--logs',
      '--filter',
      'name=trawl-stranger',
      '--timeout',
      '240s',
    );
    expect(code).to.equal(1);
    expect(said).to.include('The cluster does not enforce network policies');
  });

  it('is upgraded and rolled back while a job runs, and refuses to be removed meanwhile', async () => {
    const key = await openAccount('films');
    const letGo = source.hold();
    source.forget();
    const { job_id: id } = await ask(
      key,
      `/v1/video/download?query=${encodeURIComponent(`${source.url}/held/clip.mp4`)}`,
    );
    await until(() => source.asked.length > 0, 60, 'a worker asks for the film');
    const { code, said } = await helm('uninstall', 'trawl', '--timeout', '120s');
    expect(code).to.equal(1);
    expect(said).to.include('1 job is open');
    // Helm upgrades no release that it has begun to uninstall.
    await succeed('rollback', 'trawl', '1', '--wait', '--timeout', '240s');
    await succeed('upgrade', 'trawl', chart, ...values(), '--set', 'settings.TRAWL_LOG_LEVEL=debug');
    await succeed('rollback', 'trawl', '1', '--wait', '--timeout', '240s');
    letGo();
    await completes(key, id);
    const { job_id: next } = await ask(
      key,
      `/v1/video/download?query=${encodeURIComponent(`${source.url}/films/clip.mp4`)}`,
    );
    await completes(key, next);
    expect(await ask(key, '/v1/usage')).to.include({ remaining: 3, held: 0 });
  });

  it('is removed with one command, and leaves only the Secrets of the operator', async () => {
    await succeed('uninstall', 'trawl', '--wait', '--timeout', '240s');
    const gone = async () => !(await kubectl(cluster, ['get', 'namespaces', '-o', 'name'])).includes(workers);
    await until(gone, 60, 'the namespace of the workers is gone');
    const kinds = 'all,networkpolicies,serviceaccounts,pvc,configmaps,roles,secrets,validatingadmissionpolicies';
    const left = async () =>
      (await kubectl(cluster, ['get', kinds, '-n', namespace, '-o', 'name'])).trim().split('\n').sort();
    const own = [
      'configmap/kube-root-ca.crt',
      'secret/redis',
      'secret/store',
      'secret/trawl',
      'serviceaccount/default',
    ];
    const others = async () =>
      (await left()).filter((name) => !/^pod\/trawl-(test|stranger)$|configmap\/trawl-test/.test(name));
    await until(async () => (await others()).length === own.length, 60, 'the pods are gone');
    expect(await others()).to.deep.equal(own);
  });
});

function homes(folder: string) {
  return { HOME: folder, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
}
