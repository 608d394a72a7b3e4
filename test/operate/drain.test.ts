import { expect } from 'chai';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { type BlockingSource, startBlockingSource } from '../support/blocking-source.ts';
import { startOperatorServer } from '../support/operator-server.ts';
import { runProcedure } from '../support/procedures.ts';
import { makeService, type Service } from '../support/service.ts';
import { until } from '../support/until.ts';

describe('docs/operate.md', () => {
  const service: Service = makeService({ TRAWL_WORKERS: '1' });
  let held: BlockingSource;
  before(async () => {
    held = await startBlockingSource();
    await service.start();
  });
  after(async () => {
    await service.close();
    await held.stop();
  });

  it('stops for maintenance when nothing is open, admits nothing until it is over, and loses nothing', async () => {
    const { account, key } = await service.aCustomer();
    const path = `/v1/video/download?query=${held.url}/held/film.mp4`;
    const submit = async () => (await service.ask(key, path)).status;
    const statuses: number[] = [];
    const server = await startOperatorServer({
      STOP_TRAWL: async () => expect(await service.stop()).to.equal(0),
      START_TRAWL: async () => {
        await service.start();
        statuses.push(await submit());
      },
    });
    try {
      const names = { ...server.commands, TRAWL_DATA: service.data, DRAIN_SECONDS: '0' };
      const ids = [await service.submit(key, path), await service.submit(key, path)];
      await until(() => held.asked() > 0, 20, 'one job is under way');
      const early = await runProcedure('stop for maintenance with nothing open', names);
      expect(early.code).to.equal(1);
      expect(early.out)
        .to.match(/^queued +1$/m)
        .and.match(/^running +1$/m);
      expect(await submit()).to.equal(503);
      held.release();
      const { code, out, err } = await runProcedure('stop for maintenance with nothing open', {
        ...names,
        DRAIN_SECONDS: '100',
      });
      expect({ code, err }, out).to.deep.equal({ code: 0, err: '' });
      expect(out).to.match(/^done +yes$/m);
      expect(statuses).to.deep.equal([503]);
      expect(await submit()).to.equal(202);
      const jobs = await service.ended(ids, 30);
      expect(jobs.map(({ status, interruptions }) => [status, interruptions])).to.deep.equal(
        ids.map(() => ['NotFound', 0]),
      );
      await service.withStore(async (store) => {
        expect((await verifyLedger(store, account)).problems).to.deep.equal([]);
      });
    } finally {
      await server.stop();
    }
  });
});
