import { readConfig } from '../../../src/base/config.ts';
import type { ObjectStore } from '../../../src/objects/object-store.ts';
import { openS3 } from '../../../src/objects/s3-store.ts';
import { podShapeOf } from '../../../src/runners/kubernetes/pod-shape.ts';
import { quickLoss } from '../cluster/cluster.ts';
import { writeKubeconfig } from '../cluster/controller.ts';
import type { Plan } from '../cluster/fake-kubelet.ts';
import type { Ending } from '../cluster/pod.ts';
import { namespace, startTestbed, type Testbed } from '../cluster/testbed.ts';
import { changeAdmissionPolicy } from '../cluster/worker-namespace.ts';
import { startDns, type TestDns } from '../dns.ts';
import { type FakedClock, fakeClock } from '../faked-clock.ts';
import { startFakedRedis } from '../faked-redis.ts';
import { freePort } from '../free-port.ts';
import { type Receiver, startReceiver } from '../receiver.ts';
import { anotherKey } from '../record.ts';
import { aFolder } from '../redis.ts';
import type { RoleProcess } from '../role-process.ts';
import { startS3, type TestS3 } from '../s3.ts';
import { until } from '../until.ts';
import { compressRules } from './compressed-rules.ts';
import { type Prometheus, startPrometheus } from './prometheus.ts';
import { makeRoleGroup, type RoleGroup } from './role-group.ts';

type Environment = Readonly<Record<string, string>>;

/** A whole trawl in processes of its own, on a real control plane whose pods only pretend, read by a real Prometheus. */
export interface DrillGround extends Pick<RoleGroup, 'running' | 'leader' | 'outputOf'> {
  readonly prometheus: Prometheus;
  readonly testbed: Testbed;
  readonly s3: TestS3;
  readonly dns: TestDns;
  readonly redisClock: FakedClock;
  readonly api: RoleProcess;
  /** Settings of a controller, which operators' commands need too. */
  readonly env: Environment;
  /** Folder for files of a test. */
  readonly folder: string;
  readonly key: string;
  readonly receiver: Receiver;
  /** Switches of the surroundings: the status that the receiver answers, and pods that run until they are ended. */
  readonly switches: { receiverStatus: number; isHeld: boolean };
  /** Starts another controller, or another inspector. */
  readonly start: (role: 'controller' | 'inspector') => Promise<RoleProcess>;
  readonly stop: () => Promise<void>;
}

const redisMemory = '268435456';
const usualYtDlpDays = 5;

export async function startDrillGround(): Promise<DrillGround> {
  const ends: (() => unknown)[] = [];
  const stop = async () => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  try {
    return { ...(await startAll(ends)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Returns the rules as they were if yt-dlp had been released so many days ago. */
export async function rulesAt(prometheus: Prometheus, ytDlpDays = usualYtDlpDays): Promise<string> {
  const find = async () => Number((await prometheus.ask('max(trawl_yt_dlp_released_seconds)'))[0]?.value[1] ?? 0);
  const released = await until(find, 30, 'the version of yt-dlp is shown');
  return compressRules(ytDlpDays * 86_400 - (Date.now() / 1000 - released));
}

async function startAll(ends: (() => unknown)[]): Promise<Omit<DrillGround, 'stop'>> {
  const { folder, remove } = aFolder();
  ends.push(remove);
  const prometheus = await startPrometheus();
  const s3 = await startS3();
  ends.push(s3.stop, prometheus.stop);
  const dns = await startDns();
  dns.answers = () => ['127.0.0.1'];
  ends.push(dns.close);
  const switches = { receiverStatus: 200, isHeld: false };
  const receiver = await startReceiver((_, res) => res.writeHead(switches.receiverStatus).end());
  ends.push(receiver.stop);
  const redisClock = fakeClock(folder, 'redis');
  const testbed = await startTestbed({
    ...{ flags: quickLoss, objects: patient(s3), startRecord: () => startFakedRedis(folder, redisClock) },
    planOf: (_, delivers) => (switches.isHeld ? {} : uploadFirst(delivers())),
  });
  ends.push(testbed.stop);
  await testbed.redis.connection.send(['CONFIG', 'SET', 'maxmemory', redisMemory]);
  const roles = makeRoleGroup(prometheus);
  ends.push(roles.stop);
  const started = await startRoles(roles, testbed, { s3, dns, receiver });
  prometheus.setRules(await rulesAt(prometheus));
  const { running, leader, outputOf } = roles;
  return {
    ...{ prometheus, testbed, s3, dns, redisClock, folder, receiver, switches, running, leader, outputOf, ...started },
    key: await anotherKey(testbed.store, testbed.account),
  };
}

async function startRoles(
  roles: RoleGroup,
  testbed: Testbed,
  { s3, dns, receiver }: { readonly s3: TestS3; readonly dns: TestDns; readonly receiver: Receiver },
): Promise<Pick<DrillGround, 'api' | 'env' | 'start'>> {
  const outside = {
    ...{ TRAWL_EGRESS_ALLOW: '127.0.0.1:*', TRAWL_DNS_SERVERS: `127.0.0.1:${dns.port}` },
    TRAWL_EGRESS_PORTS: `80,443,${new URL(receiver.url).port}`,
  };
  const egress = await roles.start('egress', outside);
  const inside = { ...outside, TRAWL_EGRESS_ADDRESS: egress.url, TRAWL_DATA: testbed.folder };
  const startInspector = async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    return { url, part: await roles.start('inspector', { ...inside, TRAWL_INSPECTOR_ADDRESS: url }) };
  };
  const { url } = await startInspector();
  const shared = {
    ...{ ...s3.env, ...inside, TRAWL_INSPECTOR_ADDRESS: url, TRAWL_REDIS_URL: testbed.redis.url },
    ...{ TRAWL_SECRET: testbed.secret.toString('base64'), TRAWL_PUBLIC_URL: 'http://trawl.test' },
    ...{ TRAWL_WORKER_IMAGE: 'local.test/worker:1', TRAWL_GATEWAY_ADDRESS: 'http://gateway:8082' },
    ...{ TRAWL_RUNNER: 'kubernetes', TRAWL_KUBE_NAMESPACE: namespace, TRAWL_WORKER_AWAY_SECONDS: '2' },
    ...{ TRAWL_WORKERS: '150', TRAWL_WORKER_MEMORY: '64Mi', TRAWL_WORKER_CPU: '10m' },
  };
  const env = { ...shared, KUBECONFIG: await writeKubeconfig(testbed) };
  await changeAdmissionPolicy(testbed.cluster.admin.ask, podShapeOf(readConfig(env)));
  const api = await roles.start('api', shared);
  for (let n = 0; n < 2; n++) await roles.start('controller', env);
  await roles.leader();
  const start = async (role: 'controller' | 'inspector') =>
    role === 'controller' ? roles.start('controller', env) : (await startInspector()).part;
  return { api, env, start };
}

/** The course of a worker that has uploaded its file a second before it ends, so that some end while the store is away. */
function uploadFirst(uploaded: Promise<Ending>): Plan {
  return { runMs: 1_500, ending: () => uploaded };
}

/** A store whose uploads wait while it is away, as those of a worker do. */
function patient(s3: TestS3): ObjectStore {
  const partBytes = 64 * 1024 ** 2;
  const store = openS3({ settings: s3.settings, partBytes, throughEgress: async () => false });
  const keep: ObjectStore['keep'] = async (key, body) => {
    const isKept = () =>
      store.keep(key, body).then(
        () => true,
        () => false,
      );
    await until(isKept, 60, `${key} is kept`);
  };
  return { ...store, keep };
}
