import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { readPurchase } from '../../src/store/money/read-purchases.ts';
import { makeRandom } from '../support/random.ts';
import { aRunningJob, completed, holder, lead, storeOf, type TestStore } from '../support/record.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { seed } from '../support/seed.ts';
import { type StripeStandIn, startStripe } from '../support/stripe-stand-in.ts';
import { aBuyer } from '../support/topups.ts';
import { until } from '../support/until.ts';

const program = join(import.meta.dirname, '../support/purchase-child.ts');
const rounds = Number(process.env.ROUNDS ?? 0) > 0 ? 40 : 1;
const random = makeRandom(seed);

describe('a purchase', function () {
  this.timeout(rounds * 300_000);
  let redis: TestRedis;
  let store: TestStore;
  let stripe: StripeStandIn;
  const children = new Set<ChildProcess>();
  before(async () => {
    redis = await startTestRedis({ fsync: 'always' });
  });
  after(() => redis.stop());
  beforeEach(async () => {
    store = storeOf(redis.connection);
    await lead(store, holder);
    stripe = await startStripe();
  });
  afterEach(async () => {
    await Promise.all([...children].map(kill));
    await stripe.stop();
  });

  /** A controller's purchases, in a process of its own. */
  const start = async (): Promise<ChildProcess> => {
    const child = spawn(process.execPath, [program, redis.url, stripe.url], { stdio: ['ignore', 'pipe', 'inherit'] });
    children.add(child);
    await once(child.stdout!, 'data');
    return child;
  };
  const kill = async (child: ChildProcess): Promise<void> => {
    children.delete(child);
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };

  it('is made once, with one invoice, when 50 completions cross the threshold at once and two controllers are killed', async () => {
    for (let round = 0; round < rounds; round++) {
      const buyer = await aBuyer(store, {}, { quota: 60 });
      const before = Number(await store.connection.send(['LLEN', keys.invoices]));
      const jobs = [];
      for (let n = 0; n < 50; n++) jobs.push(await aRunningJob(store, buyer));
      const [from, asked] = [stripe.charges.length, stripe.asked.length];
      stripe.faults.push('after', 'after', 'after', 'after');
      let controllers = await Promise.all([start(), start()]);
      // On a busy machine two processes take longer to start than the lead lasts.
      await lead(store, holder);
      const settled = await Promise.all(jobs.map((job) => settleJob(store, holder, job, completed)));
      expect(settled.filter(({ done }) => !done)).to.deep.equal([]);
      const isDone = async () => (await readSnapshot(store, buyer.accountId)).balances.packs.length > 0;
      // One of the two dies at each request: before it, within its repetitions, or before its report.
      for (let turn = 0; turn < 6 && !(await isDone()); turn++) {
        const isNext = async () => stripe.asked.length > asked + turn || (await isDone());
        await until(isNext, 20, 'the next request or the pack');
        await pause(random() * 20);
        const survivor = controllers[(turn + 1) % 2]!;
        await kill(controllers[turn % 2]!);
        controllers = turn % 2 === 0 ? [await start(), survivor] : [survivor, await start()];
      }
      await until(isDone, 20, 'the pack');
      await Promise.all(controllers.map(kill));
      expect(stripe.charges.length - from, 'charges').to.equal(1);
      expect(new Set(stripe.asked.slice(asked)).size, 'ids').to.equal(1);
      const { packs } = (await readSnapshot(store, buyer.accountId)).balances;
      expect(packs.map(({ total }) => total)).to.deep.equal([10]);
      expect(Number(await store.connection.send(['LLEN', keys.invoices]))).to.equal(before + 1);
      expect(await readPurchase(store, buyer.accountId, packs[0]!.id)).to.include({
        invoice: before + 1,
        state: 'paid',
      });
      const mails = (await store.connection.send(['HKEYS', keys.outbox])) as string[];
      expect(mails.filter((id) => id.startsWith(`invoice-${buyer.accountId}`))).to.have.length(1);
      expect((await verifyLedger(store, buyer.accountId)).problems).to.deep.equal([]);
    }
  });
});
