import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { makeWorkerGateway } from '../../src/controller/worker-gateway.ts';
import type { ObjectStore } from '../../src/objects/object-store.ts';
import { openS3 } from '../../src/objects/s3-store.ts';
import { openListener } from '../../src/roles/socket.ts';
import { anAccount, aRunningJob, storeOf } from '../support/record.ts';
import { aLog, startTestRedis } from '../support/redis.ts';
import { credentials, startS3, type TestS3 } from '../support/s3.ts';

describe('a bucket that cannot be used', () => {
  let s3: TestS3;
  before(async () => {
    s3 = await startS3();
  });
  after(() => s3.stop());

  const open = (): ObjectStore =>
    openS3({ settings: s3.settings, partBytes: 5 * 1024 ** 2, throughEgress: async () => false });

  it('throws unavailable when S3 does not answer for 10 s', async () => {
    const thaw = await s3.freeze();
    const error = await open()
      .see('job/1/media.mp4')
      .catch((error) => error);
    thaw();
    expect([error.code, error.cause.message]).to.deep.equal(['unavailable', 'S3 did not answer in time']);
  });

  it('is told to the operator with the job and the answer of S3, once a minute, while workers ask again and again for an upload', async () => {
    const redis = await startTestRedis();
    const store = storeOf(redis.connection);
    const { log, lines } = aLog();
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    process.env.AWS_SECRET_ACCESS_KEY = 'wrong';
    const gateway = makeWorkerGateway({
      ...{ store, objects: open(), log, maxFileBytes: 1_000, maxAttemptMs: 1_000, inspectSeconds: 1 },
      attemptOf: async () => ({ jobId: job.id, attempt: 1 }),
      cookiesOf: async () => null,
    });
    const close = await openListener(gateway, { host: '127.0.0.1', port: 0 });
    try {
      const sha256 = '0'.repeat(64);
      const upload = { bytes: 6, sha256, content_type: 'video/mp4', ext: 'mp4', parts: [sha256] };
      const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}/v1/attempt/permit`;
      const ask = { method: 'POST', headers: { authorization: 'Bearer x' }, body: JSON.stringify(upload) };
      for (let n = 0; n < 3; n++) expect((await fetch(url, ask)).status).to.equal(503);
      const warned = lines.map((line) => JSON.parse(line));
      expect(warned.map(({ level, job: id, attempt }) => ({ level, id, attempt }))).to.deep.equal([
        { level: 'warn', id: job.id, attempt: 1 },
      ]);
      expect(JSON.stringify(warned)).to.include('S3 answered SignatureDoesNotMatch (403)');
    } finally {
      Object.assign(process.env, credentials);
      await close();
      await redis.stop();
    }
  });

  it('shows neither key nor signature when S3 refuses a request', async () => {
    process.env.AWS_SECRET_ACCESS_KEY = 'wrong';
    const wrong = open();
    const error = await wrong.remove('job/').catch((error) => error);
    Object.assign(process.env, credentials);
    expect([error.code, error.cause.message]).to.deep.equal(['unavailable', 'S3 answered SignatureDoesNotMatch (403)']);
    const seen = JSON.stringify(error, Object.getOwnPropertyNames(error)) + JSON.stringify(error.cause);
    expect(seen).not.to.match(/AKIA|Signature=|StringToSign/);
  });
});
