import { createHash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { makeToken, readToken } from '../../src/controller/attempt-token.ts';
import { makeWorkerGateway } from '../../src/controller/worker-gateway.ts';
import type { Job } from '../../src/model/job.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { openListener } from '../../src/roles/socket.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { openGatewayClient } from '../../src/worker/gateway-client.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';
import {
  aDownload,
  anAccount,
  aRunningJob,
  holder,
  startNext,
  storeOf,
  type TestStore,
  theJob,
} from '../support/record.ts';
import { aFolder, aLog, startTestRedis, type TestRedis } from '../support/redis.ts';
import { makeTlsFiles, type TlsFiles } from '../support/tls-files.ts';
import { until } from '../support/until.ts';

const seal = makeSeal({ secret: Buffer.alloc(32, 7), old: null });
const film = Buffer.from('a film');
const sha256 = createHash('sha256').update(film).digest('hex');
const upload = { bytes: film.length, sha256, content_type: 'video/mp4', ext: 'mp4', parts: [] };

describe('The worker gateway of two controllers', () => {
  let redis: TestRedis;
  let store: TestStore;
  let place: ReturnType<typeof aFolder>;
  let objects: FolderStore;
  const ends: (() => Promise<void>)[] = [];
  let files: TlsFiles;
  const ports: number[] = [];
  let isSteady = true;
  const { lines, log } = aLog();

  before(async () => {
    redis = await startTestRedis();
    store = storeOf(redis.connection);
    const { clock: real } = redis.connection;
    const clock = { now: () => real.now(), machineAheadMs: () => 0, isSteady: () => isSteady };
    store = { ...store, connection: { ...store.connection, clock } };
    place = aFolder();
    files = makeTlsFiles('gateway', ['127.0.0.1']);
    for (let n = 0; n < 3; n++) {
      objects = await openFolder({ folder: place.folder, seal, now: Date.now });
      const attemptOf = async (token: string) => readToken(token, seal.verify);
      const limits = { maxFileBytes: 1_000, maxAttemptMs: 7_200_000, inspectSeconds: 10 };
      const cookiesOf = async (url: unknown) => (String(url).startsWith('https://own.example/') ? 'its own' : null);
      const certificate = n === 2 ? files : null;
      const gateway = makeWorkerGateway({
        store,
        objects,
        attemptOf,
        cookiesOf,
        certificate,
        log,
        ...limits,
      });
      ends.push(await openListener(gateway, { host: '127.0.0.1', port: 0 }));
      ports.push((gateway.address() as AddressInfo).port);
    }
  });
  after(async () => {
    for (const end of ends) await end();
    await redis.stop();
    place.remove();
    files.remove();
  });

  const aJob = async () => aRunningJob(store, await anAccount(store, { credits: 1 }));
  const call = (at: number, { id }: Job, path: string, asked: RequestInit = {}) => {
    const authorization = `Bearer ${makeToken({ jobId: id, attempt: 1 }, seal.sign)}`;
    const url = `http://127.0.0.1:${ports[at]}/v1/attempt${path}`;
    // A server closes a connection that was idle for 5 s: a halt of this process must not let the next request meet that end.
    return fetch(url, { ...asked, headers: { authorization, connection: 'close', ...asked.headers } });
  };
  const post = (at: number, job: Job, path: string, said: object) =>
    call(at, job, path, { method: 'POST', body: JSON.stringify(said) });
  const put = (at: number, job: Job, headers: object, body = film) =>
    call(at, job, '/object', { method: 'PUT', body, headers: { 'content-type': 'video/mp4', ...headers } });
  const words = { 'x-sha256': sha256, 'x-ext': 'mp4' };

  it('hands a worker the cookies of its site, and of no other site', async () => {
    const caller = await anAccount(store, { credits: 2 });
    const given = [];
    for (const query of ['https://own.example/film', 'https://example.com/?https://own.example/']) {
      const job = await aRunningJob(store, caller, { work: { ...aDownload, args: { query } } });
      const { cookies } = (await (await call(0, job, '')).json()) as { cookies: unknown };
      given.push(cookies);
    }
    expect(given).to.deep.equal(['its own', null]);
  });

  it('gives a worker the time until its deadline, and that of a whole attempt after the clock has jumped', async () => {
    const job = await aJob();
    const seconds = async () =>
      ((await (await call(0, job, '')).json()) as { limits: { seconds: number } }).limits.seconds;
    expect(await seconds()).to.equal(7_200);
    store.advance(7_100_000);
    expect(await seconds()).to.be.within(1, 100);
    // The clock went back since it was read: the deadline is far by TIME of this moment.
    const { now } = store.clock;
    Object.assign(store.clock, { now: () => now() + 24 * 3_600_000 });
    expect(await seconds()).to.be.within(2, 100);
    Object.assign(store.clock, { now });
    store.advance(24 * 3_600_000);
    expect(await seconds()).to.equal(1);
    isSteady = false;
    expect(await seconds()).to.equal(7_200);
    store.advance(-48 * 3_600_000);
    isSteady = true;
    expect(await seconds()).to.equal(7_200);
    store.advance(24 * 3_600_000);
  });

  it('answers a worker with TLS whose authority it trusts, and no other', async () => {
    const job = await aJob();
    const token = () => makeToken({ jobId: job.id, attempt: 1 }, seal.sign);
    const clientOf = (caFile: string | null) => {
      const at = { host: '127.0.0.1', port: ports[2] ?? 0, tls: { caFile } };
      return openGatewayClient(at, token, 0, new AbortController().signal);
    };
    expect((await clientOf(files.caFile).readSpec()).job).to.equal(job.id);
    const refused = await clientOf(null)
      .readSpec()
      .catch((error) => error.code);
    expect(refused).to.equal('UNABLE_TO_VERIFY_LEAF_SIGNATURE');
  });

  it('takes permit, file and verdict of one attempt at different controllers', async () => {
    const job = await aJob();
    const key = `${job.id}/1/media.mp4`;
    expect(await (await post(0, job, '/permit', upload)).json()).to.deep.equal({
      key,
      parts: null,
      through_egress: false,
    });
    expect((await put(1, job, words)).status).to.equal(200);
    expect(await objects.see(key)).to.deep.equal({ bytes: film.length, checksum: sha256 });
    const delivered = { ...someDelivered(1), key, bytes: film.length, sha256 };
    const verdict = { is: 'done', metadata: someMetadata, delivered };
    for (const at of [0, 1]) expect((await post(at, job, '/verdict', verdict)).status).to.equal(200);
    expect((await theJob(store, job.id)).verdict).to.deep.equal(verdict);
  });

  it('refuses a file that is too large, of another content type, or with another checksum', async () => {
    const job = await aJob();
    const refused: [object, Buffer<ArrayBuffer>?][] = [
      [words, Buffer.alloc(1_001)],
      [{ ...words, 'x-ext': '../x' }],
      [{ 'x-sha256': sha256 }],
      [{ 'x-ext': 'mp4' }],
      [{ ...words, 'content-type': 'text/html' }],
      [{ ...words, 'x-sha256': '0'.repeat(64) }],
    ];
    for (const [headers, body] of refused) {
      expect((await put(0, job, headers, body)).status, JSON.stringify(headers)).to.equal(400);
    }
  });

  it('permits one file for each content type, so that an attempt cannot store any number of them', async () => {
    const job = await aJob();
    const statusOf = async (changed: object) => (await post(0, job, '/permit', { ...upload, ...changed })).status;
    expect(await statusOf({ ext: 'film1' })).to.equal(400);
    expect(await statusOf({ ext: 'webm' })).to.equal(400);
    expect(await statusOf({ ext: 'webm', content_type: 'audio/webm' })).to.equal(200);
    expect((await put(0, job, { ...words, 'x-ext': 'film2' })).status).to.equal(400);
    expect(await objects.see(`${job.id}/1/media.film2`)).to.equal(null);
  });

  it('logs what the programs of a failed attempt said, without the paths of URLs, and keeps none of it', async () => {
    const job = await aJob();
    const failed = { is: 'failed', code: 'unclassified', text: 'The download failed' };
    const detail = 'Error at https://user:secret@media.example/film.mp4?token=secret\n\u001b[31mno such codec';
    expect((await post(0, job, '/verdict', { ...failed, detail })).status).to.equal(200);
    expect((await theJob(store, job.id)).verdict).to.deep.equal(failed);
    const told = lines.map((line) => JSON.parse(line)).find(({ job: id }) => id === job.id);
    expect(told).to.include({ text: 'an attempt failed through our fault', attempt: 1, code: 'unclassified' });
    expect(told.detail).to.equal('Error at https://media.example/… [31mno such codec');
  });

  it('logs the details of the first verdict of an attempt alone, and none of a failure that is not ours', async () => {
    const [job, other] = [await aJob(), await aJob()];
    for (const detail of ['first', 'second', 'third'])
      expect((await post(0, job, '/verdict', { is: 'failed', code: 'unclassified', detail })).status).to.equal(200);
    await post(0, other, '/verdict', { is: 'failed', code: 'private', detail: 'it is private' });
    const told = lines.map((line) => JSON.parse(line)).filter(({ job: id }) => id === job.id || id === other.id);
    expect(told.map(({ detail }) => detail)).to.deep.equal(['first']);
  });

  it('records an invalid verdict as worker_failed and refuses one that is too long', async () => {
    const job = await aJob();
    expect((await post(0, job, '/verdict', { is: 'rich' })).status).to.equal(200);
    expect((await theJob(store, job.id)).verdict).to.deep.equal({ is: 'failed', code: 'worker_failed' });
    expect((await post(0, job, '/verdict', { is: 'x'.repeat(65 * 1024) })).status).to.equal(400);
  });

  it('writes the progress of an attempt at once, then no more than once a second, and the newest report last', async () => {
    const job = await aJob();
    const tell = async (progress: number) => {
      const told = { progress, stage: 'fetch video', speed_bytes: null, eta_seconds: null };
      return (await post(0, job, '/progress', told)).status;
    };
    const began = performance.now();
    expect(await tell(1)).to.equal(200);
    const { revision, progress } = await theJob(store, job.id);
    expect(progress).to.equal(1);
    for (let n = 2; n <= 40; n++) expect(await tell(n)).to.equal(200);
    await until(async () => (await theJob(store, job.id)).progress === 40, 5, 'the newest report is written');
    const seconds = Math.ceil((performance.now() - began) / 1000);
    expect((await theJob(store, job.id)).revision - revision).to.be.within(1, seconds);
    await cancelJob(store, job);
    await until(async () => (await tell(50)) === 410, 5, 'the worker hears of the end');
  });

  it('drops a report with the percent and stage that were written less than 5 s before, so that none overwrites what another controller was told', async () => {
    const job = await aJob();
    const tell = async (at: number, stage: string, speed_bytes: number) => {
      const told = { progress: 30, stage, speed_bytes, eta_seconds: 9 };
      expect((await post(at, job, '/progress', told)).status).to.equal(200);
    };
    const began = performance.now();
    await tell(0, 'fetch', 10);
    await tell(0, 'fetch', 20);
    await tell(1, 'prove', 30);
    const { revision } = await theJob(store, job.id);
    const isWritten = async () => {
      await tell(1, 'prove', 40);
      return (await theJob(store, job.id)).speed_bytes === 40;
    };
    await until(isWritten, 10, 'a repeated report is written');
    expect(performance.now() - began).to.be.at.least(5_000);
    expect(await theJob(store, job.id)).to.include({ stage: 'prove', revision: revision + 1 });
  });

  it('answers 410 to an attempt that is counted, to one whose job goes on in another, and to one whose job has ended', async () => {
    const [counted, earlier, cancelled] = [await aJob(), await aJob(), await aJob()];
    await retryJob(store, holder, counted, { counts: 'failure', code: 'timeout', notBefore: 9e15 });
    await retryJob(store, holder, earlier, { counts: 'interruption', code: 'worker_lost', notBefore: 0 });
    expect(await startNext(store)).to.include({ id: earlier.id, attempt: 2 });
    await cancelJob(store, cancelled);
    for (const job of [counted, earlier, cancelled]) {
      const headers = { 'x-sha256': sha256, 'x-ext': 'mp4', 'content-type': 'video/mp4' };
      const answers = [
        await call(0, job, ''),
        await post(0, job, '/progress', { progress: 1, stage: 'fetch', speed_bytes: null, eta_seconds: null }),
        await post(0, job, '/permit', upload),
        await call(0, job, '/object', { method: 'PUT', headers, body: film }),
        await post(0, job, '/verdict', { is: 'interrupted', reason: 'x' }),
      ];
      expect(answers.map(({ status }) => status)).to.deep.equal(Array(5).fill(410));
      expect((await theJob(store, job.id)).verdict).to.equal(null);
    }
  });
});
