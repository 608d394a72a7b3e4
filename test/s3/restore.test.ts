import { join } from 'node:path';
import { expect } from 'chai';
import { isEnded } from '../../src/model/job.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { keys } from '../../src/store/keys.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { runBeside } from '../support/backups.ts';
import { type OperatorServer, startOperatorServer } from '../support/operator-server.ts';
import { runProcedure } from '../support/procedures.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { anAccount, anotherKey, storeOf } from '../support/record.ts';
import { startTestServer, type TestRecord } from '../support/redis.ts';
import { makeRedisUser, refusedCommands } from '../support/redis-rights.ts';
import { startS3, type TestS3 } from '../support/s3.ts';
import { checkLedger, makeService, type Service } from '../support/service.ts';
import { type ServiceLoad, startLoad } from '../support/service-load.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';

describe('a record that is lost wholly, with files in S3', function () {
  this.timeout(600_000);
  const service: Service = makeService({ TRAWL_WORKERS: '1' });
  let s3: TestS3;
  let [lost, empty]: TestRecord[] = [];
  let [films, receiver]: [Source?, Receiver?] = [];
  let server: OperatorServer;
  let url: string;
  before(async () => {
    s3 = await startS3();
    [lost, empty] = await Promise.all([startTestServer(), startTestServer()]);
    [films, receiver] = [await startSource(), await startReceiver()];
    url = await makeRedisUser(lost);
    server = await startOperatorServer({
      STOP_TRAWL: async () => expect(await service.stop()).to.equal(0),
      START_TRAWL: () => service.start(env()),
    });
    await service.start(env());
  });
  after(async () => {
    await service.close();
    for (const one of [server, films, receiver, s3, lost, empty]) await one?.stop();
  });

  const env = () => ({ ...s3.env, TRAWL_DATA: service.data, TRAWL_REDIS_URL: url });
  const run = async (title: string, names: Record<string, string> = {}) => {
    const given = { ...env(), ...server.commands, ...names, BACKUP_DIR: join(service.folder, 'backups') };
    const { code, out, err } = await runProcedure(title, given);
    expect(code, `${out}${err}`).to.equal(0);
    return out;
  };
  const admin = async (...line: string[]) => {
    const { code, out, json } = await runBeside(line, env());
    expect(code, out).to.equal(0);
    return json;
  };

  const readJobs = async (store: RecordStore, ids: readonly string[]) =>
    (await Promise.all(ids.map((id) => readJob(store, id)))).filter((job) => job !== null);
  const beginLoad = () => startLoad({ service, key, receiver: receiver!, film: `${films!.url}/films/clip.mp4` });
  let [key, otherKey, leaked, slug, otherSlug, accountId] = ['', '', '', '', '', ''];
  let load: ServiceLoad;
  /** Jobs that the backup has for sure, and those that it cannot have. */
  let [known, late]: [string[], string[]] = [[], []];

  it('is backed up under load, and each revocation after that is noted in S3', async () => {
    const before = storeOf(lost!.connection);
    ({ accountId, slug } = await anAccount(before, { credits: 1_000 }));
    key = await anotherKey(before, accountId);
    const other = await anAccount(before, { credits: 5 });
    [otherKey, otherSlug] = [await anotherKey(before, other.accountId), other.slug];
    ({ key: leaked } = await admin('key', 'create', slug, '--alias', 'leaked'));
    await admin('user', 'create', slug, '--email', 'gone@example.com', '--role', 'owner');
    load = beginLoad();
    await load.another();
    films!.forget();
    const letGo = films!.hold();
    await until(() => films!.asked.includes('/films/clip.mp4'), 30, 'a download is under way');
    known = [...load.jobs];
    await run('back up the record');
    const taken = load.jobs.length;
    letGo();
    await load.another();
    await admin('key', 'set', slug, 'leaked', '--active', 'no');
    await admin('user', 'remove', slug, 'gone@example.com');
    await admin('account', 'set', otherSlug, '--suspended', 'yes');
    await load.stop();
    expect(load.complaints).to.deep.equal([]);
    late = load.jobs.slice(taken);
    expect(late).not.to.deep.equal([]);
    expect((await s3.list()).objects.filter((name) => name.startsWith('revocations/'))).to.have.length(3);
  });

  it('is restored: jobs that were open run again and are charged once, files of unknown ones stay and are named', async () => {
    const lose = async () => {
      expect(await service.stop()).to.equal(0);
      await lost!.stop();
      lost = undefined;
    };
    const losing = await startOperatorServer({ LOSE: lose });
    url = await makeRedisUser(empty!);
    const said = await run('recover from the loss of Redis', { NEW_REDIS_URL: url, STOP_TRAWL: losing.commands.LOSE! });
    await losing.stop();
    expect(said).to.contain('leaked').and.to.contain('gone@example.com').and.to.contain(otherSlug);
    const store = storeOf(empty!.connection);
    const restored = (await readJobs(store, load.jobs)).map(({ id }) => id);
    expect(restored).to.include.members(known).and.not.to.include.members(late);
    const repeated = () => restored.filter((id) => receiver!.of(id).length > 1);
    const isOver = async () => (await readJobs(store, restored)).every(({ status }) => isEnded(status));
    await until(async () => repeated().length > 0 && (await isOver()), 90, 'jobs that were open end again');
    const ended = await readJobs(store, restored);
    expect(ended.map(({ status }) => status)).to.deep.equal(restored.map(() => 'CompletedJob'));
    await checkLedger(store, accountId, ended);
    for (const id of restored) {
      const marks = receiver!.of(id).map(({ headers }) => headers['x-trawl-replayed']);
      expect(marks, id).to.deep.equal(marks.map((_, n) => (n === 0 ? undefined : 'true')));
    }
    const { objects } = await s3.list();
    for (const id of late) {
      expect(said, 'the list of unknown jobs').to.contain(id);
      expect(objects).to.include(`${id}/1/media.mp4`);
      expect((await service.ask(key, `/v1/jobs/${id}`)).status).to.equal(404);
    }
    expect(await store.connection.read(['ZCARD', keys.strays])).to.equal(load.jobs.length - restored.length);
  });

  it('keeps every revocation, and goes on with the rights that the page names', async () => {
    expect((await service.ask(leaked, '/v1/usage')).status).to.equal(401);
    expect((await service.ask(otherKey, '/v1/usage')).status).to.equal(403);
    expect(await admin('user', 'list', slug)).to.deep.equal([]);
    const again = beginLoad();
    await again.another();
    await again.stop();
    expect(again.complaints).to.deep.equal([]);
    expect(receiver!.of(again.jobs[0]!)[0]?.headers).not.to.have.property('x-trawl-replayed');
    expect((await admin('ledger', 'verify')).ok).to.equal(true);
    expect(await refusedCommands(empty!)).to.deep.equal([]);
  });
});
