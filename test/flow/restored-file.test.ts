import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { runBeside } from '../support/backups.ts';
import { makeService, type Service } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';

describe('a file that is newer than the restored record', () => {
  const service: Service = makeService({ TRAWL_WORKERS: '1' });
  let source: Source;
  let film = 'clip.mp4';
  const changing = createServer((_, answer) => {
    answer.writeHead(302, { location: `${source.url}/films/${film}` }).end();
  });
  before(async () => {
    source = await startSource();
    await new Promise<void>((resolve) => changing.listen(0, '127.0.0.1', resolve));
    await service.start();
  });
  after(async () => {
    await service.close();
    changing.close();
    await source.stop();
  });

  const admin = async (...line: string[]) => {
    const { code, out, err } = await runBeside(line, { TRAWL_DATA: service.data, TRAWL_DURABILITY: 'strict' });
    expect(code, out + err).to.equal(0);
  };
  const filesOf = (id: string) =>
    readdirSync(join(service.data, 'objects', id), { recursive: true, withFileTypes: true }).filter((one) =>
      one.isFile(),
    );

  it('is replaced by the first attempt of the job that runs again, which is charged once', async () => {
    const { account, key } = await service.aCustomer();
    const download = (url: string) => service.submit(key, `/v1/video/download?query=${encodeURIComponent(url)}`);
    const release = source.hold();
    const running = await download(`${source.url}/held/clip.mp4`);
    await until(async () => (await service.ask(key, `/v1/jobs/${running}`)).json.status === 'Running', 20, 'it runs');
    const waiting = await download(`http://127.0.0.1:${(changing.address() as AddressInfo).port}/film.mp4`);
    const backups = join(service.folder, 'backups');
    await admin('record', 'backup', backups);
    release();
    await service.ended([running, waiting], 60);
    const [before] = filesOf(waiting);

    expect(await service.stop()).to.equal(0);
    await admin('record', 'restore', backups, '--replace');
    film = 'silent.mp4';
    await service.start();
    const jobs = await service.ended([running, waiting], 60);
    const again = jobs.find(({ id }) => id === waiting);
    expect(again).to.include({ status: 'CompletedJob', attempt: 1, failures: 0 });
    expect(again?.delivered?.sha256).not.to.equal(before?.name);
    expect(filesOf(waiting).map(({ name }) => name)).to.deep.equal([again?.delivered?.sha256]);
    await service.checkLedger(account, jobs);
    expect((await service.ask(key, '/v1/usage')).json.credits.consumed).to.equal(2);
  });
});
