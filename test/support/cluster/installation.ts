import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import { readConfig } from '../../../src/base/config.ts';
import { podShapeOf } from '../../../src/runners/kubernetes/pod-shape.ts';
import { freePort } from '../free-port.ts';
import type { Json } from '../json.ts';
import { trawl as runTrawl } from '../operator.ts';
import { type Receiver, startReceiver } from '../receiver.ts';
import { storeOf, type TestStore } from '../record.ts';
import { aFolder, startTestServer } from '../redis.ts';
import { type RoleProcess, startRole } from '../role-process.ts';
import { credentials, startS3, type TestS3 } from '../s3.ts';
import { type Source, startSource } from '../source-server.ts';
import type { Kubeconfig } from './kubectl.ts';
import { recordObjects } from './object-recorder.ts';
import { makeSubmission, type SubmittedJob } from './submitted-job.ts';
import { askWithKubectl, changeAdmissionPolicy, setUpNamespace, writeControllerConfig } from './worker-namespace.ts';

/** All of trawl on this machine but its workers, which are Jobs of a cluster. */
export interface Installation extends Kubeconfig {
  readonly namespace: string;
  readonly store: TestStore;
  readonly s3: TestS3;
  /** A source and a receiver of webhooks that nobody but egress reaches. */
  readonly source: Source;
  readonly receiver: Receiver;
  /** URLs of the gateway of workers and of egress. */
  readonly gateway: string;
  readonly egress: string;
  /** Secrets that no object of the cluster may hold; each submitted job adds some. */
  readonly secrets: Set<string>;
  /** Starts a controller with these settings, in place of the one that runs. */
  startController(env?: Readonly<Record<string, string>>): Promise<void>;
  /** Ends it; its Jobs go on. */
  stopController(): Promise<void>;
  /** Submits a film of the source, or of another site, for a new account, with a webhook. */
  submit(path: string, site?: string): Promise<SubmittedJob>;
  /** Asks the API with the key of a submitted job. */
  ask(order: Pick<SubmittedJob, 'key'>, path: string): Promise<Answer>;
  /** Every state of every Job, pod and event that its namespace had since it was made. */
  recordedObjects(): string;
  /** Runs an `admin` command beside it, and returns its output. */
  admin(...line: readonly string[]): Promise<string>;
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly json: Json;
}

export interface InstallationOptions extends Kubeconfig {
  /** The address of this machine that pods reach. */
  readonly address: string;
  readonly namespace: string;
  readonly image: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Makes the namespace and starts everything in it and beside it but the controller. */
export async function openInstallation(options: InstallationOptions): Promise<Installation> {
  const { address, namespace, kubeconfig } = options;
  const around = await startSurroundings(address);
  const { redis, s3, source, receiver, egress, folder } = around;
  const store = storeOf(redis.connection);
  const secret = randomBytes(32).toString('base64');
  const secrets = new Set([...Object.values(credentials), secret]);
  const shared = {
    ...{ ...s3.env, ...exceptions, TRAWL_REDIS_URL: redis.url, TRAWL_SECRET: secret },
    // No test asks for metadata.
    ...{ TRAWL_PUBLIC_URL: 'http://trawl.test', TRAWL_INSPECTOR_ADDRESS: 'http://127.0.0.1:9' },
  };
  const gatewayPort = String(await freePort(address));
  const settings: Settings = {
    ...{ ...shared, TRAWL_HOST: address, TRAWL_RUNNER: 'kubernetes', TRAWL_WORKERS: '8', TRAWL_WORKER_CPU: '10m' },
    ...{ TRAWL_GATEWAY_PORT: gatewayPort, TRAWL_GATEWAY_ADDRESS: `http://${address}:${gatewayPort}` },
    ...{ TRAWL_EGRESS_ADDRESS: egress.url, TRAWL_WORKER_IMAGE: options.image, TRAWL_KUBE_NAMESPACE: namespace },
    ...options.env,
  };
  const ask = askWithKubectl(options);
  let shape = podShapeOf(readConfig(settings));
  await setUpNamespace(ask, shape, waysTo(address, gatewayPort, egress.url, s3.settings.s3Endpoint));
  const ofController = { ...settings, KUBECONFIG: await writeControllerConfig(options, namespace, folder) };
  const stored = recordObjects(options, namespace);
  const api = await startRole('api', shared);
  let controller: RoleProcess | null = null;
  const stopController = async () => void (await controller?.end('SIGTERM'));
  const call: Installation['ask'] = async ({ key }, path) => {
    const answer = await fetch(api.url + path, { headers: { 'x-api-key': key }, redirect: 'manual' });
    return { status: answer.status, headers: answer.headers, json: JSON.parse((await answer.text()) || 'null') };
  };
  return {
    ...{ kubeconfig, namespace, store, s3, source, receiver, secrets, ask: call, recordedObjects: stored.recorded },
    gateway: `http://${address}:${gatewayPort}`,
    egress: egress.url,
    stopController,
    admin: async (...line) => (await runTrawl(['admin', ...line], shared)).out,
    async startController(env = {}) {
      await stopController();
      const wanted = podShapeOf(readConfig({ ...settings, ...env }));
      if (!isDeepStrictEqual(wanted, shape)) await changeAdmissionPolicy(ask, wanted);
      shape = wanted;
      controller = await startRole('controller', { ...ofController, ...env });
    },
    async submit(path, site = source.url) {
      const { order, words, canaries } = await makeSubmission(store, site + path, receiver.url);
      for (const canary of canaries) secrets.add(canary);
      const { status, json } = await call(order, `/v1/video/download?${words}`);
      expect(status, JSON.stringify(json)).to.equal(202);
      return { ...order, id: json.job_id };
    },
    async close() {
      for (const part of [controller, api]) await part?.end('SIGKILL');
      await stored.stop();
      await around.stop();
    },
  };
}

type Settings = Readonly<Record<string, string>>;

/** Targets of workers beside the cluster: servers at an address of this machine, each with its port. */
function waysTo(address: string, gatewayPort: string, ...urls: readonly string[]) {
  const ports = [gatewayPort, ...urls.map((url) => new URL(url).port)].map(Number);
  const stores = ports.map((port) => ({ cidr: `${address}/32`, port }));
  return { gatewayPort: Number(gatewayPort), egressPort: stores[1]?.port ?? 0, stores };
}

const exceptions = { TRAWL_EGRESS_ALLOW: '127.0.0.1:*', TRAWL_LOG_LEVEL: 'debug' };

/** Starts what trawl needs, and what it reaches through egress. */
async function startSurroundings(address: string) {
  const { folder, remove } = aFolder();
  const redis = await startTestServer();
  const s3 = await startS3(address);
  const source = await startSource();
  const receiver = await startReceiver();
  const egress = await startRole('egress', { ...exceptions, TRAWL_HOST: address });
  const stop = async () => {
    await egress.end('SIGKILL');
    for (const { stop } of [receiver, source, s3, redis]) await stop();
    remove();
  };
  return { folder, redis, s3, source, receiver, egress, stop };
}
