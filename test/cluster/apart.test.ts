import { hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect } from 'chai';
import { readConfig } from '../../src/base/config.ts';
import type { Job } from '../../src/model/job.ts';
import { openS3 } from '../../src/objects/s3-store.ts';
import { podShapeOf } from '../../src/runners/kubernetes/pod-shape.ts';
import { writeKubeconfig } from '../support/cluster/controller.ts';
import { endings } from '../support/cluster/pod.ts';
import { makePodToken } from '../support/cluster/pod-token.ts';
import { namespace, startTestbed, type Testbed } from '../support/cluster/testbed.ts';
import { changeAdmissionPolicy } from '../support/cluster/worker-namespace.ts';
import { openEventStream } from '../support/event-stream.ts';
import { someMetadata } from '../support/jobs.ts';
import type { Json } from '../support/json.ts';
import { anAccount, anotherKey } from '../support/record.ts';
import { startTestServer } from '../support/redis.ts';
import { isLeading, type RoleProcess, spawnRole, startRole } from '../support/role-process.ts';
import { startS3, type TestS3 } from '../support/s3.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';

const partBytes = 64 * 1024 ** 2;
const film = Buffer.from('a film');
const sha256 = hash('sha256', film);
const upload = { bytes: film.length, sha256, content_type: 'video/mp4', ext: 'mp4', parts: [sha256] };

describe('two APIs and two controllers in processes of their own', () => {
  let s3: TestS3;
  let source: Source;
  let testbed: Testbed;
  let key: string;
  let egress: RoleProcess;
  let inspector: RoleProcess;
  let apis: readonly [RoleProcess, RoleProcess];
  let controllers: RoleProcess[];
  const parts: RoleProcess[] = [];
  /** True while pods run until the test ends them. */
  let isHeld = false;
  let shared: Record<string, string>;

  const start = async (...given: Parameters<typeof startRole>) => {
    const part = await startRole(...given);
    parts.push(part);
    return part;
  };
  const startController = () => start('controller', shared);

  before(async () => {
    s3 = await startS3();
    source = await startSource();
    const objects = openS3({ settings: s3.settings, partBytes, throughEgress: async () => false });
    testbed = await startTestbed({ objects, startRecord: startTestServer, planOf: () => (isHeld ? {} : undefined) });
    key = await anotherKey(testbed.store, testbed.account);
    egress = await start('egress', { TRAWL_EGRESS_ALLOW: '127.0.0.1:*' });
    const outside = { TRAWL_EGRESS_ADDRESS: egress.url };
    // A folder may be named from where it was started.
    inspector = await start('inspector', { ...outside, TRAWL_DATA: relative('', testbed.folder) });
    shared = {
      ...{ ...s3.env, ...outside, TRAWL_INSPECTOR_ADDRESS: inspector.url, TRAWL_REDIS_URL: testbed.redis.url },
      ...{ TRAWL_SECRET: testbed.secret.toString('base64'), TRAWL_PUBLIC_URL: 'http://trawl.test' },
      ...{ TRAWL_AUTH_FAILURES: '3', TRAWL_TRUSTED_PROXIES: '127.0.0.1/32', TRAWL_EGRESS_ALLOW: '127.0.0.1:*' },
      ...{ KUBECONFIG: await writeKubeconfig(testbed), TRAWL_RUNNER: 'kubernetes', TRAWL_KUBE_NAMESPACE: namespace },
      ...{ TRAWL_WORKER_IMAGE: 'local.test/worker:1', TRAWL_GATEWAY_ADDRESS: 'http://gateway:8082' },
      ...{ TRAWL_WORKERS: '20', TRAWL_WORKER_MEMORY: '64Mi', TRAWL_WORKER_CPU: '10m' },
    };
    await changeAdmissionPolicy(testbed.cluster.admin.ask, podShapeOf(readConfig(shared)));
    const { KUBECONFIG: _, ...ofApi } = shared;
    apis = [await start('api', ofApi), await start('api', ofApi)];
    controllers = [await startController(), await startController()];
  });
  after(async () => {
    for (const part of parts) await part.end('SIGKILL');
    await testbed?.stop();
    await source?.stop();
    await s3?.stop();
  });
  afterEach(() => {
    isHeld = false;
  });

  const ask = async (at: 0 | 1, path: string, headers: Record<string, string> = { 'x-api-key': key }) => {
    const answer = await fetch(apis[at].url + path, { headers, redirect: 'manual' });
    return {
      status: answer.status,
      headers: answer.headers,
      json: JSON.parse((await answer.text()) || 'null') as Json,
    };
  };
  const submit = async (at: 0 | 1): Promise<string> => {
    const { status, json } = await ask(at, `/v1/video/download?query=${source.url}/films/clip.mp4`);
    expect(status).to.equal(202);
    return json.job_id;
  };
  const allComplete = async (ids: readonly string[]): Promise<Job[]> => {
    const jobs = await Promise.all(ids.map((id) => testbed.waitUntilEnded(id, 60)));
    expect(jobs.map(({ status }) => status)).to.deep.equal(ids.map(() => 'CompletedJob'));
    expect(await testbed.findProblems(ids)).to.deep.equal([]);
    await testbed.waitUntilEmpty(30);
    return jobs;
  };
  const leader = async (): Promise<RoleProcess> =>
    (await until(
      async () => {
        const leads = await Promise.all(controllers.map(isLeading));
        return leads.filter(Boolean).length === 1 && controllers[leads.indexOf(true)];
      },
      30,
      'one controller leads',
    )) as RoleProcess;

  it('a controller whose token the API server refuses ends with exit code 1 and a sentence', async () => {
    const file = join(testbed.folder, 'stranger.kubeconfig');
    const known = JSON.parse(readFileSync(shared.KUBECONFIG ?? '', 'utf8'));
    writeFileSync(file, JSON.stringify({ ...known, users: [{ name: 'test', user: { token: 'unknown' } }] }));
    const part = await spawnRole('controller', { ...shared, KUBECONFIG: file });
    expect(await part.ended).to.equal(1);
    const sentence =
      /^The API server at https:\S+ refused to say what this program may do: POST \S+ was answered with 401: Unauthorized$/m;
    expect(part.output()).to.match(sentence);
  });

  it('every process is healthy and ready and serves metrics, leading or not', async () => {
    await leader();
    for (const part of parts) {
      expect((await part.probe('/healthz')).status).to.equal(200);
      expect(await part.probe('/readyz')).to.deep.equal({ status: 200, text: '{"ready":true}' });
      expect((await part.probe('/metrics')).text).to.contain('trawl_process_cpu_seconds_total');
    }
  });

  it('a job of one API is polled, streamed and fetched through the other, and costs one credit', async () => {
    const id = await submit(0);
    const stream = await openEventStream({ url: apis[1].url }, `/v1/jobs/${id}/events`, key);
    const { events } = await stream.rest();
    expect(events.at(-1)?.data.status).to.equal('CompletedJob');
    await allComplete([id]);
    const { json } = await ask(1, `/v1/jobs/${id}`);
    const link = new URL(json.result.response);
    expect(link.origin).to.equal('http://trawl.test');
    for (const at of [0, 1] as const) {
      const redirect = await ask(at, link.pathname + link.search, {});
      expect(redirect.status).to.equal(307);
      const file = await fetch(redirect.headers.get('location') ?? '');
      expect(hash('sha256', Buffer.from(await file.arrayBuffer()))).to.equal(json.result.sha256);
    }
  });

  it('a worker continues through one controller what it began through the other, and its progress reaches every API', async () => {
    isHeld = true;
    const id = await submit(0);
    const stream = await openEventStream({ url: apis[1].url }, `/v1/jobs/${id}/events`, key);
    const pod = await testbed.runningPod(id);
    const token = await makePodToken(testbed.cluster, pod);
    const tell = async (at: number, method: string, path: string, said?: object): Promise<Json> => {
      const headers = { authorization: `Bearer ${token}` };
      const body = said && JSON.stringify(said);
      const answer = await fetch(`${controllers[at]?.url}/v1/attempt${path}`, {
        method,
        headers,
        ...(body && { body }),
      });
      expect(answer.status, path).to.equal(200);
      return JSON.parse((await answer.text()) || 'null');
    };
    expect(await tell(0, 'GET', '')).to.include({ job: id, attempt: 1, part_bytes: partBytes * 1.25 });
    for (const at of [0, 1]) {
      const progress = 40 + at;
      await tell(at, 'POST', '/progress', { progress, stage: 'fetch', speed_bytes: null, eta_seconds: null });
      let seen = await stream.next();
      while (seen && seen.data.progress !== progress) seen = await stream.next();
      expect(seen?.data.progress).to.equal(progress);
    }
    const [part] = (await tell(0, 'POST', '/permit', upload)).parts;
    expect((await fetch(part.url, { method: 'PUT', headers: part.headers, body: film })).status).to.equal(200);
    const permit = await tell(1, 'POST', '/permit', upload);
    expect(permit.parts, 'parts that are missing').to.deep.equal([]);
    const delivered = { key: permit.key, bytes: film.length, sha256, content_type: 'video/mp4' };
    const follower = controllers.indexOf(await leader()) === 0 ? 1 : 0;
    await tell(follower, 'POST', '/verdict', { is: 'done', metadata: someMetadata, delivered });
    testbed.kubelet.end(pod.metadata.name, endings.success());
    const [job] = await allComplete([id]);
    expect(job).to.deep.include({ attempt: 1, delivered });
    expect((await stream.rest()).events.at(-1)?.data.status).to.equal('CompletedJob');
  });

  it('rates are counted, and addresses blocked, for all APIs together', async () => {
    const { accountId } = await anAccount(testbed.store, { credits: 1, perMinute: 5 });
    const limited = { 'x-api-key': await anotherKey(testbed.store, accountId) };
    const statuses = [];
    for (let n = 0; n < 6; n++) statuses.push((await ask(n % 2 === 0 ? 0 : 1, '/v1/usage', limited)).status);
    expect(statuses).to.deep.equal([200, 200, 200, 200, 200, 429]);
    const from = { 'x-forwarded-for': '198.51.100.7' };
    for (const at of [0, 1, 0] as const) {
      expect((await ask(at, '/v1/usage', { ...from, 'x-api-key': 'wrong' })).status).to.equal(401);
    }
    for (const at of [0, 1] as const) {
      const isBlocked = async () => (await ask(at, '/v1/usage', { ...from, 'x-api-key': key })).status === 403;
      await until(isBlocked, 5, `API ${at} blocks`);
    }
  });

  it('metadata is 503 while the inspector is away, and downloads go on', async () => {
    const path = `/v1/media/metadata?query=${source.url}/films/clip.mp4`;
    expect((await ask(0, path)).status).to.equal(200);
    await inspector.end('SIGKILL');
    const refused = await ask(1, path);
    expect(refused.status).to.equal(503);
    expect(Number(refused.headers.get('retry-after'))).to.be.above(0);
    for (const api of apis) expect((await api.probe('/readyz')).status).to.equal(200);
    await allComplete([await submit(1)]);
  });

  it('jobs that run when the leader is killed are ended by the other controller and charged once', async () => {
    isHeld = true;
    const killed = await leader();
    const ids = await Promise.all(Array.from({ length: 10 }, (_, n) => submit(n % 2 === 0 ? 0 : 1)));
    // All of them: one that starts later would be held for ever.
    for (const id of ids) await testbed.runningPod(id);
    await killed.end('SIGKILL');
    isHeld = false;
    for (const pod of testbed.kubelet.running()) testbed.kubelet.end(pod.metadata.name, endings.failure(137));
    ids.push(await submit(0));
    controllers = [...controllers.filter((one) => one !== killed), await startController()];
    await allComplete(ids);
  });

  it('SIGTERM makes a controller give up leadership at once while its jobs run on, and an API end its streams', async () => {
    isHeld = true;
    const first = await leader();
    const id = await submit(0);
    const pod = await testbed.runningPod(id);
    expect(await first.end('SIGTERM')).to.equal(0);
    controllers = controllers.filter((one) => one !== first);
    await until(async () => isLeading(controllers[0] as RoleProcess), 10, 'the other one leads before a lease ends');
    expect(testbed.kubelet.running().map(({ metadata }) => metadata.uid)).to.include(pod.metadata.uid);
    const stream = await openEventStream({ url: apis[0].url }, `/v1/jobs/${id}/events`, key);
    expect(await apis[0].end('SIGTERM')).to.equal(0);
    expect((await stream.rest()).events.length).to.be.above(0);
    isHeld = false;
    testbed.kubelet.end(pod.metadata.name, endings.failure(137));
    await testbed.waitUntilEnded(id, 60);
    expect((await ask(1, `/v1/jobs/${id}`)).json.status).to.equal('CompletedJob');
  });
});
