import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { LostAnswer } from '../../src/base/errors.ts';
import { chargeCall } from '../../src/store/access/charge-call.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { type Connection, connect } from '../../src/store/redis/connection.ts';
import { type CutRedis, startCutRedis } from '../support/cut-redis.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { admitted, anAccount, ask, storeOf, type TestStore } from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('a script whose answer is lost', () => {
  let redis: TestRedis;
  let proxy: CutRedis;
  let connection: Connection;
  let store: TestStore;
  let caller: Awaited<ReturnType<typeof anAccount>>;
  beforeEach(async () => {
    redis = await startTestRedis();
    proxy = await startCutRedis(redis);
    connection = await connect(proxy.url, { log: aLog().log });
    store = storeOf(connection);
    caller = await anAccount(store, { credits: 1 });
  });
  afterEach(async () => {
    await connection.close();
    await proxy.stop();
    await redis.stop();
  });
  const balances = async () => (await readSnapshot(store, caller.accountId)).balances;

  it('is asked for once more, and one credit is held for the one job', async () => {
    const id = randomUUID();
    proxy.cutAt(id);
    expect(await ask(store, caller, { id })).to.deep.include({ admitted: id });
    expect(proxy.isCut()).to.equal(true);
    expect(await readJob(store, id)).to.include({ status: 'QueuedJob' });
    expect((await balances()).held).to.equal(1);
    expect((await verifyLedger(store, caller.accountId)).problems).to.deep.equal([]);
  });

  it('is asked for once more when the node before only refused it, because it follows another one', async () => {
    const id = randomUUID();
    await ask(store, caller, { valid: false });
    const { connection: direct } = redis;
    await direct.send(['REPLICAOF', '127.0.0.1', '1']);
    proxy.cutAt(id);
    const asked = ask(store, caller, { id });
    const refusals = async () =>
      Number(/errorstat_READONLY:count=(\d+)/.exec(String(await direct.send(['INFO', 'errorstats'])))?.[1]);
    await until(async () => (await refusals()) > 0, 10, 'a refusal');
    await direct.send(['REPLICAOF', 'NO', 'ONE']);
    expect(await asked).to.deep.include({ admitted: id });
    expect(proxy.isCut()).to.equal(true);
    expect((await balances()).held).to.equal(1);
  });

  it('was a charge: the call is answered, and charged once', async () => {
    const id = await admitted(store, caller, { work: { holdMs: 60_000 } });
    proxy.cutAt(id);
    const call = { id, accountId: caller.accountId, endpoint: 'metadata', repeat: null } as const;
    const line = { keyId: caller.keyId, line: 'GET /v1/media/metadata', ip: '', answer: '{}' };
    expect(await chargeCall(store, { ...call, ...line }, 5)).to.deep.equal({ done: true, balance: 'credits' });
    expect(proxy.isCut()).to.equal(true);
    expect(await balances()).to.include({ held: 0, credits_consumed: 1 });
    const charges = (await readLedger(store, caller.accountId, 10)).filter(({ kind }) => kind === 'charge');
    expect(charges.map(({ job }) => job)).to.deep.equal([id]);
  });

  it('does not begin once its caller has given up', async () => {
    const id = randomUUID();
    await ask(store, caller, { id, valid: false });
    const thaw = await freezeProcess(redis.pid());
    const error = await ask(store, caller, { id }).catch((caught) => caught);
    thaw();
    expect(error).to.be.instanceOf(LostAnswer).and.include({ code: 'unavailable' });
    await until(async () => (await balances().catch(() => null)) !== null, 10, 'redis to answer again');
    const evals = String(await store.connection.send(['INFO', 'commandstats']));
    expect(Number(/cmdstat_evalsha:calls=(\d+)/.exec(evals)?.[1])).to.be.above(0);
    expect(await readJob(store, id)).to.equal(null);
    expect((await balances()).held).to.equal(0);
  });

  it('is admitted once however often it is asked for', async () => {
    const id = randomUUID();
    expect(await ask(store, caller, { id })).to.deep.include({ admitted: id, held: 1 });
    expect(await ask(store, caller, { id })).to.deep.include({ admitted: id, held: 1 });
    expect(await ask(store, caller)).to.include({ refused: 'payment_required' });
    expect((await verifyLedger(store, caller.accountId)).problems).to.deep.equal([]);
  });

  it('holds no second credit of an account that has one when it is asked for again', async () => {
    const rich = await anAccount(store, { credits: 2 });
    for (const work of [undefined, { holdMs: 60_000 }]) {
      const id = randomUUID();
      const held = work === undefined ? 1 : 2;
      for (const _ of ['asked', 'asked again'])
        expect(await ask(store, rich, { id, ...(work && { work }) })).to.deep.include({ admitted: id, held });
    }
    expect((await verifyLedger(store, rich.accountId)).problems).to.deep.equal([]);
  });
});
