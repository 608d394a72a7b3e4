import { expect } from 'chai';
import { remaining, usage } from '../../src/model/money.ts';
import { chargeCall } from '../../src/store/access/charge-call.ts';
import { readUsage } from '../../src/store/access/read-usage.ts';
import { releaseCall } from '../../src/store/access/release-call.ts';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { removePlan } from '../../src/store/accounts/remove-plan.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { readMinutes } from '../../src/store/log/read-minutes.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { addPack } from '../../src/store/money/add-pack.ts';
import { rollPeriod } from '../../src/store/money/roll-period.ts';
import {
  admitted,
  anAccount,
  aPack,
  aPlan,
  aRunningJob,
  ask,
  completed,
  holder,
  type TestStore,
} from '../support/record.ts';

const day = 86_400_000;

/** Balances, the ledger and billing periods. */
export function moneySuite(store: () => TestStore): void {
  type Caller = Awaited<ReturnType<typeof anAccount>>;
  const spend = async (caller: Caller) => settleJob(store(), holder, await aRunningJob(store(), caller), completed);
  const books = async (caller: Caller) => (await readSnapshot(store(), caller.accountId)).balances;
  const kinds = async (caller: Caller) =>
    (await readLedger(store(), caller.accountId, 100))
      .reverse()
      .map((entry) => `${entry.kind} ${entry.balance} ${entry.amount}`);
  const verified = async (caller: Caller) =>
    expect((await verifyLedger(store(), caller.accountId)).problems).to.deep.equal([]);

  it('billing-8 packs-order D42: draws the subscription, then packs in purchase order, then credits, then nothing', async () => {
    const caller = await anAccount(store(), { quota: 1, credits: 1 });
    const late = await aPack(store(), caller.accountId, 1, 5);
    const early = await aPack(store(), caller.accountId, 1, 1);
    const balances = [];
    for (let n = 0; n < 4; n++) balances.push(await spend(caller));
    expect(balances.map((one) => 'balance' in one && one.balance)).to.deep.equal([
      'subscription',
      'packs',
      'packs',
      'credits',
    ]);
    const charges = (await readLedger(store(), caller.accountId, 100))
      .filter((entry) => entry.kind === 'charge')
      .reverse();
    expect(charges.map((entry) => entry.pack)).to.deep.equal([null, early, late, null]);
    expect(await ask(store(), caller)).to.deep.include({ refused: 'payment_required' });
    await verified(caller);
  });

  it('D71: writes an overdraft when a charge finds nothing left, and no balance goes below zero', async () => {
    const caller = await anAccount(store(), { quota: 1 });
    const job = await aRunningJob(store(), caller);
    await aPlan(store(), caller.plan, { quota: 0 });
    expect(await settleJob(store(), holder, job, completed)).to.deep.equal({ done: true, balance: 'overdraft' });
    expect(await kinds(caller)).to.deep.equal([
      'grant subscription 1',
      'lapse subscription 1',
      'overdraft overdraft 1',
    ]);
    expect(remaining(await books(caller))).to.equal(0);
    await verified(caller);
  });

  it('shows a changed quota at once and books it with the next charge', async () => {
    const caller = await anAccount(store(), { quota: 2 });
    await spend(caller);
    await aPlan(store(), caller.plan, { quota: 5 });
    const seen = await readUsage(store(), caller);
    expect('balances' in seen && remaining(seen.balances)).to.equal(4);
    await spend(caller);
    expect(await kinds(caller)).to.deep.equal([
      'grant subscription 2',
      'charge subscription 1',
      'grant subscription 3',
      'charge subscription 1',
    ]);
    await verified(caller);
  });

  it('D50: rolls an ended period by itself, with the rest lapsed, used back at 0, and packs and credits kept', async () => {
    const caller = await anAccount(store(), { quota: 3, credits: 1, packs: [2] });
    await spend(caller);
    store().advance(32 * day);
    const seen = await readUsage(store(), caller);
    if (!('balances' in seen)) throw new Error('refused');
    expect([seen.balances.used, remaining(seen.balances)]).to.deep.equal([0, 6]);
    expect((await kinds(caller)).slice(-2)).to.deep.equal(['lapse subscription 2', 'grant subscription 3']);
    expect(seen.balances.period_end! - store().clock.now()).to.be.within(0, 31 * day);
    expect(await rollPeriod(store(), caller.accountId)).to.equal(false);
    await verified(caller);
  });

  it('rolls an ended period once for many simultaneous calls', async () => {
    const caller = await anAccount(store(), { quota: 30 });
    store().advance(32 * day);
    await Promise.all([...Array(20)].map(() => admitted(store(), caller)));
    expect((await kinds(caller)).filter((kind) => kind.startsWith('lapse'))).to.deep.equal(['lapse subscription 30']);
    expect(await books(caller)).to.deep.include({ held: 20, used: 0 });
    await verified(caller);
  });

  it('charges a job to the period in which it ends', async () => {
    const caller = await anAccount(store(), { quota: 1 });
    const job = await aRunningJob(store(), caller);
    store().advance(32 * day);
    expect(await settleJob(store(), holder, job, completed)).to.deep.equal({
      done: true,
      balance: 'subscription',
    });
    expect(await books(caller)).to.deep.include({ used: 1 });
    await verified(caller);
  });

  it('keeps period and use with another plan, ends both without a plan, and begins anew with the next one', async () => {
    const caller = await anAccount(store(), { quota: 4 });
    await spend(caller);
    const { period_end } = await books(caller);
    await aPlan(store(), `${caller.plan}x`, { quota: 9 });
    await setAccount(store(), caller.accountId, { plan: `${caller.plan}x` });
    expect(await books(caller)).to.deep.include({ quota: 9, used: 1, period_end });
    await setAccount(store(), caller.accountId, { plan: null });
    expect(await books(caller)).to.deep.include({ quota: 0, used: 0, period_end: null });
    expect(await store().connection.send(['ZSCORE', keys.periods, caller.accountId])).to.equal(null);
    await verified(caller);
    await setAccount(store(), caller.accountId, { plan: caller.plan });
    expect(await books(caller)).to.deep.include({ quota: 4, used: 0 });
    await verified(caller);
  });

  it('adds a pack of one id once, and keeps its use', async () => {
    const caller = await anAccount(store());
    const pack = { id: 'once', title: 'Pack', total: 3, purchased_at: store().clock.now() };
    for (let n = 0; n < 3; n++) {
      await addPack(store(), caller.accountId, pack);
      await spend(caller);
    }
    expect(await ask(store(), caller)).to.deep.include({ refused: 'payment_required' });
    expect((await books(caller)).packs).to.deep.equal([{ ...pack, used: 3 }]);
    await verified(caller);
  });

  it('removes a plan once no account has it', async () => {
    const caller = await anAccount(store(), { quota: 1 });
    const refused = await removePlan(store(), caller.plan).catch((error: Error) => error);
    expect(refused).to.include({ code: 'in_use' });
    await removeAccount(store(), caller.accountId, caller.slug);
    await removePlan(store(), caller.plan);
  });

  it('reports each ledger entry that was tampered with', async () => {
    const caller = await anAccount(store(), { credits: 3 });
    await spend(caller);
    await store().connection.send(['HINCRBY', keys.account(caller.accountId), 'credits_consumed', '-1']);
    expect((await verifyLedger(store(), caller.accountId)).problems.join()).to.match(/credits/);
    await store().connection.send(['HINCRBY', keys.account(caller.accountId), 'credits_consumed', '1']);
    await verified(caller);
    await store().connection.send(['HINCRBY', keys.account(caller.accountId), 'held', '1']);
    expect((await verifyLedger(store(), caller.accountId)).problems).to.have.length(1);
    await store().connection.send(['HINCRBY', keys.account(caller.accountId), 'packs_left', '7']);
    expect((await verifyLedger(store(), caller.accountId)).problems.join()).to.match(/all packs is 0, but 7/);
  });

  it('reports a job that completed and was not charged, though every balance is right', async () => {
    const caller = await anAccount(store(), { credits: 3 });
    await spend(caller);
    await verified(caller);
    await store().connection.send(['HINCRBY', keys.account(caller.accountId), 'completed', '1']);
    expect((await verifyLedger(store(), caller.accountId)).problems).to.deep.equal([
      'The number of completed jobs and calls is 2, and 1 are charged in the ledger',
    ]);
  });

  describe('synchronous calls', () => {
    const call = async (caller: Caller) => {
      const repeat = { key: 'c', request: 'x' };
      const id = await admitted(store(), caller, { work: { holdMs: 65_000 }, repeat });
      return { id, accountId: caller.accountId, endpoint: 'metadata', repeat } as const;
    };
    const charge = async (caller: Caller, inHand: Awaited<ReturnType<typeof call>>) => {
      const [key] = await listKeys(store(), caller.accountId);
      const rest = { keyId: key!.id, line: 'GET /v1/media/metadata', ip: '192.0.2.1', answer: '{"metadata":{}}' };
      return chargeCall(store(), { ...inHand, ...rest }, 120);
    };

    it('charges a call once, writes its line and remembers its answer', async () => {
      const caller = await anAccount(store(), { credits: 2 });
      const inHand = await call(caller);
      expect(await ask(store(), caller, { repeat: inHand.repeat })).to.deep.include({
        refused: 'idempotency_conflict',
        detail: 'running',
      });
      const answers = await Promise.all([1, 2, 3].map(() => charge(caller, inHand)));
      expect(answers.map(({ done, refused }) => done ?? refused)).to.have.members([true, 'gone', 'gone']);
      expect(await releaseCall(store(), inHand, 500)).to.deep.equal({ refused: 'gone' });
      expect(await ask(store(), caller, { repeat: inHand.repeat })).to.deep.include({
        repeated: inHand.id,
        answer: '{"metadata":{}}',
      });
      expect(await readLines(store(), caller.accountId, 9)).to.have.length(1);
      expect(await books(caller)).to.deep.include({ credits_consumed: 1, held: 0 });
      await verified(caller);
    });

    it('releases a call once, and forgets its Idempotency-Key', async () => {
      const caller = await anAccount(store(), { credits: 1 });
      const inHand = await call(caller);
      expect((await readSnapshot(store(), caller.accountId)).balances.held).to.equal(1);
      expect(await releaseCall(store(), inHand, 404, 10)).to.deep.equal({ done: true });
      expect(await releaseCall(store(), inHand, 404, 10)).to.deep.equal({ refused: 'gone' });
      expect(await charge(caller, inHand)).to.deep.equal({ refused: 'gone' });
      expect(await ask(store(), caller, { repeat: inHand.repeat })).to.have.property('admitted');
      await verified(caller);
    });

    it('counts charged and released answers for the statistics, but no call without an answer', async () => {
      const caller = await anAccount(store(), { credits: 9 });
      const counted = async () => {
        const minutes = await readMinutes(store(), 'metadata');
        const sum = (field: 'count' | 'good' | 'timed') => minutes.reduce((all, one) => all + one[field], 0);
        return [sum('count'), sum('good'), sum('timed')];
      };
      const before = await counted();
      await charge(caller, await call(caller));
      const repeatless = async () => ({
        id: await admitted(store(), caller, { work: { holdMs: 65_000 } }),
        accountId: caller.accountId,
        endpoint: 'metadata' as const,
        repeat: null,
      });
      await releaseCall(store(), await repeatless(), 500, 60_001);
      await releaseCall(store(), await repeatless(), null);
      const after = await counted();
      expect(after.map((number, n) => number - before[n]!)).to.deep.equal([2, 1, 1]);
    });

    it('does not remove an account while a call of it is open', async () => {
      const caller = await anAccount(store(), { credits: 1 });
      const inHand = await call(caller);
      const refused = await removeAccount(store(), caller.accountId, caller.slug).catch((error: Error) => error);
      expect(refused).to.include({ code: 'has_open_jobs' });
      await releaseCall(store(), inHand, 404);
      await removeAccount(store(), caller.accountId, caller.slug);
    });

    it('D41: refuses a charge after the deadline of the hold', async () => {
      const caller = await anAccount(store(), { credits: 1 });
      const inHand = await call(caller);
      store().advance(65_001);
      expect(await charge(caller, inHand)).to.deep.equal({ refused: 'gone' });
      expect(await books(caller)).to.deep.include({ credits_consumed: 0, held: 1 });
    });
  });

  it('returns the whole usage snapshot of a caller', async () => {
    const caller = await anAccount(store(), { quota: 2, credits: 1, packs: [1], perMinute: 9 });
    await spend(caller);
    const seen = await readUsage(store(), caller);
    if (!('balances' in seen)) throw new Error('refused');
    const shown = usage(seen.balances, seen.account, seen.plan, seen.key, store().clock.now());
    expect(shown).to.deep.include({
      remaining: 3,
      total_used: 1,
      held: 0,
      rate_limit: { per_minute: 9, per_second: null },
    });
    expect(shown.subscription).to.deep.equal({ used: 1, total: 3, remaining: 2, percent_used: 33.33 });
  });
}
