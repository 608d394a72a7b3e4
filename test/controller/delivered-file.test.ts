import { expect } from 'chai';
import { advanceWith, aRunner } from '../support/advance.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';
import { anAccount, aRunningJob, storeOf, theJob } from '../support/record.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';

describe('a file that the object store has otherwise than its worker has told', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());

  const { bytes, sha256 } = someDelivered(1);
  const others = [
    { bytes, checksum: '0'.repeat(64) },
    { bytes, checksum: null },
    { bytes: bytes - 1, checksum: sha256 },
  ];
  for (const found of others) {
    it(`is not charged and is removed, and its attempt has failed: ${JSON.stringify(found)}`, async () => {
      const store = storeOf(redis.connection);
      const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
      const delivered = { ...someDelivered(1), key: `${job.id}/1/media.mp4` };
      const runner = aRunner({ [`${job.id}-1`]: { is: 'done', metadata: someMetadata, delivered } });
      const removed: string[] = [];
      const objects = { see: async () => found, remove: async (prefix: string) => void removed.push(prefix) };
      await advanceWith(store, runner, { objects })(job.id);
      expect(await theJob(store, job.id)).to.include({ status: 'Running', failures: 1, delivered: null });
      expect(removed).to.deep.equal([`${job.id}/1/`]);
    });
  }
});
