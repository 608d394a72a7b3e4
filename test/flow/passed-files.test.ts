import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { holdRelease } from '../../src/store/release-lease.ts';
import { advanceWith, aRunner } from '../support/advance.ts';
import { anotherKey } from '../support/api.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';
import { type CountedProcess, countHere, countIn, listPassedFiles } from '../support/passed-files.ts';
import { anAccount, aRunningJob, storeOf, theJob } from '../support/record.ts';
import { aLog, startTestServer, type TestRecord } from '../support/redis.ts';
import { type RoleProcess, startRole } from '../support/role-process.ts';

const away = 'http://127.0.0.1:9';
/** Files of `src` whose functions run; a reader who follows a call opens as many. */
const most = { admission: 23, settle: 31 };

describe('files that a call passes', function () {
  this.timeout(120_000);
  let redis: TestRecord;
  let api: RoleProcess | undefined;
  let counted: CountedProcess | undefined;
  before(async () => {
    redis = await startTestServer();
  });
  afterEach(() => counted?.close());
  after(async () => {
    await api?.end('SIGTERM');
    await redis.stop();
  });

  it(`one admission passes at most ${most.admission}`, async () => {
    api = await startRole('api', {
      ...{ TRAWL_REDIS_URL: redis.url, TRAWL_SECRET: randomBytes(32).toString('base64') },
      ...{ TRAWL_PUBLIC_URL: 'http://trawl.test', TRAWL_INSPECTOR_ADDRESS: away, TRAWL_OBJECTS: 's3' },
      ...{ TRAWL_S3_BUCKET: 'none', TRAWL_S3_ENDPOINT: away, TRAWL_S3_REGION: 'none', TRAWL_DURABILITY: 'relaxed' },
      // Compiled code that was kept before has no counters.
      ...{ NODE_OPTIONS: '--inspect=127.0.0.1:0', NODE_DISABLE_COMPILE_CACHE: '1' },
    });
    const { url, output } = api;
    const store = storeOf(redis.connection);
    const key = await anotherKey(store, (await anAccount(store, { credits: 100 })).accountId);
    counted = await countIn(output);
    const files = await listPassedFiles(counted, async () => {
      const asked = `${url}/v1/video/download?query=https://example.com/film.mp4`;
      const answer = await fetch(asked, { headers: { 'x-api-key': key } });
      expect(answer.status, await answer.text()).to.equal(202);
    });
    expect(files).to.include.members(['src/api/app.ts', 'src/store/access/admit-call.ts']);
    expect(files.length, files.join('\n')).to.be.at.most(most.admission);
  });

  it(`the settle of a completed job passes at most ${most.settle}`, async () => {
    const kept = storeOf(redis.connection);
    const release = await holdRelease(kept, aLog().log);
    const store = { ...kept, release };
    const caller = await anAccount(store, { credits: 100 });
    const jobs = await Promise.all(Array.from({ length: 6 }, () => aRunningJob(store, caller)));
    const delivered = jobs.map(({ id }) => ({ ...someDelivered(1), key: `${id}/1/media.mp4` }));
    const outcomes = delivered.map((file, n) => {
      return [`${jobs[n]!.id}-1`, { is: 'done', metadata: someMetadata, delivered: file }] as const;
    });
    const see = async () => ({ bytes: delivered[0]!.bytes, checksum: delivered[0]!.sha256 });
    const objects = { finish: async () => {}, see, remove: async () => {} };
    const advance = advanceWith(store, aRunner(Object.fromEntries(outcomes)), { objects });
    const left = jobs.values();
    counted = await countHere();
    const files = await listPassedFiles(counted, () => advance(left.next().value!.id));
    await release.close();
    for (const { id } of jobs) expect((await theJob(store, id)).status).to.equal('CompletedJob');
    expect(files).to.include('src/store/jobs/settle-job.ts');
    expect(files.length, files.join('\n')).to.be.at.most(most.settle);
  });
});
