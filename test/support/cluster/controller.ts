import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from '../../../src/base/config.ts';
import { makeLog } from '../../../src/base/log.ts';
import { makeMetrics } from '../../../src/base/metrics.ts';
import { makeSeal } from '../../../src/base/seal.ts';
import { makeShutdown } from '../../../src/base/shutdown.ts';
import { openFolder } from '../../../src/objects/folder-store.ts';
import { buildController } from '../../../src/roles/build-controller.ts';
import { openKubernetesWorkers } from '../../../src/roles/kubernetes-workers.ts';
import { openStore } from '../../../src/store/open-store.ts';
import { until } from '../until.ts';
import { workerSettings } from './runner.ts';
import { namespace, type Testbed } from './testbed.ts';

/** A controller in a process of its own. */
export interface TestController {
  readonly process: ChildProcess;
  readonly output: () => string;
  isLeading(): boolean;
  /** Ends it with this signal and waits for its end. */
  end(signal: NodeJS.Signals): Promise<void>;
}

export interface ControllerOptions {
  /** Its way to the API server. */
  readonly server?: string;
  /** More settings for it. */
  readonly env?: Readonly<Record<string, string>>;
  /** True to be set up as an operator would: the usual times of lease and full pass, and the API server reached as in a pod. */
  readonly isUsual?: boolean;
  readonly defersCleanup?: boolean;
}

/** Mounts the files of a service account where a pod has them, for no other process, then starts the command that follows. */
const mountAccount = `
mount -t tmpfs tmpfs /run
mkdir -p "$1"
(umask 077; printf %s "$CA" >"$1/ca.crt"; printf %s "$TOKEN" >"$1/token")
shift
exec env -u CA -u TOKEN "$@"`;
/** Folder of the service account's files in a pod. */
export const accountFolder = '/run/secrets/kubernetes.io/serviceaccount';

/** Starts a controller on a testbed; it leads when no other one does. */
export async function startTestController(
  testbed: Testbed,
  { server = testbed.cluster.url, env = {}, isUsual = false, defersCleanup = true }: ControllerOptions = {},
): Promise<TestController> {
  const { cluster, redis, folder, secret } = testbed;
  const program = [
    process.execPath,
    import.meta.filename,
    redis.url,
    isUsual ? 'usual' : 'quick',
    String(defersCleanup),
  ];
  const inPod = ['unshare', '--map-root-user', '--mount', 'sh', '-ec', mountAccount, 'sh', accountFolder, ...program];
  const [command = '', ...args] = isUsual ? inPod : program;
  const child = spawn(command, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      ...(isUsual ? await podVariables(testbed, server) : { KUBECONFIG: await writeKubeconfig(testbed, server) }),
      TRAWL_DATA: folder,
      TRAWL_SECRET: secret.toString('base64'),
      TRAWL_RUNNER: 'kubernetes',
      TRAWL_OBJECTS: 's3',
      TRAWL_S3_BUCKET: 'a-folder-in-this-test',
      TRAWL_KUBE_NAMESPACE: namespace,
      ...workerSettings,
      TRAWL_WORKERS: '60',
      ...env,
    },
  });
  let said = '';
  child.stderr?.on('data', (piece) => {
    said += piece;
  });
  const gone = once(child, 'exit');
  const controller = {
    process: child,
    output: () => said,
    isLeading: () => said.lastIndexOf('leads now') > said.lastIndexOf('leads no more'),
    end: async (signal: NodeJS.Signals) => {
      child.kill(signal);
      await gone;
    },
  };
  await until(() => said.includes('it works') || child.exitCode !== null, 30, `a controller works on ${cluster.url}`);
  if (child.exitCode !== null) throw new Error(`The controller ended: ${said}`);
  return controller;
}

/** Returns what the shell of `mountAccount` and the controller in it need to find the API server. */
async function podVariables({ cluster }: Testbed, server: string) {
  const { hostname, port } = new URL(server);
  const service = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
  return { ...service, CA: cluster.authority.cert, TOKEN: await askForToken(cluster) };
}

/** Returns a token of the controller's account, which has no other permission than its Role. */
async function askForToken({ admin }: Testbed['cluster']): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/trawl-controller/token`;
  const { status } = await admin.ask('POST', path, { spec: { expirationSeconds: 3600 } });
  return status.token;
}

/** Writes a kubeconfig of the controller's account. */
export async function writeKubeconfig({ cluster, folder }: Testbed, server = cluster.url): Promise<string> {
  const token = await askForToken(cluster);
  const file = join(folder, 'controller.kubeconfig');
  const ca = Buffer.from(cluster.authority.cert).toString('base64');
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': ca } }],
      users: [{ name: 'test', user: { token } }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      'current-context': 'test',
    }),
  );
  return file;
}

async function work(): Promise<void> {
  const config = readConfig(process.env);
  const isUsual = process.argv[3] === 'usual';
  const log = makeLog({ level: config.logLevel, write: (line) => process.stderr.write(line), now: Date.now });
  const metrics = makeMetrics();
  const stop = makeShutdown();
  const { store, close } = await openStore({ ...config, redisUrl: process.argv[2] ?? null }, log);
  stop.add('record', close);
  const seal = makeSeal({ secret: config.secret ?? Buffer.alloc(32), old: null });
  const controller = await buildController(
    {
      ...{ config, store, seal, log, metrics, traces: null },
      objects: await openFolder({ folder: join(config.data, 'objects'), seal, now: store.clock.now }),
      inspector: { inspect: askNothing, list: askNothing },
      publicUrl: () => config.publicUrl,
      openWorkers: openKubernetesWorkers({
        ...{ config, env: process.env, now: store.clock.now, metrics, log, ending: new AbortController().signal },
        defersCleanup: process.argv[4] === 'true',
      }),
      gatewayAddress: { host: '127.0.0.1', port: 0 },
      egress: { path: join(config.data, 'egress.sock') },
      ...(!isUsual && { times: { leaseMs: 1_500, renewMs: 500, fullPassMs: 5_000 } }),
    },
    stop,
  );
  let led = false;
  setInterval(
    () => {
      if (controller.isLeading() !== led) log.info(led ? 'leads no more' : 'leads now');
      led = controller.isLeading();
    },
    isUsual ? 500 : 20,
  ).unref();
  process.once('SIGTERM', () => void stop.run());
  log.info('it works');
}

if (import.meta.main) await work();

function askNothing(): Promise<never> {
  return Promise.reject(new Error('no test asks for metadata'));
}
