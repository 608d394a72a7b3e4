import { hash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { makeWorkerGateway } from '../../src/controller/worker-gateway.ts';
import type { UploadPermit } from '../../src/model/attempt-protocol.ts';
import { openS3 } from '../../src/objects/s3-store.ts';
import { openListener } from '../../src/roles/socket.ts';
import { holdRestoreLease } from '../../src/store/backup/restore-lease.ts';
import { anAccount, aRunningJob, storeOf, type TestStore } from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';
import { startS3, type TestS3 } from '../support/s3.ts';

describe('The upload of an attempt to S3', () => {
  let s3: TestS3;
  let redis: TestRedis;
  let store: TestStore;
  before(async () => {
    s3 = await startS3();
    redis = await startTestRedis();
    store = storeOf(redis.connection);
  });
  after(async () => {
    await redis.stop();
    await s3.stop();
  });

  /** Opens a gateway for the worker of a new job, and returns how that worker asks for a permit. */
  const openGateway = async () => {
    const { id } = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const objects = openS3({ settings: s3.settings, partBytes: 100, throughEgress: async () => false });
    const gateway = makeWorkerGateway({
      ...{ store, objects, attemptOf: async () => ({ jobId: id, attempt: 1 }), cookiesOf: async () => null },
      ...{ maxFileBytes: 1_000, maxAttemptMs: 60_000, inspectSeconds: 10, log: aLog().log },
    });
    const close = await openListener(gateway, { host: '127.0.0.1', port: 0 });
    const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}/v1/attempt/permit`;
    const permit = (film: string, bytes = film.length) => {
      const sha256 = hash('sha256', film);
      const body = JSON.stringify({ bytes, sha256, content_type: 'video/mp4', ext: 'mp4', parts: [sha256] });
      return fetch(url, { method: 'POST', body, headers: { authorization: 'Bearer one' } });
    };
    return { id, objects, permit, close };
  };

  it('is one, however many permits its worker asks for at once', async () => {
    const { id, permit, close } = await openGateway();
    try {
      const films = Array.from({ length: 10 }, (_, n) => `film ${n}`);
      const refused = permit('a film of more parts', 200);
      const answers = await Promise.all(films.map((film) => permit(film)));
      expect(answers.map(({ status }) => status)).to.deep.equal(films.map(() => 200));
      expect((await refused).status).to.equal(400);
      expect((await s3.list()).uploads).to.deep.equal([`${id}/1/media.mp4`]);
    } finally {
      await close();
    }
  });

  it('is replaced by that of the same attempt when its record was restored, since that makes another file', async () => {
    const { objects, permit, close } = await openGateway();
    const permitted = async (film: string) => (await (await permit(film)).json()) as UploadPermit;
    try {
      const lost = 'The film of the lost record';
      const [old] = (await permitted(lost)).parts ?? [];
      const putOld = async () => (await fetch(old!.url, { method: 'PUT', headers: old!.headers, body: lost })).status;
      expect(await putOld()).to.equal(200);
      const lease = await holdRestoreLease(store);
      await lease.open(store.clock.now());
      await lease.end();
      const film = 'The film of the restored one';
      const { key, parts } = await permitted(film);
      const [part] = parts ?? [];
      expect((await fetch(part!.url, { method: 'PUT', headers: part!.headers, body: film })).status).to.equal(200);
      expect(await putOld()).to.equal(404);
      await objects.finish(key);
      expect(await objects.see(key)).to.deep.equal({ bytes: film.length, checksum: hash('sha256', film) });
    } finally {
      await close();
    }
  });
});
