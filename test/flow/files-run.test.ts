import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import type { Runner } from '../../src/runners/runner.ts';
import { holdRelease } from '../../src/store/release-lease.ts';
import { advanceWith, aRunner } from '../support/advance.ts';
import { type CountedProcess, countHere, countIn, listFilesRun } from '../support/files-run.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';
import { anAccount, anotherKey, aRunningJob, storeOf, theJob } from '../support/record.ts';
import { aLog, startTestServer, type TestRecord } from '../support/redis.ts';
import { type RoleProcess, startRole } from '../support/role-process.ts';

const away = 'http://127.0.0.1:9';
/** A reader who follows a call opens as many files. */
const maxFiles = { admission: 18, settle: 30 };
/** The line of the request log is written after the answer, so a busy machine may count it and a quiet one may not. */
const afterAnswer = 'src/store/log/write-lines.ts';

describe('the files of src whose functions run', () => {
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

  it(`are at most ${maxFiles.admission} for an admission`, async () => {
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
    const run = async () => {
      const asked = `${url}/v1/video/download?query=https://example.com/film.mp4`;
      const answer = await fetch(asked, { headers: { 'x-api-key': key } });
      expect(answer.status, await answer.text()).to.equal(202);
    };
    const files = await listFilesRun(counted, maxFiles.admission, { run });
    const before = files.filter((path) => path !== afterAnswer);
    expect(before).to.include.members(['src/api/app.ts', 'src/store/access/admit-call.ts']);
    expect(before.length, before.join('\n')).to.be.at.most(maxFiles.admission);
  });

  it(`are at most ${maxFiles.settle} for the settle of a completed job`, async () => {
    const kept = storeOf(redis.connection);
    const release = await holdRelease(kept, aLog().log);
    const store = { ...kept, release };
    const caller = await anAccount(store, { credits: 100 });
    const file = someDelivered(1);
    const see = async () => ({ bytes: file.bytes, checksum: file.sha256 });
    const objects = { finish: async () => false, see, remove: async () => {} };
    let id = '';
    let played = aRunner({});
    const runner: Runner = {
      ...played,
      see: (name) => played.see(name),
      stop: (name) => played.stop(name),
      list: (jobId) => played.list(jobId),
    };
    const advance = advanceWith(store, runner, { objects });
    const ended: string[] = [];
    const prepare = async () => {
      ({ id } = await aRunningJob(store, caller));
      ended.push(id);
      const delivered = { ...file, key: `${id}/1/media.mp4` };
      played = aRunner({ [`${id}-1`]: { is: 'done', metadata: someMetadata, delivered } });
    };
    counted = await countHere();
    const files = await listFilesRun(counted, maxFiles.settle, { prepare, run: () => advance(id) });
    await release.close();
    for (const one of ended) expect((await theJob(store, one)).status).to.equal('CompletedJob');
    expect(files).to.include('src/store/jobs/settle-job.ts');
    expect(files.length, files.join('\n')).to.be.at.most(maxFiles.settle);
  });
});
