import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { runBeside } from '../support/backups.ts';
import { trawl } from '../support/operator.ts';
import { type OperatorServer, startOperatorServer } from '../support/operator-server.ts';
import { runProcedure } from '../support/procedures.ts';
import { makeService, type Service } from '../support/service.ts';

describe('docs/operate.md', () => {
  const service: Service = makeService({ TRAWL_WORKERS: '1' });
  const env = { TRAWL_DATA: service.data, TRAWL_DURABILITY: 'strict' };
  const backups = join(service.folder, 'backups');
  let server: OperatorServer;
  before(async () => {
    server = await startOperatorServer({
      STOP_TRAWL: async () => {},
      START_TRAWL: () => service.start(),
    });
    await service.start();
  });
  after(async () => {
    await service.close();
    await server.stop();
  });

  it('recovers from damaged files of Redis with the newest backup, and names the procedure before', async () => {
    const { key } = await service.aCustomer();
    expect((await runBeside(['record', 'backup', backups], env)).code).to.equal(0);
    expect(await service.stop()).to.equal(0);
    const file = join(service.data, 'redis', 'appendonlydir', 'appendonly.aof.1.incr.aof');
    const bytes = readFileSync(file);
    const middle = Math.floor(bytes.length / 2);
    writeFileSync(file, bytes.fill(0xff, middle, middle + 40));

    const start = await service.start().catch((error: Error) => error.message);
    expect(start).to.match(/damaged: docs\/operate\.md says how to recover/);
    const restore = await trawl(['admin', 'record', 'restore', backups, '--replace'], { TRAWL_DATA: service.data });
    expect(restore.code).to.equal(1);
    expect(restore.err)
      .to.match(/damaged: docs\/operate\.md says how to recover/)
      .and.not.match(/^ +at /m);

    const names = { ...server.commands, TRAWL_DATA: service.data, BACKUP_DIR: backups };
    const { code, out, err } = await runProcedure('recover from damaged files of Redis', names);
    expect(code, out + err).to.equal(0);
    expect((await service.ask(key, '/v1/usage')).json.remaining).to.equal(100_000);
    expect(existsSync(join(service.data, 'redis.damaged'))).to.equal(true);
  });
});
