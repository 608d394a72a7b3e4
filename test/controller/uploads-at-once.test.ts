import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { makeToken, readToken } from '../../src/controller/attempt-token.ts';
import { makeWorkerGateway } from '../../src/controller/worker-gateway.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { openListener } from '../../src/roles/socket.ts';
import { anAccount, aRunningJob, storeOf, type TestStore } from '../support/record.ts';
import { aFolder, aLog, startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const film = Buffer.alloc(1_000, 'film');
const sha256 = createHash('sha256').update(film).digest('hex');

describe('A worker that sends many files at once', () => {
  const seal = makeSeal({ secret: Buffer.alloc(32, 7), old: null });
  const place = aFolder();
  const { lines, log } = aLog();
  let redis: TestRedis;
  let store: TestStore;
  let objects: FolderStore;
  let gateway: Server;
  let end: () => Promise<void>;

  before(async () => {
    redis = await startTestRedis();
    store = storeOf(redis.connection);
    objects = await openFolder({ folder: place.folder, seal, now: Date.now });
    gateway = makeWorkerGateway({
      ...{ store, objects, log, cookiesOf: async () => null },
      attemptOf: async (token) => readToken(token, seal.verify),
      ...{ maxFileBytes: 1_000, maxAttemptMs: 7_200_000, inspectSeconds: 10 },
    });
    end = await openListener(gateway, { host: '127.0.0.1', port: 0 });
  });
  after(async () => {
    await end();
    await redis.stop();
    place.remove();
  });

  const unfinished = () => readdirSync(join(place.folder, '.uploads'));
  const begin = async (id: string): Promise<ClientRequest> => {
    const headers = {
      authorization: `Bearer ${makeToken({ jobId: id, attempt: 1 }, seal.sign)}`,
      ...{ 'content-type': 'video/mp4', 'content-length': film.length, 'x-sha256': sha256, 'x-ext': 'mp4' },
    };
    const { port } = gateway.address() as AddressInfo;
    const before = unfinished();
    const asked = request({ host: '127.0.0.1', port, method: 'PUT', path: '/v1/attempt/object', headers });
    asked.on('error', () => undefined);
    asked.write(film.subarray(0, 10));
    await until(() => unfinished().some((name) => !before.includes(name)), 10, 'its upload has begun');
    return asked;
  };

  it('keeps the newest of them alone on the disk, which is stored, and no upload of another attempt ends', async () => {
    const caller = await anAccount(store, { credits: 2 });
    const [job, other] = [await aRunningJob(store, caller), await aRunningJob(store, caller)];
    const apart = await begin(other.id);
    const asked: ClientRequest[] = [];
    for (let n = 0; n < 3; n++) asked.push(await begin(job.id));
    await until(() => unfinished().length === 2, 10, 'the newest upload of each attempt is left');
    const lefts = [
      { id: job.id, sent: asked[2]! },
      { id: other.id, sent: apart },
    ];
    for (const { id, sent } of lefts) {
      const answered = once(sent, 'response');
      sent.end(film.subarray(10));
      const [answer] = (await answered) as [IncomingMessage];
      answer.resume();
      expect(answer.statusCode).to.equal(200);
      expect(await objects.see(`${id}/1/media.mp4`)).to.deep.equal({ bytes: film.length, checksum: sha256 });
    }
    expect(lines).to.deep.equal([]);
  });
});
