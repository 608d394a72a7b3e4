import { hash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { makeWorkerGateway } from '../../src/controller/worker-gateway.ts';
import { openS3 } from '../../src/objects/s3-store.ts';
import { openListener } from '../../src/roles/socket.ts';
import { anAccount, aRunningJob, storeOf, type TestStore } from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';
import { startS3, type TestS3 } from '../support/s3.ts';

describe('A worker that asks for many permits at once', () => {
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

  it('has one upload, so that an attempt cannot keep any number of them in S3', async () => {
    const { id } = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const gateway = makeWorkerGateway({
      objects: openS3({ settings: s3.settings, partBytes: 100, throughEgress: async () => false }),
      ...{ store, attemptOf: async () => ({ jobId: id, attempt: 1 }), cookiesOf: async () => null },
      ...{ maxFileBytes: 1_000, maxAttemptMs: 60_000, inspectSeconds: 10, log: aLog().log },
    });
    const close = await openListener(gateway, { host: '127.0.0.1', port: 0 });
    const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}/v1/attempt/permit`;
    const permit = async (film: string, bytes = film.length) => {
      const sha256 = hash('sha256', film);
      const body = JSON.stringify({ bytes, sha256, content_type: 'video/mp4', ext: 'mp4', parts: [sha256] });
      return (await fetch(url, { method: 'POST', body, headers: { authorization: 'Bearer one' } })).status;
    };
    try {
      const films = Array.from({ length: 10 }, (_, n) => `film ${n}`);
      const refused = permit('a film of more parts', 200);
      expect(await Promise.all(films.map((film) => permit(film)))).to.deep.equal(films.map(() => 200));
      expect(await refused).to.equal(400);
      expect((await s3.list()).uploads).to.deep.equal([`${id}/1/media.mp4`]);
    } finally {
      await close();
    }
  });
});
