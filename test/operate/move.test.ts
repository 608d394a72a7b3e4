import { cpSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Json } from '../support/json.ts';
import { type OperatorServer, startOperatorServer } from '../support/operator-server.ts';
import { runProcedure } from '../support/procedures.ts';
import { anAccount, anotherKey, storeOf } from '../support/record.ts';
import { startTestServer, type TestRecord } from '../support/redis.ts';
import { makeService, type Service } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';

describe('docs/operate.md', () => {
  const service: Service = makeService({ TRAWL_WORKERS: '1' });
  const [objects, elsewhere] = [join(service.data, 'objects'), join(service.folder, 'elsewhere')];
  let redis: TestRecord[] = [];
  let present: TestRecord;
  let films: Source;
  let server: OperatorServer;
  let key: string;
  before(async () => {
    films = await startSource();
    redis = await Promise.all([startTestServer(), startTestServer(), startTestServer()]);
    present = redis[0]!;
    server = await startOperatorServer({
      STOP_TRAWL: async () => expect(await service.stop()).to.equal(0),
      START_TRAWL: start,
      COPY_OBJECTS: async () => cpSync(objects, elsewhere, { recursive: true }),
      USE_NEW_BUCKET: async () => {
        rmSync(objects, { recursive: true, force: true });
        mkdirSync(elsewhere, { recursive: true });
        symlinkSync(elsewhere, objects);
      },
    });
    await start();
    const store = storeOf(present.connection);
    const { accountId } = await anAccount(store, { credits: 10 });
    key = await anotherKey(store, accountId);
  });
  after(async () => {
    await service.close();
    for (const one of [...redis, films, server]) await one?.stop();
  });

  const start = () => service.start({ TRAWL_REDIS_URL: present.url });
  /** Runs a procedure after which the service uses the next Redis, or the same. */
  const run = async (title: string, next: TestRecord = present) => {
    const names = {
      ...server.commands,
      TRAWL_DATA: service.data,
      TRAWL_REDIS_URL: present.url,
      NEW_REDIS_URL: next.url,
      BACKUP_DIR: join(service.folder, 'backups'),
    };
    present = next;
    const { code, out, err } = await runProcedure(title, names);
    expect(code, `${out}${err}`).to.equal(0);
    return out;
  };
  const aFilm = async (): Promise<{ id: string; link: string }> => {
    const query = encodeURIComponent(`${films.url}/films/clip.mp4`);
    const id = await service.submit(key, `/v1/video/download?query=${query}`);
    const job = (await until(
      async () => {
        const { json } = await service.ask(key, `/v1/jobs/${id}`);
        return json.status === 'CompletedJob' ? json : null;
      },
      60,
      `the end of ${id}`,
    )) as Json;
    return { id, link: job.result.response };
  };
  /** The status of a link, which names the address of an earlier start. */
  const statusOf = async (link: string) =>
    (await fetch(service.up().url + link.slice(new URL(link).origin.length))).status;
  const used = async () => (await service.ask(key, '/v1/usage')).json.credits.consumed;

  it('moves to another Redis, and loses nothing', async () => {
    const { id, link } = await aFilm();
    await run('move to another Redis', redis[1]!);
    expect((await service.ask(key, `/v1/jobs/${id}`)).json.status).to.equal('CompletedJob');
    expect([await statusOf(link), await used()]).to.deep.equal([200, 1]);
  });

  it('recovers from the loss of Redis with the newest backup', async () => {
    await redis[1]!.stop();
    redis.splice(1, 1);
    await run('recover from the loss of Redis', redis[1]!);
    expect(await used()).to.equal(1);
    expect(await statusOf((await aFilm()).link)).to.equal(200);
  });

  it('moves to another bucket, and every link goes on', async () => {
    const { link } = await aFilm();
    await run('move to another bucket');
    expect(await statusOf(link)).to.equal(200);
    expect(await statusOf((await aFilm()).link)).to.equal(200);
  });

  it('recovers from the loss of the bucket: new jobs work, and lost files are gone', async () => {
    const { link } = await aFilm();
    rmSync(elsewhere, { recursive: true });
    await run('recover from the loss of the bucket');
    expect(await statusOf(link)).to.be.oneOf([404, 410]);
    expect(await statusOf((await aFilm()).link)).to.equal(200);
  });
});
