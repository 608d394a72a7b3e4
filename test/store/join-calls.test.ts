import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { LostAnswer } from '../../src/base/errors.ts';
import { type Admission, admitCall, type CreditCall } from '../../src/store/access/admit-call.ts';
import type { Caller } from '../../src/store/access/authorize.ts';
import { beginDrain, endDrain } from '../../src/store/access/drain.ts';
import { admitJoined, pollJoined } from '../../src/store/access/join-calls.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { keys } from '../../src/store/keys.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { connect } from '../../src/store/redis/connection.ts';
import { startCutRedis } from '../support/cut-redis.ts';
import { aDownload, admitted, aKey, anAccount, ask, scoreOfJob, storeOf, type TestStore } from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';

const quota = fc.option(fc.nat({ max: 12 }));
const accountLimits = fc.record({
  credits: fc.nat({ max: 12 }),
  max_open: fc.integer({ min: 1, max: 12 }),
  perSecond: fc.option(fc.integer({ min: 1, max: 14 }), { nil: undefined }),
  perMinute: fc.option(fc.integer({ min: 1, max: 14 }), { nil: undefined }),
  quotas: fc.record({ total: quota, daily: quota, weekly: quota, monthly: quota }),
});
/** How many calls are made in each turn. */
const anyTurns = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 3 });

describe('calls of one key that are made in one turn', () => {
  let redis: TestRedis;
  let store: TestStore;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());
  beforeEach(() => {
    store = storeOf(redis.connection);
  });

  const join = (its: TestStore, caller: Caller, call: Partial<CreditCall> = {}) => ask(its, caller, call, admitJoined);
  const joinMany = (caller: Caller, calls: number) =>
    Promise.all(Array.from({ length: calls }, () => join(store, caller)));
  /** Returns how many commands Redis got for some work. */
  const commandsOf = async (work: () => Promise<unknown>) => {
    const before = redis.connection.calls();
    await work();
    return redis.connection.calls() - before;
  };

  it('are one command, up to 64 of them', async () => {
    const caller = await anAccount(store, { credits: 500 });
    const id = await admitted(store, caller);
    await Promise.all([joinMany(caller, 2), pollJoined(store, caller, id), pollJoined(store, caller, id)]);
    expect(await commandsOf(() => joinMany(caller, 64))).to.equal(1);
    expect(await commandsOf(() => joinMany(caller, 65))).to.equal(2);
    const polls = () => Promise.all([...Array(64)].map(() => pollJoined(store, caller, id)));
    expect(await commandsOf(polls)).to.equal(1);
    expect((await readSnapshot(store, caller.accountId)).balances.held).to.equal(132);
  });

  it('do not wait for calls of other keys, also of the same account', async () => {
    const caller = await anAccount(store, { credits: 500 });
    const other = { ...caller, ...(await aKey(store, caller.accountId)) };
    await Promise.all([joinMany(caller, 2), joinMany(other, 2)]);
    const both = () => Promise.all([joinMany(caller, 3), joinMany(other, 3)]);
    expect(await commandsOf(both)).to.equal(2);
  });

  it('are told the credits that each of them holds, and the calls that it leaves', async () => {
    const caller = await anAccount(store, { credits: 5, perMinute: 10 });
    const answers = await joinMany(caller, 3);
    const told = answers.map((one) => 'admitted' in one && [one.held, one.rates.perMinute?.left]);
    expect(told).to.deep.equal([
      [1, 9],
      [2, 8],
      [3, 7],
    ]);
  });

  it('leave in the record what calls one by one leave', async () => {
    const [joined, single] = [await anAccount(store, { credits: 9 }), await anAccount(store, { credits: 9 })];
    store.freezeClock();
    const webhook = { url: 'https://example.com/hook', receiver: 'a@example.com/x', authorization: 'sealed' };
    const works = [aDownload, { ...aDownload, ip: '192.0.2.2', method: 'POST', webhook }];
    const fieldsOf = async (answers: readonly Admission[]) => {
      const ids = answers.map((answer) => ('admitted' in answer ? answer.admitted : ''));
      const all = await Promise.all(ids.map((id) => store.connection.read(['HGETALL', keys.job(id)])));
      // Their ids, accounts and times differ: the clock stands still to within a millisecond.
      return all.map((fields, n) =>
        fields
          .join('\n')
          .replaceAll(ids[n]!, 'id')
          .replace(/^account\n.*$/m, '')
          .replace(/^key\n.*$/m, '')
          .replace(/^created_at\n.*$/m, ''),
      );
    };
    const asJoined = await Promise.all(works.map((work) => join(store, joined, { work })));
    const asSingle = [];
    for (const work of works) asSingle.push(await ask(store, single, { work }));
    expect(await fieldsOf(asJoined)).to.deep.equal(await fieldsOf(asSingle));
    for (const { accountId } of [joined, single]) {
      const scores = await store.connection.read(['ZRANGE', keys.jobs(accountId), '0', '-1', 'WITHSCORES']);
      const times = await Promise.all(
        (accountId === joined.accountId ? asJoined : asSingle).map(async (answer) => {
          const job = 'admitted' in answer && (await readJob(store, answer.admitted));
          return String(scoreOfJob(job ? job.created_at : 0, 'QueuedJob'));
        }),
      );
      expect(scores.filter((_, n) => n % 2 === 1)).to.deep.equal(times.toSorted());
    }
  });

  it('fail alone when what they ask for cannot be recorded', async () => {
    const caller = await anAccount(store, { credits: 3 });
    const webhook = { url: 'https://example.com/\ud800', receiver: 'example.com', authorization: '' };
    const answers = await Promise.allSettled([
      join(store, caller),
      join(store, caller, { work: { ...aDownload, webhook } }),
      join(store, caller),
    ]);
    expect(answers.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled']);
    expect((await readSnapshot(store, caller.accountId)).balances.held).to.equal(2);
  });

  it('are answered as calls one by one are, whatever the limits of their account', async () => {
    const wordOf = (answer: Admission) =>
      'refused' in answer
        ? [answer.refused, answer.detail, answer.rates]
        : ['admitted', 'held' in answer && answer.held, answer.rates];
    const live = async (limits: Parameters<typeof anAccount>[1], turns: readonly number[]) => {
      // Each account has a plan, and a record has at most 1,000 plans.
      await redis.flush();
      const [joined, single] = [await anAccount(store, limits), await anAccount(store, limits)];
      store.freezeClock();
      for (const calls of turns) {
        const one = await joinMany(joined, calls);
        const other: Admission[] = [];
        for (let n = 0; n < calls; n++) other.push(await ask(store, single, {}, admitCall));
        expect(one.map(wordOf)).to.deep.equal(other.map(wordOf));
      }
      for (const { accountId } of [joined, single]) {
        expect((await verifyLedger(store, accountId)).problems).to.deep.equal([]);
      }
      const heldBy = async ({ accountId }: Caller) => (await readSnapshot(store, accountId)).balances.held;
      expect(await heldBy(joined)).to.equal(await heldBy(single));
    };
    await fc.assert(fc.asyncProperty(accountLimits, anyTurns, live), {
      numRuns: Number(process.env.ROUNDS ?? 100),
      endOnFailure: true,
    });
  });

  const standings = [
    ['of a suspended account', { suspended: true }, 'forbidden'],
    ['of an account with an unpaid invoice', { invoice: 'unpaid' }, 'payment_required'],
  ] as const;
  for (const [title, change, refused] of standings) {
    it(`are refused and hold nothing: ${title}`, async () => {
      const caller = await anAccount(store, { credits: 5, ...change });
      for (const answer of await joinMany(caller, 3)) expect(answer).to.deep.include({ refused });
      expect((await readSnapshot(store, caller.accountId)).balances.held).to.equal(0);
    });
  }

  it('are refused and hold nothing while the service is being drained', async () => {
    const caller = await anAccount(store, { credits: 5 });
    await beginDrain(store);
    const answers = await joinMany(caller, 3);
    await endDrain(store);
    for (const answer of answers) expect(answer).to.deep.include({ refused: 'draining' });
    expect((await readSnapshot(store, caller.accountId)).balances.held).to.equal(0);
  });

  it('hold nothing again when their command arrives after each was admitted alone', async () => {
    const late: (() => Promise<unknown>)[] = [];
    const cut = storeOf({
      ...redis.connection,
      eval: (...command) => {
        const send = () => redis.connection.eval(...command);
        if (late.length > 0) return send();
        late.push(send);
        return Promise.reject(new LostAnswer('unavailable'));
      },
    });
    const caller = await anAccount(store, { credits: 9 });
    const ids = [randomUUID(), randomUUID()];
    const answers = await Promise.all(ids.map((id) => join(cut, caller, { id })));
    expect(answers.map((answer) => 'admitted' in answer && answer.admitted)).to.deep.equal(ids);
    expect(await late[0]!()).to.deep.equal(['apart']);
    expect((await readSnapshot(store, caller.accountId)).balances.held).to.equal(2);
    expect((await verifyLedger(store, caller.accountId)).problems).to.deep.equal([]);
  });

  it('are each answered when the record of one of their jobs is damaged', async () => {
    const caller = await anAccount(store, { credits: 2 });
    const ids = [await admitted(store, caller), await admitted(store, caller)];
    await store.connection.send(['HSET', keys.job(ids[0]!), 'asked', '{']);
    const answers = await Promise.all(ids.map((id) => pollJoined(store, caller, id)));
    const seen = answers.map((answer) => 'job' in answer && [answer.job.id, answer.job.unreadable]);
    expect(seen).to.deep.equal([
      [ids[0], ['asked']],
      [ids[1], undefined],
    ]);
  });

  it('are each admitted once when the answer to all of them is lost', async () => {
    const proxy = await startCutRedis(redis);
    const connection = await connect(proxy.url, { log: aLog().log });
    try {
      const cut = storeOf(connection);
      const caller = await anAccount(cut, { credits: 3 });
      const ids = [randomUUID(), randomUUID(), randomUUID()];
      proxy.cutAt(ids[1]!);
      const answers = await Promise.all(ids.map((id) => join(cut, caller, { id })));
      expect(proxy.isCut()).to.equal(true);
      expect(answers.map((answer) => 'admitted' in answer && answer.admitted)).to.deep.equal(ids);
      for (const id of ids) expect(await readJob(cut, id)).to.include({ status: 'QueuedJob' });
      expect((await readSnapshot(cut, caller.accountId)).balances.held).to.equal(3);
      expect((await verifyLedger(cut, caller.accountId)).problems).to.deep.equal([]);
    } finally {
      await connection.close();
      await proxy.stop();
    }
  });
});
