import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { keys } from '../../src/store/keys.ts';
import { runBeside } from '../support/backups.ts';
import type { Json } from '../support/json.ts';
import { type OperatorServer, startOperatorServer } from '../support/operator-server.ts';
import { readPreparation, runProcedure } from '../support/procedures.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { makeService, type Service } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';

const hour = 3_600;

describe('docs/operate.md', function () {
  this.timeout(600_000);
  const service: Service = makeService({ TRAWL_WORKERS: '2' });
  const clock = join(service.folder, 'clock');
  const env = { TRAWL_DATA: service.data, TRAWL_CLOCK_FILE: clock };
  let films: Source;
  let receiver: Receiver;
  let server: OperatorServer;
  before(async () => {
    writeFileSync(clock, '0');
    [films, receiver] = await Promise.all([startSource(), startReceiver()]);
    server = await startOperatorServer({
      stop: async () => expect(await service.stop()).to.equal(0),
      start: () => service.start({ TRAWL_CLOCK_FILE: clock }),
    });
    await service.start({ TRAWL_CLOCK_FILE: clock });
  });
  after(async () => {
    await service.close();
    for (const one of [films, receiver, server]) await one?.stop();
  });

  const admin = async (...line: string[]): Promise<Json> => {
    const { code, out, json } = await runBeside(line, { ...env, TRAWL_DURABILITY: 'strict' });
    expect(code, out).to.equal(0);
    return json;
  };
  const run = async (title: Parameters<typeof runProcedure>[0]) => {
    const { stop, start } = server.commands;
    // Both commands of the page name one service of systemd, which this machine may not have.
    const systemctl = `() { case "$*" in 'stop trawl') ${stop} ;; 'start trawl') ${start} ;; *) false ;; esac; }`;
    const names = { ...env, BACKUP_DIR: join(service.folder, 'backups'), 'BASH_FUNC_systemctl%%': systemctl };
    const { code, out, err } = await runProcedure(title, names, (script) => readPreparation('Procedures') + script);
    expect(code, `${out}${err}`).to.equal(0);
    return out;
  };
  const download = (folder: 'films' | 'held' = 'films') => {
    const query = encodeURIComponent(`${films.url}/${folder}/clip.mp4`);
    return `/v1/video/download?query=${query}&webhook_url=${encodeURIComponent(`${receiver.url}/hook`)}`;
  };
  /** Waits until a caller sees the end of a job, and its webhook has arrived so many times. */
  const seeEnd = async (key: string, id: string, webhooks: number): Promise<Json> => {
    const job = await until(
      async () => {
        const { json } = await service.ask(key, `/v1/jobs/${id}`);
        return json.status === 'CompletedJob' && receiver.of(id).length >= webhooks ? json : null;
      },
      60,
      `the end of ${id}, told ${webhooks} times`,
    );
    return job as Json;
  };
  /** The answer of a link, which names the port of an earlier start. */
  const follow = (link: string) => fetch(service.up().url + link.slice(new URL(link).origin.length));

  it('restores the record from an hour ago: nothing is charged twice, and each promise holds', async () => {
    await admin('account', 'create', 'films', '--name', 'Films');
    await admin('credits', 'add', 'films', '10');
    const { key } = await admin('key', 'create', 'films', '--alias', 'kept');
    const { key: leaked } = await admin('key', 'create', 'films', '--alias', 'leaked');
    await admin('user', 'create', 'films', '--email', 'gone@example.com', '--role', 'owner');
    const early = await service.submit(key, download());
    const { result: first } = await seeEnd(key, early, 1);
    const release = films.hold();
    const open = await service.submit(key, download('held'));
    await until(async () => (await service.ask(key, `/v1/jobs/${open}`)).json.status === 'Running', 20, 'it runs');

    expect(await run('back up the record')).to.match(/ has the record of /);
    release();
    await seeEnd(key, open, 1);
    const late: string[] = [];
    const links: string[] = [];
    for (const part of [1, 2, 3]) {
      writeFileSync(clock, String((part * hour) / 3));
      const id = await service.submit(key, download());
      late.push(id);
      links.push((await seeEnd(key, id, 1)).result.response);
    }
    await admin('key', 'set', 'films', 'leaked', '--active', 'no');
    await admin('user', 'remove', 'films', 'gone@example.com');
    expect((await service.ask(key, '/v1/usage')).json.credits.consumed).to.equal(5);

    const said = await run('restore the record');
    expect(said).to.contain('leaked').and.to.contain('gone@example.com');
    for (const id of late) expect(said).to.contain(`${id}\n`);
    expect(said).not.to.contain(early).and.not.to.contain(open);
    // The job that was open runs again, is charged once, and says so.
    await seeEnd(key, open, 2);
    expect(receiver.of(open).map(({ headers }) => headers['x-trawl-replayed'])).to.deep.equal([undefined, 'true']);
    expect(receiver.of(early)).to.have.length(1);
    const { json: usage } = await service.ask(key, '/v1/usage');
    expect([usage.credits.consumed, usage.remaining]).to.deep.equal([2, 8]);
    // What had ended before is as it was, and what came later is unknown, with its object.
    expect((await follow(first.response)).status).to.equal(200);
    for (const id of late) expect((await service.ask(key, `/v1/jobs/${id}`)).status).to.equal(404);
    for (const link of links) expect((await follow(link)).ok).to.equal(false);
    expect(service.objects()).to.include.members([early, open, ...late]);
    const found = await service.withStore(({ connection }) => connection.send(['ZCARD', keys.strays]));
    expect(found).to.equal(late.length);
    // What was revoked stays so.
    expect((await service.ask(leaked, '/v1/usage')).status).to.equal(401);
    expect(await admin('user', 'list', 'films')).to.deep.equal([]);
    // A job from now on is no repetition.
    const next = await service.submit(key, download());
    await seeEnd(key, next, 1);
    expect(receiver.of(next)[0]?.headers).not.to.have.property('x-trawl-replayed');
    expect((await admin('ledger', 'verify')).ok).to.equal(true);
  });
});
