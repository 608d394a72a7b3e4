import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { makeToken, readToken } from '../../src/controller/attempt-token.ts';
import { makeWorkerGateway } from '../../src/controller/worker-gateway.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { openListener } from '../../src/roles/socket.ts';
import { anAccount, aRunningJob, storeOf, type TestStore } from '../support/record.ts';
import { aFolder, aLog, startTestRedis, type TestRedis } from '../support/redis.ts';

const film = Buffer.from('a film');
const sha256 = createHash('sha256').update(film).digest('hex');

describe('The worker gateway before a slow disk', () => {
  const seal = makeSeal({ secret: Buffer.alloc(32, 7), old: null });
  const place = aFolder();
  /** Until this has happened, the disk has not taken the file. */
  const isTaken = Promise.withResolvers<void>();
  let redis: TestRedis;
  let store: TestStore;
  let objects: FolderStore;
  let gateway: Server;
  let end: () => Promise<void>;

  before(async () => {
    redis = await startTestRedis();
    store = storeOf(redis.connection);
    objects = await openFolder({ folder: place.folder, seal, now: Date.now });
    const receive: FolderStore['receive'] = async (...sent) => {
      await isTaken.promise;
      return objects.receive(...sent);
    };
    gateway = makeWorkerGateway({
      ...{ store, objects: { ...objects, receive }, attemptOf: async (token) => readToken(token, seal.verify) },
      ...{ cookiesOf: async () => null, log: aLog().log, aliveMs: 10 },
      ...{ maxFileBytes: 1_000, maxAttemptMs: 7_200_000, inspectSeconds: 10 },
    });
    end = await openListener(gateway, { host: '127.0.0.1', port: 0 });
  });
  after(async () => {
    await end();
    await redis.stop();
    place.remove();
  });

  it('gives signs of life to a worker whose file is not stored yet, and then its answer', async () => {
    const { id } = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const headers = {
      authorization: `Bearer ${makeToken({ jobId: id, attempt: 1 }, seal.sign)}`,
      ...{ 'content-type': 'video/mp4', 'content-length': film.length, 'x-sha256': sha256, 'x-ext': 'mp4' },
    };
    const { port } = gateway.address() as AddressInfo;
    const asked = request({ host: '127.0.0.1', port, method: 'PUT', path: '/v1/attempt/object', headers });
    const answered = once(asked, 'response');
    asked.end(film);
    const [sign] = await once(asked, 'information');
    expect(sign).to.have.property('statusCode', 102);
    isTaken.resolve();
    const [answer] = await answered;
    answer.resume();
    expect(answer).to.have.property('statusCode', 200);
    expect(await objects.see(`${id}/1/media.mp4`)).to.deep.equal({ bytes: film.length, checksum: sha256 });
  });

  it('lets a file take as long as the disk needs, where Node would cut it off after 300 s, and the head of a request 60 s', () => {
    expect(gateway).to.include({ requestTimeout: 0, headersTimeout: 60_000 });
  });
});
