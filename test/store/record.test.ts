import { admitCall } from '../../src/store/access/admit-call.ts';
import { admitJoined, pollJoined } from '../../src/store/access/join-calls.ts';
import { pollJob } from '../../src/store/access/poll-job.ts';
import { prepareSchema } from '../../src/store/schema.ts';
import { holder, lead, storeOf, type TestStore } from '../support/record.ts';
import { startTestCluster, startTestRedis } from '../support/redis.ts';
import { admitSuite } from './admit.suite.ts';
import { authorizeSuite } from './authorize.suite.ts';
import { deliverySuite } from './delivery.suite.ts';
import { fewWorkersSuite } from './few-workers.suite.ts';
import { hintsSuite } from './hints.suite.ts';
import { jobsSuite } from './jobs.suite.ts';
import { keyQuotaSuite } from './key-quota.suite.ts';
import { leadSuite } from './lead.suite.ts';
import { moneySuite } from './money.suite.ts';
import { pollSuite } from './poll.suite.ts';
import { purchasesSuite } from './purchases.suite.ts';
import { shareSuite } from './share.suite.ts';
import { sweepSuite } from './sweep.suite.ts';
import { verdictSuite } from './verdict.suite.ts';

const kinds = [
  { name: 'one redis', start: () => startTestRedis() },
  { name: 'a cluster of three', start: () => startTestCluster({ fsync: 'no' }) },
];

for (const { name, start } of kinds) {
  describe(`the record in ${name}`, () => {
    let redis: Awaited<ReturnType<typeof start>>;
    let store: TestStore;
    before(async () => {
      redis = await start();
    });
    after(() => redis.stop());
    beforeEach(async () => {
      store = storeOf(redis.connection);
      await prepareSchema(store);
      await lead(store, holder);
    });

    describe('authorization of calls', () => authorizeSuite(() => store));
    for (const [calls, admit] of [
      ['', admitCall],
      [' of joined calls', admitJoined],
    ] as const) {
      describe(`admission${calls}`, () => admitSuite(() => store, admit));
      describe(`quotas of keys${calls}`, () => keyQuotaSuite(() => store, admit));
    }
    describe('polls', () => pollSuite(() => store, pollJob));
    describe('joined polls', () => pollSuite(() => store, pollJoined));
    describe('jobs', () => jobsSuite(() => store));
    describe('leadership', () => leadSuite(() => store));
    describe('hints', () => hintsSuite(() => store));
    describe('a verdict', () => verdictSuite(() => store));
    describe('fair share', () => shareSuite(() => store));
    describe('few workers', () => fewWorkersSuite(() => store));
    describe('money', () => {
      moneySuite(() => store);
      describe('purchases', () => purchasesSuite(() => store));
    });
    describe('delivery', () => deliverySuite(() => store));
    describe('sweep', () => sweepSuite(() => store));
  });
}
