import { hash } from 'node:crypto';
import { expect } from 'chai';
import { openS3 } from '../../src/objects/s3-store.ts';
import type { Runner } from '../../src/runners/runner.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { advanceWith } from '../support/advance.ts';
import { jobLimits } from '../support/job-limits.ts';
import { someMetadata } from '../support/jobs.ts';
import { anAccount, aRunningJob, storeOf, type TestStore, theJob } from '../support/record.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { startS3, type TestS3 } from '../support/s3.ts';
import { type S3Proxy, startS3Proxy } from '../support/s3-proxy.ts';

const film = 'The bytes of a film';
const limits = { ...jobLimits, maxAttempts: 1 };

describe('a job whose worker has uploaded every part', () => {
  let s3: TestS3;
  let redis: TestRedis;
  let store: TestStore;
  let front: S3Proxy;

  before(async () => {
    s3 = await startS3();
    front = await startS3Proxy(s3.settings.s3Endpoint);
    redis = await startTestRedis({ fsync: 'always' });
    store = storeOf(redis.connection);
  });
  after(async () => {
    await redis.stop();
    await front.stop();
    await s3.stop();
  });

  /** A controller that starts anew and knows no more than the record and the bucket. */
  const open = (settings = s3.settings) => openS3({ settings, partBytes: 100, throughEgress: async () => false });

  async function aJobWith(body: string, settings = s3.settings) {
    const account = await anAccount(store, { credits: 1 });
    const job = await aRunningJob(store, account);
    const key = `${job.id}/1/media.mp4`;
    const sha256 = hash('sha256', film);
    const delivered = { key, bytes: film.length, sha256, content_type: 'video/mp4' };
    const of = hash('sha256', body);
    const permit = await open().permit(key, { ...delivered, sha256: of, bytes: body.length, parts: [of] });
    const [part] = permit.is === 'parts' ? permit.parts : [];
    const put = await fetch(part!.url, { method: 'PUT', headers: part!.headers, body });
    expect(put.status).to.equal(200);
    let hasEnded = false;
    const runner: Runner = {
      start: async () => {},
      stop: async () => {},
      see: async () =>
        hasEnded ? { is: 'ended', outcome: { is: 'done', metadata: someMetadata, delivered } } : { is: 'running' },
      watch: () => () => {},
      list: async () => [],
      close: async () => [],
    };
    const apply = () => advanceWith(store, runner, { limits, objects: open(settings) })(job.id);
    await apply();
    hasEnded = true;
    return { account, job, key, apply };
  }

  it('D75: waits while S3 is away, and is completed and charged once by a newly started controller', async () => {
    const { account, job, key, apply } = await aJobWith(film);
    const restore = await s3.lose();
    await apply();
    expect(await theJob(store, job.id))
      .to.include({ status: 'Running' })
      .and.have.property('storing_since')
      .that.is.a('number');
    await restore();
    expect(await s3.list()).to.deep.equal({ objects: [], uploads: [key] });
    for (let round = 0; round < 2; round++) await apply();
    expect(await theJob(store, job.id)).to.include({ status: 'CompletedJob' });
    expect(await s3.list()).to.deep.equal({ objects: [key], uploads: [] });
    expect((await readSnapshot(store, account.accountId)).balances).to.include({ held: 0, credits_consumed: 1 });
    expect(await verifyLedger(store, account.accountId)).to.deep.include({ problems: [] });
    await open().remove(`${job.id}/`);
  });

  for (const [what, begin, end] of [
    [
      'answers the join of its parts with 200 and an error',
      () => front.failJoins('InternalError', 200),
      () => front.failJoins(null),
    ],
    ['shows the joined object late', () => front.hideObjects(1), () => {}],
  ] as const)
    it(`waits while S3 ${what}, and is then completed by the same attempt and charged once`, async () => {
      const through = { ...s3.settings, s3Endpoint: `http://127.0.0.1:${front.port}` };
      const { account, job, key, apply } = await aJobWith(film, through);
      begin();
      await apply();
      const { status, storing_since } = await theJob(store, job.id);
      expect([status, storing_since === null]).to.deep.equal(['Running', false]);
      end();
      await apply();
      expect(await theJob(store, job.id)).to.include({ status: 'CompletedJob', attempt: 1, failures: 0 });
      expect(await s3.list()).to.deep.equal({ objects: [key], uploads: [] });
      expect((await readSnapshot(store, account.accountId)).balances).to.include({ held: 0, credits_consumed: 1 });
      await open().remove(`${job.id}/`);
    });

  it('waits for up to a minute, also after a change of the leader, while S3 does not show the joined object', async () => {
    const through = { ...s3.settings, s3Endpoint: `http://127.0.0.1:${front.port}` };
    const { job, apply } = await aJobWith(film, through);
    front.hideObjects(3);
    for (let round = 0; round < 3; round++) await apply();
    expect(await theJob(store, job.id)).to.include({ status: 'Running', attempt: 1 });
    await apply();
    expect(await theJob(store, job.id)).to.include({ status: 'CompletedJob', attempt: 1, failures: 0 });
    await open().remove(`${job.id}/`);
    const gone = await aJobWith(film, through);
    front.hideObjects(2);
    await gone.apply();
    store.advance(61_000);
    await gone.apply();
    expect(await theJob(store, gone.job.id)).to.include({ status: 'Error', error_code: 'worker_failed' });
    await open().remove(`${gone.job.id}/`);
  });

  it('is not charged when the parts do not fit the checksum of its file, and the parts are removed', async () => {
    const { job, apply } = await aJobWith('Some other bytes');
    for (let round = 0; round < 2; round++) await apply();
    expect(await theJob(store, job.id)).to.include({ status: 'Error', error_code: 'worker_failed' });
    expect(await s3.list()).to.deep.equal({ objects: [], uploads: [] });
  });
});
