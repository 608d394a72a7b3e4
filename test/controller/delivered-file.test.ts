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

describe('a delivered file that cannot be confirmed', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());

  const aDelivery = async () => {
    const job = await aRunningJob(
      storeOf(redis.connection),
      await anAccount(storeOf(redis.connection), { credits: 1 }),
    );
    const delivered = { ...someDelivered(1), key: `${job.id}/1/media.mp4` };
    return { job, end: { [`${job.id}-1`]: { is: 'done', metadata: someMetadata, delivered } } } as const;
  };
  const isStoring = async (id: string) => (await theJob(storeOf(redis.connection), id)).storing_since !== null;

  it('waits for the object store beyond the deadline of its attempt, where its own call fails alone', async () => {
    const { job, end } = await aDelivery();
    const see = async (key: string) => {
      if (key.startsWith(job.id)) throw new Error('the answer was cut off');
      return null;
    };
    await advanceWith(storeOf(redis.connection), aRunner(end), { objects: { see } })(job.id);
    expect(await isStoring(job.id)).to.equal(true);
  });

  it('waits so without a call of its own, too, while the object store is away', async () => {
    const [one, other] = [await aDelivery(), await aDelivery()];
    const asked: string[] = [];
    const see = async (key: string) => {
      asked.push(key);
      throw new Error('the store is away');
    };
    const runner = aRunner({ ...one.end, ...other.end });
    const advance = advanceWith(storeOf(redis.connection), runner, { objects: { see } });
    await advance(one.job.id);
    await advance(other.job.id);
    expect(asked).not.to.include(`${other.job.id}/1/media.mp4`);
    expect(await isStoring(other.job.id)).to.equal(true);
  });
});
