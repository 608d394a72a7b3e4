import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import { readConfig } from '../../../src/base/config.ts';
import { podShapeOf } from '../../../src/runners/kubernetes/pod-shape.ts';
import type { Json } from '../json.ts';
import { trawl as runTrawl } from '../operator.ts';
import { type Part, startPart } from '../parts.ts';
import { quietPort } from '../port.ts';
import { type Receiver, startReceiver } from '../receiver.ts';
import { storeOf, type TestStore } from '../record.ts';
import { aFolder, startTestServer } from '../redis.ts';
import { credentials, startS3, type TestS3 } from '../s3.ts';
import { type Source, startSource } from '../source-server.ts';
import { askThrough, changeGuard, layGround, writeControllerConfig } from './ground.ts';
import type { Kubeconfig } from './kubectl.ts';
import { anOrder, type Order } from './order.ts';
import { watchStored } from './stored.ts';

/** All of trawl on this machine but its workers, which are Jobs of a cluster. */
export interface Installation extends Kubeconfig {
  readonly namespace: string;
  readonly store: TestStore;
  readonly s3: TestS3;
  /** A source and a receiver of webhooks that nobody but egress reaches. */
  readonly source: Source;
  readonly receiver: Receiver;
  /** What must never stand in an object of the cluster; with each order there is more. */
  readonly secrets: Set<string>;
  /** Starts a controller with these settings, in place of the one that runs. */
  control(env?: Readonly<Record<string, string>>): Promise<void>;
  /** Ends it; its Jobs go on. */
  leave(): Promise<void>;
  /** Submits a film of the source for a new account, with a webhook. */
  submit(path: string): Promise<Order>;
  /** What the caller of an order is answered. */
  ask(order: Pick<Order, 'key'>, path: string): Promise<Answer>;
  /** Every state of every Job, pod and event that its namespace had since it was made. */
  stored(): string;
  /** What an `admin` command beside it prints. */
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
  const around = await startAround(address);
  const { redis, s3, source, receiver, egress, folder } = around;
  const store = storeOf(redis.connection);
  const secret = randomBytes(32).toString('base64');
  const secrets = new Set([...Object.values(credentials), secret]);
  const shared = {
    ...{ ...s3.env, ...exceptions, TRAWL_REDIS_URL: redis.url, TRAWL_SECRET: secret },
    // No test asks for metadata.
    ...{ TRAWL_PUBLIC_URL: 'http://trawl.test', TRAWL_INSPECTOR_ADDRESS: 'http://127.0.0.1:9' },
  };
  const gatewayPort = String(await quietPort(address));
  const settings: Settings = {
    ...{ ...shared, TRAWL_HOST: address, TRAWL_RUNNER: 'kubernetes', TRAWL_WORKERS: '8', TRAWL_WORKER_CPU: '10m' },
    ...{ TRAWL_GATEWAY_PORT: gatewayPort, TRAWL_GATEWAY_ADDRESS: `http://${address}:${gatewayPort}` },
    ...{ TRAWL_EGRESS_ADDRESS: egress.url, TRAWL_WORKER_IMAGE: options.image, TRAWL_KUBE_NAMESPACE: namespace },
    ...options.env,
  };
  const ask = askThrough(options);
  let shape = podShapeOf(readConfig(settings, () => ''));
  await layGround(ask, shape, waysTo(address, gatewayPort, egress.url, s3.settings.s3Endpoint));
  const ofController = { ...settings, KUBECONFIG: await writeControllerConfig(options, namespace, folder) };
  const stored = watchStored(options, namespace);
  const api = await startPart('api', shared);
  let controller: Part | null = null;
  const leave = async () => void (await controller?.end('SIGTERM'));
  const call: Installation['ask'] = async ({ key }, path) => {
    const answer = await fetch(api.url + path, { headers: { 'x-api-key': key }, redirect: 'manual' });
    return { status: answer.status, headers: answer.headers, json: JSON.parse((await answer.text()) || 'null') };
  };
  return {
    ...{ kubeconfig, namespace, store, s3, source, receiver, secrets, ask: call, stored: stored.said },
    leave,
    admin: async (...line) => (await runTrawl(['admin', ...line], shared)).out,
    async control(env = {}) {
      await leave();
      const wanted = podShapeOf(readConfig({ ...settings, ...env }, () => ''));
      if (!isDeepStrictEqual(wanted, shape)) await changeGuard(ask, wanted);
      shape = wanted;
      controller = await startPart('controller', { ...ofController, ...env });
    },
    async submit(path) {
      const { order, words, canaries } = await anOrder(store, source.url + path, receiver.url);
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

/** What stands beside the cluster is at an address of this machine, and no pod: workers reach each by its port. */
function waysTo(address: string, gatewayPort: string, ...urls: readonly string[]) {
  const ports = [gatewayPort, ...urls.map((url) => new URL(url).port)].map(Number);
  const stores = ports.map((port) => ({ cidr: `${address}/32`, port }));
  return { gatewayPort: Number(gatewayPort), egressPort: stores[1]?.port ?? 0, stores };
}

const exceptions = { TRAWL_EGRESS_ALLOW: '127.0.0.1:*', TRAWL_LOG_LEVEL: 'debug' };

/** Starts what trawl needs, and what it reaches through egress. */
async function startAround(address: string) {
  const { folder, remove } = aFolder();
  const redis = await startTestServer();
  const s3 = await startS3(address);
  const source = await startSource();
  const receiver = await startReceiver();
  const egress = await startPart('egress', { ...exceptions, TRAWL_HOST: address });
  const stop = async () => {
    await egress.end('SIGKILL');
    for (const { stop } of [receiver, source, s3, redis]) await stop();
    remove();
  };
  return { folder, redis, s3, source, receiver, egress, stop };
}
