import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { isEnded } from '../../src/model/job.ts';
import { goneMs } from '../../src/model/record-layout.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { keys } from '../../src/store/keys.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { layouts } from '../../src/store/schema.ts';
import type { Json } from '../support/json.ts';
import { makeNextRelease, next } from '../support/next-release.ts';
import { type CommandResult, runProgram } from '../support/operator.ts';
import { startOperatorServer } from '../support/operator-server.ts';
import { runProcedure } from '../support/procedures.ts';
import { anAccount, anotherKey, storeOf, type TestStore } from '../support/record.ts';
import { aFolder, startTestServer, type TestRecord } from '../support/redis.ts';
import { type RoleProcess, startRole } from '../support/role-process.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { root } from '../support/tree.ts';
import { until } from '../support/until.ts';
import { type RunningUp, spawnUp, startUp } from '../support/up.ts';

type Part = 'up' | 'api';
type Release = 'this' | 'next';

/** Every change of one part from one release to the other, beside either release of the other part. */
const walk: readonly (readonly [Part, Release, NodeJS.Signals])[] = [
  ['api', 'next', 'SIGTERM'],
  ['up', 'next', 'SIGTERM'],
  ['api', 'this', 'SIGKILL'],
  ['up', 'this', 'SIGKILL'],
  ['up', 'next', 'SIGKILL'],
  ['api', 'next', 'SIGKILL'],
  ['up', 'this', 'SIGTERM'],
  ['api', 'this', 'SIGTERM'],
];

describe('an upgrade to a release with another layout, and back', function () {
  this.timeout(600_000);
  const { folder, remove } = aFolder();
  const trees = { this: root, next: join(folder, 'next') } as const;
  const clock = join(folder, 'clock');
  let redis: TestRecord;
  let source: Source;
  let up: RunningUp | undefined;
  let api: RoleProcess | undefined;
  let env: Record<string, string>;
  let store: TestStore;
  let account: Awaited<ReturnType<typeof anAccount>>;
  let key: string;
  const ids: string[] = [];

  before(async () => {
    makeNextRelease(trees.next);
    redis = await startTestServer();
    // What is tested outlives no power failure: a busy disk would only delay it.
    await redis.connection.send(['CONFIG', 'SET', 'appendfsync', 'no']);
    source = await startSource();
    store = storeOf(redis.connection);
    account = await anAccount(store, { credits: 100 });
    key = await anotherKey(store, account.accountId);
    writeFileSync(clock, '0');
    env = {
      TRAWL_REDIS_URL: redis.url,
      TRAWL_SECRET: randomBytes(32).toString('base64'),
      TRAWL_DURABILITY: 'relaxed',
      TRAWL_CLOCK_FILE: clock,
      TRAWL_WORKERS: '2',
      TRAWL_EGRESS_ALLOW: '127.0.0.1:*',
    };
  });
  after(async () => {
    up?.process.kill('SIGKILL');
    api?.process.kill('SIGKILL');
    await Promise.all([up?.ended, api?.ended]);
    await source.stop();
    await redis.stop();
    remove();
  });

  const start = async (part: Part, release: Release) => {
    const tree = trees[release];
    if (part === 'up') {
      up = await patiently(() => startUp({ ...env, TRAWL_DATA: join(folder, 'data') }, tree));
      return;
    }
    const apart = {
      ...{ TRAWL_PUBLIC_URL: 'http://127.0.0.1:1', TRAWL_INSPECTOR_ADDRESS: 'http://127.0.0.1:1', TRAWL_OBJECTS: 's3' },
      ...{ TRAWL_S3_BUCKET: 'none', TRAWL_S3_ENDPOINT: 'http://127.0.0.1:1', TRAWL_S3_REGION: 'none' },
      ...{ AWS_ACCESS_KEY_ID: 'none', AWS_SECRET_ACCESS_KEY: 'none' },
    };
    api = await patiently(() => startRole('api', { ...env, ...apart }, tree));
  };
  const stop = async (part: Part, signal: NodeJS.Signals) => {
    const running = part === 'up' ? up : api;
    running?.process.kill(signal);
    await running?.ended;
  };
  const ask = async (at: Part, key: string, path: string): Promise<{ status: number; json: Json }> => {
    const url = (at === 'up' ? up : api)?.url;
    const answer = await fetch(url + path, { headers: { 'x-api-key': key } });
    return { status: answer.status, json: (await answer.json()) as Json };
  };
  const submit = async (at: Part, key: string, path: string): Promise<string> => {
    const { status, json } = await ask(at, key, path);
    expect(status, JSON.stringify(json)).to.equal(202);
    return json.job_id;
  };
  const admin = async (release: Release, ...line: string[]) => {
    const { code, out, err } = await runProgram(join(trees[release], 'trawl'), ['admin', ...line, '--json'], env);
    return { code, err, json: JSON.parse(out) as Json };
  };
  /** Runs a procedure whose commands are these works. */
  const operate = async (
    works: Record<string, () => Promise<unknown>>,
    run: (names: Record<string, string>) => Promise<CommandResult>,
  ) => {
    const server = await startOperatorServer(works);
    const { code, out, err } = await run({ ...env, ...server.commands });
    await server.stop();
    expect(code, `${out}${err}`).to.equal(0);
    expect(out).to.match(/^The record has layout \d+\./m);
  };
  const film = () => `/v1/video/download?query=${source.url}/held/clip.mp4`;
  const metadata = () => `/v1/media/metadata?is_async=true&query=${source.url}/films/clip.mp4`;
  const completes = async (id: string) => {
    for (const part of ['up', 'api'] as const) {
      const ended = async () => {
        const { json } = await ask(part, key, `/v1/jobs/${id}`);
        return isEnded(json.status) && json;
      };
      const json: Json = await until(ended, 60, `${part} shows the end of ${id}`);
      expect([json.status, json.error]).to.deep.equal(['CompletedJob', null]);
    }
  };

  it('loses nothing and charges each job once, in every order of restarts, until the record is sealed', async () => {
    const { accountId } = account;
    await start('up', 'this');
    await start('api', 'this');
    for (const [part, release, signal] of walk) {
      source.forget();
      const letGo = source.hold();
      ids.push(await submit('api', key, film()), await submit('up', key, metadata()));
      await until(() => source.asked.includes('/held/clip.mp4'), 60, 'a download is under way');
      // The last step takes the service back to this release.
      const restart = async () => {
        await stop(part, signal);
        await start(part, release);
      };
      if (ids.length < 2 * walk.length) await restart();
      else await operate({ ROLL_BACK_TRAWL: restart }, (names) => runProcedure('roll back', names));
      letGo();
      for (const id of ids.slice(-2)) await completes(id);
    }
    expect((await readSnapshot(store, accountId)).balances.held).to.equal(0);
    expect((await verifyLedger(store, accountId)).problems).to.deep.equal([]);
    const charges = (await readLedger(store, accountId, 1_000)).filter(({ kind }) => kind === 'charge');
    expect(charges.map(({ job }) => job).toSorted()).to.deep.equal(ids.toSorted());
    const before = await admin('this', 'record', 'status');
    expect(before.json).to.include({ layout: layouts.own, sealed: true, seals_at: null });
    const seen = before.json.releases.map(({ release }: { release: string }) => release).toSorted();
    expect(seen).to.deep.equal([layouts.release, next.release].toSorted());
  });

  it('refuses the older release with a sentence once the record is sealed, and goes on with the newer one', async () => {
    const upgrade = async () => {
      await stop('up', 'SIGTERM');
      await start('up', 'next');
    };
    await operate({ UPGRADE_TRAWL: upgrade }, (names) => runProcedure('upgrade', names));
    const early = await admin('next', 'record', 'seal');
    expect([early.code, early.json.code]).to.deep.equal([1, 'in_use']);
    expect(early.json.error).to.include(`An older release runs or ran within the last minute: ${layouts.release}.`);
    await stop('api', 'SIGTERM');
    await start('api', 'next');
    writeFileSync(clock, String(goneMs / 1_000));
    const sealed = await admin('next', 'record', 'seal');
    expect(sealed.json).to.include({ layout: next.layout, least_release: next.release, sealed: true });
    const { json: changes } = await admin('next', 'audit');
    expect(changes[0]).to.deep.include({ action: 'record.seal', change: { layout: next.layout } });

    const sentence = `The record has layout ${next.layout}, which trawl ${next.release} or newer reads, and this is trawl ${layouts.release} (layout ${layouts.own}): start the newer release again, or restore a backup that was taken before`;
    expect(await admin('this', 'ledger', 'verify')).to.deep.include({
      code: 1,
      json: { error: sentence, code: 'unavailable' },
    });
    const older = spawnUp({ ...env, TRAWL_DATA: join(folder, 'older') });
    expect(await older.ended).to.equal(1);
    expect(older.output()).to.include(sentence);

    expect(await readJob(store, ids[0]!)).to.include({ status: 'CompletedJob' });
    for (const id of ids) await completes(id);
    const late: string[] = [];
    const isOfNext = async () => {
      const id = await submit('api', key, metadata());
      late.push(id);
      await completes(id);
      const [stored] = await redis.connection.readBytes([keys.endedJob(id)]);
      return stored?.includes('\n\x07[') === true;
    };
    await until(isOfNext, 30, 'a job ends in the next layout');
    const { json: books } = await admin('next', 'ledger', 'verify', account.slug);
    expect(books).to.deep.include({ ok: true, problems: [] });
    expect((await ask('api', key, '/v1/usage')).json).to.deep.include({
      held: 0,
      remaining: 100 - ids.length - late.length,
    });
  });
});

/** Starts a part again that found Redis too slow, as Kubernetes does: other programs use the processors, too. */
function patiently<T>(begin: () => Promise<T>): Promise<T> {
  const unlessSlow = (error: Error) => {
    if (!error.message.includes('No answer within')) throw error;
    return null;
  };
  return until(() => begin().catch(unlessSlow), 60, 'the part starts') as Promise<T>;
}
