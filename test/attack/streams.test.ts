import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film } from '../support/calls.ts';
import { type EventStream, openEventStream } from '../support/event-stream.ts';
import { beginJob, runJob } from '../support/job-steps.ts';
import { anAccount, anotherKey, storeOf } from '../support/record.ts';
import { startTestServer } from '../support/redis.ts';
import { type RoleProcess, startRole } from '../support/role-process.ts';
import { until } from '../support/until.ts';

const maxOfAccount = 100;
const many = 9000;
const sentence = 'You have exceeded the waiting-calls rate limit on your subscription';

/** An API in a process of its own with a Redis of its own, and two accounts that each have a job. */
interface Replica {
  readonly url: string;
  readonly attacker: { readonly key: string; readonly jobId: string };
  readonly victim: { readonly key: string; readonly jobId: string };
  /** Changes the attacker's job. */
  readonly change: () => Promise<unknown>;
  readonly stop: () => Promise<void>;
}

async function startReplica(): Promise<Replica> {
  const redis = await startTestServer();
  const store = storeOf(redis.connection);
  const api: RoleProcess = await startRole('api', {
    ...{ TRAWL_REDIS_URL: redis.url, TRAWL_SECRET: randomBytes(32).toString('base64'), TRAWL_LOG_LEVEL: 'error' },
    // Nothing asks for metadata or files.
    ...{ TRAWL_PUBLIC_URL: 'http://trawl.test', TRAWL_INSPECTOR_ADDRESS: 'http://127.0.0.1:9', TRAWL_OBJECTS: 's3' },
    ...{ TRAWL_S3_BUCKET: 'none', TRAWL_S3_ENDPOINT: 'http://127.0.0.1:9', TRAWL_S3_REGION: 'none' },
    ...{ AWS_ACCESS_KEY_ID: 'none', AWS_SECRET_ACCESS_KEY: 'none' },
  });
  const addJob = async () => {
    const { accountId } = await anAccount(store, { credits: 100 });
    const key = await anotherKey(store, accountId);
    const answer = await fetch(`${api.url}/v1/video/download?query=${film}`, { headers: { 'x-api-key': key } });
    const { job_id } = (await answer.json()) as { job_id: string };
    return { key, jobId: job_id };
  };
  const [attacker, victim] = [await addJob(), await addJob()];
  const attacked = await beginJob(store, attacker.jobId);
  let progress = 0;
  return {
    ...{ url: api.url, attacker, victim },
    change: () => {
      progress = (progress + 1) % 90;
      const told = { progress, stage: 'fetch video', speed_bytes: progress, eta_seconds: 9 };
      return noteProgress(store, attacked, 1, told);
    },
    async stop() {
      await api.end('SIGKILL');
      await redis.stop();
    },
  };
}

/** Opens a stream that is read; returns its socket and the status of the answer. */
async function openRaw(url: string, path: string, key: string, address = '127.0.0.1') {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port), localAddress: address });
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\n\r\n`);
  const [head] = (await once(socket, 'data')) as [Buffer];
  socket.on('error', () => {}).resume();
  return { socket, status: Number(head.toString('latin1', 9, 12)) };
}

async function pollMs({ url, victim }: Replica): Promise<number> {
  const began = performance.now();
  const answer = await fetch(`${url}/v1/jobs/${victim.jobId}?fields=status`, { headers: { 'x-api-key': victim.key } });
  expect(answer.status).to.equal(200);
  await answer.text();
  return performance.now() - began;
}

describe('9,000 event streams of one account', function () {
  this.timeout(600_000);
  const sockets: Socket[] = [];
  const replicas: Replica[] = [];
  after(async () => {
    for (const socket of sockets) socket.destroy();
    for (const { stop } of replicas) await stop();
  });

  it('are 100, the others are 429, and a poll of another account takes at most twice its usual time', async () => {
    const [attacked, calm] = [await startReplica(), await startReplica()];
    replicas.push(attacked, calm);
    const { jobId, key } = attacked.attacker;
    const statuses: number[] = [];
    for (let n = 0; n < many; n += 250) {
      const open = (_: unknown, i: number) =>
        openRaw(attacked.url, `/v1/jobs/${jobId}/events`, key, `127.0.1.${1 + (i % 50)}`);
      for (const { socket, status } of await Promise.all(Array.from({ length: 250 }, open))) {
        sockets.push(socket);
        statuses.push(status);
      }
    }

    const times: { one: number[]; other: number[] } = { one: [], other: [] };
    const median = (some: number[]) => some.toSorted((a, b) => a - b)[some.length >> 1] ?? Number.NaN;
    const ratio = () => median(times.one) / median(times.other);
    const end = performance.now() + 60_000;
    let changed = performance.now();
    // The jobs of both change as often as a worker tells of its progress.
    while (times.one.length < 100 || (ratio() > 2 && performance.now() < end)) {
      if (performance.now() - changed > 500) {
        changed = performance.now();
        await Promise.all([attacked.change(), calm.change()]);
      }
      times.one.push(await pollMs(attacked));
      times.other.push(await pollMs(calm));
    }
    console.log(`      poll ${median(times.one).toFixed(1)} ms : ${median(times.other).toFixed(1)} ms`);
    expect(ratio()).to.be.at.most(2);
    expect(statuses.filter((status) => status === 200)).to.have.length(maxOfAccount);
    expect(statuses.filter((status) => status === 429)).to.have.length(many - maxOfAccount);
  });
});

describe('event streams and waiting polls', () => {
  let api: TestApi;
  let caller: ApiCaller;
  let id: string;
  beforeEach(async () => {
    api = await startApi({}, (parts) => ({ ...parts, unreadMs: 300 }));
    caller = await api.addCaller();
    id = await submit(caller);
  });
  afterEach(() => api.stop());

  const submit = async ({ key }: ApiCaller, query = film) =>
    String((await api.get('/v1/video/download', key, { query })).json.job_id);
  const path = () => `/v1/jobs/${id}/events`;

  it('of one account are at most 100 together, an account that has none gets one, and one that ends makes room', async () => {
    const streams: EventStream[] = [];
    for (let n = 0; n < maxOfAccount - 1; n++) streams.push(await openEventStream(api, path(), caller.key));
    const waits = api.get(`/v1/jobs/${id}`, caller.key, { wait: '30' });
    const refusedNow = async () => (await api.get(path(), caller.key)).status === 429;
    // A stream that is refused is over at once; one that is opened would have to be read.
    await until(async () => (await api.call('HEAD', path(), { key: caller.key })).status === 429, 10, 'the poll waits');
    expect(await refusedNow()).to.equal(true);
    for (const [where, params] of [
      [path(), {}],
      [`/v1/jobs/${id}`, { wait: '30' }],
    ] as const) {
      const refused = await api.get(where, caller.key, params);
      expectRefused(refused, 429, 'rate_limited', sentence);
      expect(refused.headers.get('retry-after')).to.match(/^\d+$/);
    }
    expect((await api.get(`/v1/jobs/${id}`, caller.key)).status).to.equal(200);
    const other = await api.addCaller();
    const stream = await openEventStream(api, `/v1/jobs/${await submit(other)}/events`, other.key);
    expect((await stream.next())?.event).to.equal('progress');

    await streams.pop()?.cancel();
    await until(async () => (await api.call('HEAD', path(), { key: caller.key })).status === 200, 10, 'there is room');
    for (const one of [...streams, stream]) await one.cancel();
    await api.call('DELETE', `/v1/jobs/${id}`, { key: caller.key });
    expect((await waits).status).to.equal(200);
  });

  it('of one job share one read for each change', async () => {
    const job = await runJob(api.store, id);
    const reads = async () => {
      const told = String(await api.redis.connection.send(['INFO', 'commandstats']));
      return Number(/^cmdstat_hgetall:calls=(\d+)/m.exec(told)?.[1] ?? 0);
    };
    const told = { stage: 'fetch video', speed_bytes: 1000, eta_seconds: 9 };
    const readsOf = async (progresses: readonly number[], seen: (progress: number) => Promise<unknown>) => {
      const before = await reads();
      for (const progress of progresses) {
        await noteProgress(api.store, job, 1, { ...told, progress });
        await seen(progress);
      }
      return (await reads()) - before;
    };
    const unwatched = await readsOf([20, 21, 22, 23, 24], async () => undefined);
    const streams = await Promise.all(Array.from({ length: 50 }, () => openEventStream(api, path(), caller.key)));
    for (const stream of streams) expect((await stream.next())?.data.progress).to.equal(24);
    const watched = await readsOf([30, 31, 32, 33, 34], async (progress) => {
      for (const stream of streams) expect((await stream.next())?.data.progress).to.equal(progress);
    });
    expect(watched - unwatched).to.equal(5);
    for (const stream of streams) await stream.cancel();
  });

  it('end when their reader has not read for as long as the limit, and the job can be streamed again', async () => {
    // Events as long as they can be fill the buffers of both sides soon.
    id = await submit(caller, `${film}?${'x'.repeat(1900)}`);
    const job = await runJob(api.store, id);
    const { hostname: host, port } = new URL(api.url);
    const unread = connect({ host, port: Number(port) }).pause();
    unread.on('error', () => {});
    unread.write(`GET ${path()} HTTP/1.1\r\nHost: x\r\nx-api-key: ${caller.key}\r\n\r\n`);
    const listeners = async () =>
      Number(((await api.redis.connection.send(['PUBSUB', 'NUMSUB', `{trawl}:changed:${id}`])) as unknown[])[1]);
    await until(async () => (await listeners()) === 1, 5, 'the stream is open');
    let speed = 0;
    const changeMuch = async () => {
      for (let n = 0; n < 50; n++) {
        const told = { progress: 20, stage: 'fetch video', speed_bytes: ++speed, eta_seconds: 9 };
        await noteProgress(api.store, job, 1, told);
      }
    };
    await until(async () => changeMuch().then(async () => (await listeners()) === 0), 15, 'the stream is ended');
    unread.destroy();
    const read = await openEventStream(api, path(), caller.key);
    expect((await read.next())?.event).to.equal('progress');
    await read.cancel();
    expect(api.lines.filter((line) => line.includes('"level":"error"'))).to.deep.equal([]);
  });
});
