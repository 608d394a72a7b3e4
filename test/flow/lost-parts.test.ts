import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { closeServer } from '../../src/base/close-server.ts';
import { listenAt } from '../../src/base/server-address.ts';
import { openStateFolder } from '../../src/roles/state-folder.ts';
import { makeService, type Service } from '../support/service.ts';
import { spawnUp } from '../support/up.ts';

describe('trawl up that lacks a part of its data', () => {
  let service: Service;
  beforeEach(() => {
    service = makeService();
  });
  afterEach(() => service.close());

  /** Returns the sentences of a start that is refused. */
  const refused = async (data: string, env: Readonly<Record<string, string>> = {}): Promise<string> => {
    const up = spawnUp({ TRAWL_DATA: data, ...env });
    expect(await up.ended).to.equal(1);
    return up.output().replace(/^\{.*\n/gm, '');
  };

  it('names the link of its data folder that leads to a disk which is not mounted', async () => {
    const disk = join(service.folder, 'disk');
    symlinkSync(disk, service.data);
    for (const path of [service.data, join(service.data, 'below')]) {
      const why = `${service.data} is a link to ${disk}, which is missing`;
      expect(await refused(path)).to.equal(`The data folder ${path} cannot be written: ${why}.\n`);
    }
    expect(existsSync(disk)).to.equal(false);
  });

  it('says in a sentence which file cannot be read or written, because a folder is in its place', async () => {
    for (const name of ['secret', 'lock']) {
      mkdirSync(join(service.data, name), { recursive: true });
      expect(await refused(service.data))
        .to.contain(join(service.data, name))
        .and.to.contain('EISDIR')
        .and.not.match(/^ +at /m);
      rmSync(service.data, { recursive: true });
    }
  });

  it('makes no other secret where its own is gone from beside the record, and names the line that makes one', async () => {
    await service.start();
    const { key } = await service.aCustomer();
    expect(await service.stop()).to.equal(0);
    const file = join(service.data, 'secret');
    const secret = readFileSync(file);
    rmSync(file);
    const said = await refused(service.data);
    expect(existsSync(file)).to.equal(false);
    expect(said)
      .to.contain(`${file} is missing and TRAWL_SECRET is not set`)
      .and.not.match(/^ +at /m);
    execFileSync('sh', ['-c', /^head -c .*$/m.exec(said)?.[0] ?? 'false']);
    expect(readFileSync(file)).not.to.deep.equal(secret);
    await service.start();
    expect((await service.ask(key, '/v1/usage')).status).to.equal(200);
  });

  it('keeps no files in the empty folder where the disk of its files is not mounted, and names the line for a new disk', async () => {
    await service.start();
    expect(await service.stop()).to.equal(0);
    const folder = join(service.data, 'objects');
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    const said = await refused(service.data);
    expect(readdirSync(folder)).to.deep.equal([]);
    expect(said)
      .to.contain(`${folder} is not the folder in which files were kept`)
      .and.not.match(/^ +at /m);
    execFileSync('sh', ['-c', /^mkdir .*$/m.exec(said)?.[0] ?? 'false']);
    await service.start();
  });

  it('begins no new record in the empty folder where the disk of the record is not mounted, and names the line for a new disk', async () => {
    await service.start();
    const { key } = await service.aCustomer();
    expect(await service.stop()).to.equal(0);
    const folder = join(service.data, 'redis');
    const disk = join(service.folder, 'disk');
    renameSync(folder, disk);
    mkdirSync(folder);
    const said = await refused(service.data);
    expect(readdirSync(folder)).to.deep.equal([]);
    expect(said)
      .to.contain(`${folder} is not the folder in which the record was kept`)
      .and.not.match(/^ +at /m);
    rmSync(folder, { recursive: true });
    renameSync(disk, folder);
    await service.start();
    expect((await service.ask(key, '/v1/usage')).status).to.equal(200);
    expect(await service.stop()).to.equal(0);
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    execFileSync('sh', ['-c', /^mkdir .*$/m.exec(said)?.[0] ?? 'false']);
    await service.start();
    expect((await service.ask(key, '/v1/usage')).status).to.equal(401);
  });

  it('begins no new record there either with its secret in the settings and its files in S3', async () => {
    const settings = { data: service.data, secret: Buffer.alloc(32), redisUrl: null, objects: 's3' } as const;
    const folder = join(service.data, 'redis');
    const disk = join(service.folder, 'disk');
    for (const made of [service.data, folder]) mkdirSync(made);
    await (await openStateFolder(settings)).release();
    renameSync(folder, disk);
    mkdirSync(folder);
    const said = await openStateFolder(settings).catch(String);
    expect(said).to.contain(`${folder} is not the folder in which the record was kept`);
    rmSync(folder, { recursive: true });
    renameSync(disk, folder);
    await (await openStateFolder(settings)).release();
  });

  it('takes a new disk that is mounted as the folder of the record for its first start', async () => {
    mkdirSync(join(service.data, 'redis', 'lost+found'), { recursive: true });
    await service.start();
  });

  it('takes new disks of the record and of its files also after a first start that a taken port had ended', async () => {
    for (const part of ['redis', 'objects']) mkdirSync(join(service.data, part, 'lost+found'), { recursive: true });
    const taken = createServer();
    const port = await listenAt(taken, { host: '127.0.0.1', port: 0 });
    const said = await refused(service.data, { TRAWL_HOST: '127.0.0.1', TRAWL_PROBE_PORT: String(port) });
    await closeServer(taken);
    expect(said).to.contain(`port ${port} is taken`);
    await service.start();
  });

  it('empties no folder to which a link in the place of its work folder leads', async () => {
    const elsewhere = join(service.folder, 'elsewhere');
    for (const folder of [elsewhere, service.data]) mkdirSync(folder);
    writeFileSync(join(elsewhere, 'kept'), '');
    symlinkSync(elsewhere, join(service.data, 'work'));
    await service.start();
    expect(readdirSync(elsewhere)).to.deep.equal(['kept']);
  });
});
