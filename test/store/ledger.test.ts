import { join } from 'node:path';
import { expect } from 'chai';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import type { Connection } from '../../src/store/redis/connection.ts';
import { runProgram } from '../support/operator.ts';
import { admitted, anAccount, aPack, aRunningJob, completed, holder, lead, storeOf } from '../support/record.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { root } from '../support/tree.ts';
import { watchTurns } from '../support/turn-length.ts';

const entries = 100_000;
const pages = 40;
/** The program itself takes up to 27 of them; all entries at once would take more than are left. */
const heapMegabytes = 48;

describe('a long ledger', () => {
  let redis: TestRedis;
  let accountId: string;
  before(async () => {
    redis = await startTestRedis();
    ({ accountId } = await anAccount(storeOf(redis.connection)));
    const grants = `
      for n = 1, ${entries / pages} do
        local id = redis.call('XADD', KEYS[1], '*', 'at', 1, 'kind', 'grant', 'balance', 'credits', 'amount', 1, 'job', '', 'pack', '')
        redis.call('HSET', KEYS[2], 'last_entry', id)
        redis.call('HINCRBY', KEYS[2], 'credits_given', 1)
      end`;
    const touched = [keys.ledger(accountId), keys.account(accountId)];
    for (let n = 0; n < pages; n++) await redis.connection.send(['EVAL', grants, '2', ...touched]);
  });
  after(() => redis.stop());

  it(`of ${entries} entries is verified by a process that has ${heapMegabytes} MB`, async () => {
    const program = join(root, 'test/support/archive-child.ts');
    const line = [`--max-old-space-size=${heapMegabytes}`, program, 'verify', redis.url, accountId];
    const { code, out, err } = await runProgram(process.execPath, line, { PATH: process.env.PATH ?? '' });
    expect({ code, out: out && JSON.parse(out) }, err).to.deep.equal({ code: 0, out: { entries, problems: [] } });
  });

  it('lets other work of its process run after each 500 entries, and within 50 ms, while it is verified', async () => {
    const store = storeOf(redis.connection);
    let [atOnce, most, isOver] = [0, 0, false];
    const turn = () => {
      most = Math.max(most, atOnce);
      atOnce = 0;
      if (!isOver) setImmediate(turn);
    };
    turn();
    const read: Connection['read'] = async (command) => {
      const reply = await store.connection.read(command);
      if (command[0] === 'XRANGE' && Array.isArray(reply)) atOnce += reply.length;
      return reply;
    };
    const endWatch = watchTurns();
    const verified = await verifyLedger({ ...store, connection: { ...store.connection, read } }, accountId);
    isOver = true;
    expect(verified).to.deep.equal({ entries, problems: [] });
    expect(most).to.be.within(1, 500);
    expect(endWatch()).to.be.below(50);
  });
});

describe('the check of a ledger', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());

  it('reports a pack that is left and that no charge would find, and an exhausted one that is still drawn from', async () => {
    const store = storeOf(redis.connection);
    await lead(store, holder);
    const caller = await anAccount(store);
    const [full, used] = [await aPack(store, caller.accountId, 2, 1), await aPack(store, caller.accountId, 1, 0)];
    await settleJob(store, holder, await aRunningJob(store, caller), completed);
    expect((await verifyLedger(store, caller.accountId)).problems).to.deep.equal([]);
    await store.connection.send(['ZREM', keys.packQueue(caller.accountId), full]);
    await store.connection.send(['ZADD', keys.packQueue(caller.accountId), '1', used]);
    expect((await verifyLedger(store, caller.accountId)).problems).to.have.members([
      `Pack ${full} has 2 left, but no charge draws from it`,
      `Pack ${used} has nothing left, but charges draw from it`,
    ]);
  });

  it('reports a hold that is missing while another one is that of a synchronous call', async () => {
    const store = storeOf(redis.connection);
    const caller = await anAccount(store, { credits: 3 });
    await admitted(store, caller);
    await admitted(store, caller, { work: { holdMs: 65_000 } });
    expect((await verifyLedger(store, caller.accountId)).problems).to.deep.equal([]);
    await store.connection.send(['HINCRBY', keys.account(caller.accountId), 'held', '-1']);
    expect((await verifyLedger(store, caller.accountId)).problems).to.deep.equal([
      'What is held is 1 in the balances and 2 by the open holds',
    ]);
  });

  it('reports an entry behind the last one that the balances contain', async () => {
    const store = storeOf(redis.connection);
    const { accountId } = await anAccount(store, { credits: 3 });
    const fields = ['at', '1', 'kind', 'g', 'balance', 'c', 'amount', '5', 'job', '', 'pack', ''];
    const entry = await store.connection.send(['XADD', keys.ledger(accountId), '*', ...fields]);
    expect((await verifyLedger(store, accountId)).problems.join()).to.match(
      new RegExp(`^The newest entry is ${entry}, but [0-9-]+ is the last one in the balances$`),
    );
  });
});
