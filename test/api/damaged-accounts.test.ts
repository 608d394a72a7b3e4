import { expect } from 'chai';
import { keys } from '../../src/store/keys.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { rollPeriod } from '../../src/store/money/roll-period.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { film } from '../support/calls.ts';
import { endJob } from '../support/job-steps.ts';
import { completed } from '../support/record.ts';

describe('an account whose record is damaged in part', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.stop());

  const damage = (key: string, field: string) => api.store.connection.send(['HSET', key, field, '{"name":"cu']);
  const submit = async ({ key }: ApiCaller) => {
    const { status, json } = await api.get('/v1/video/download', key, { query: film });
    expect(status).to.equal(202);
    return String(json.job_id);
  };
  const usage = async ({ key }: ApiCaller) => (await api.get('/v1/usage', key)).json;
  const problems = async ({ account }: ApiCaller) => (await verifyLedger(api.store, account)).problems;
  const aPlanned = async () => {
    const caller = await api.addCaller({ quota: 5, credits: 0 });
    const plan = String(await api.store.connection.read(['HGET', keys.account(caller.account), 'plan']));
    return { caller, plan };
  };

  it('goes on with the quota that it has booked when its plan cannot be read, and is charged for what completes', async () => {
    const { caller, plan } = await aPlanned();
    const before = await submit(caller);
    await damage(keys.plans, plan);
    await endJob(api.store, before, completed);
    await endJob(api.store, await submit(caller), completed);
    expect(await usage(caller)).to.deep.include({ remaining: 3, held: 0, total_used: 2 });
    expect(await problems(caller)).to.deep.equal([]);
  });

  it('has its whole quota again in the next billing period when its plan cannot be read', async () => {
    const { caller, plan } = await aPlanned();
    await endJob(api.store, await submit(caller), completed);
    await damage(keys.plans, plan);
    const ended = Date.now() - 1_000;
    const fields = ['period_anchor', String(ended - 28 * 86_400_000), 'period_end', String(ended)];
    await api.store.connection.send(['HSET', keys.account(caller.account), ...fields]);
    expect(await rollPeriod(api.store, caller.account)).to.equal(true);
    expect(await usage(caller)).to.deep.include({ remaining: 5, held: 0 });
    expect(await problems(caller)).to.deep.equal([]);
  });

  it('is charged from the next pack when the first one cannot be read, and the check of its ledger names that one', async () => {
    const caller = await api.addCaller({ packs: [3, 5], credits: 0 });
    const [first] = await api.store.connection.read(['ZRANGE', keys.packQueue(caller.account), '0', '0']);
    await damage(keys.packs(caller.account), String(first));
    await endJob(api.store, await submit(caller), completed);
    const [newest] = await readLedger(api.store, caller.account, 1);
    expect(newest).to.include({ kind: 'charge', balance: 'packs' });
    expect(newest?.pack).not.to.equal(first);
    expect(await usage(caller)).to.deep.include({ remaining: 7, held: 0 });
    expect((await problems(caller)).join('\n')).to.include(String(first));
  });

  it('is charged for packs that their queue has lost, the oldest first, behind those that it has, and no call more', async () => {
    const caller = await api.addCaller({ packs: [1, 2, 1], credits: 0 });
    const queue = keys.packQueue(caller.account);
    const ids = (await api.store.connection.read(['ZRANGE', queue, '0', '-1'])) as string[];
    await api.store.connection.send(['ZREM', queue, ids[0]!, ids[1]!]);
    for (const kept of [[], [], [ids[1]], []]) {
      await endJob(api.store, await submit(caller), completed);
      expect(await api.store.connection.read(['ZRANGE', queue, '0', '-1'])).to.deep.equal(kept);
    }
    expect((await api.get('/v1/video/download', caller.key, { query: film })).status).to.equal(402);
    const entries = await readLedger(api.store, caller.account, 4);
    expect(entries.map(({ kind, pack }) => [kind, pack])).to.deep.equal(
      [ids[1], ids[1], ids[0], ids[2]].map((id) => ['charge', id]),
    );
    expect(await problems(caller)).to.deep.equal([]);
  });

  it('is charged for what its only pack had, and no call more, when that is damaged and its queue has lost it', async () => {
    const caller = await api.addCaller({ packs: [2], credits: 0 });
    const [queue, packs] = [keys.packQueue(caller.account), keys.packs(caller.account)];
    const [pack] = (await api.store.connection.read(['ZRANGE', queue, '0', '0'])) as string[];
    await damage(packs, pack!);
    await api.store.connection.send(['DEL', queue]);
    for (let n = 0; n < 2; n++) await endJob(api.store, await submit(caller), completed);
    expect((await api.get('/v1/video/download', caller.key, { query: film })).status).to.equal(402);
    const entries = await readLedger(api.store, caller.account, 2);
    expect(entries.map((entry) => [entry.kind, entry.pack])).to.deep.equal([
      ['charge', pack],
      ['charge', pack],
    ]);
  });

  it('pays nothing for as many calls as its packs promise beyond what they have, and then none is let in', async () => {
    const caller = await api.addCaller({ packs: [1], credits: 0 });
    await endJob(api.store, await submit(caller), completed);
    await api.store.connection.send(['HSET', keys.account(caller.account), 'packs_left', '2']);
    for (let n = 0; n < 2; n++) await endJob(api.store, await submit(caller), completed);
    expect((await api.get('/v1/video/download', caller.key, { query: film })).status).to.equal(402);
    const entries = await readLedger(api.store, caller.account, 3);
    expect(entries.map(({ kind }) => kind)).to.deep.equal(['overdraft', 'overdraft', 'charge']);
    expect(await problems(caller)).to.deep.equal([]);
  });

  it('sees and spends what is left of a pack whose count of used credits is lost', async () => {
    const caller = await api.addCaller({ packs: [2, 1], credits: 0 });
    const [first] = await api.store.connection.read(['ZRANGE', keys.packQueue(caller.account), '0', '0']);
    await api.store.connection.send(['HDEL', keys.packs(caller.account), `used:${first}`]);
    for (const remaining of [3, 2, 1]) {
      expect(await usage(caller)).to.deep.include({ remaining, total_used: 3 - remaining, held: 0 });
      await endJob(api.store, await submit(caller), completed);
    }
    expect((await api.get('/v1/video/download', caller.key, { query: film })).status).to.equal(402);
    expect(await usage(caller)).to.deep.include({ remaining: 0, total_used: 3 });
  });

  for (const json of ['{"name":"cu', '{"title":"Pack"}', 'null']) {
    it(`is charged for what its only pack had, and no call more, when that is ${json}`, async () => {
      const caller = await api.addCaller({ packs: [2], credits: 0 });
      const [pack] = await api.store.connection.read(['ZRANGE', keys.packQueue(caller.account), '0', '0']);
      await api.store.connection.send(['HSET', keys.packs(caller.account), String(pack), json]);
      for (const remaining of [2, 1]) {
        expect(await usage(caller)).to.deep.include({ remaining, held: 0 });
        await endJob(api.store, await submit(caller), completed);
      }
      expect(await usage(caller)).to.deep.include({ remaining: 0, total_used: 2 });
      expect((await api.get('/v1/video/download', caller.key, { query: film })).status).to.equal(402);
      const kinds = (await readLedger(api.store, caller.account, 3)).map(({ kind }) => kind);
      expect(kinds).to.deep.equal(['charge', 'charge', 'grant']);
    });
  }

  for (const json of ['null', '5', '[]', '{"name":"cut"}', '{"quota":"5"}']) {
    it(`goes on with the quota that it has booked when its plan is ${json}`, async () => {
      const { caller, plan } = await aPlanned();
      await api.store.connection.send(['HSET', keys.plans, plan, json]);
      await endJob(api.store, await submit(caller), completed);
      expect(await usage(caller)).to.deep.include({ remaining: 4, held: 0, total_used: 1 });
      expect(await problems(caller)).to.deep.equal([]);
    });
  }
});
