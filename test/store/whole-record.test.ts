import { expect } from 'chai';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys, shortId } from '../../src/store/keys.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { failureOf } from '../support/failure.ts';
import { withWebhook } from '../support/job-scenarios.ts';
import { admitted, anAccount, aRunningJob, completed, holder, lead, type TestStore } from '../support/record.ts';
import { scenarios } from '../support/script-scenarios.ts';
import { contradictions, lastingContradictions } from '../support/whole-record.ts';

describe('the whole record', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    // With an author, so that the audit log is among what is compared.
    store = { ...fresh, actor: { via: 'command', who: 'root', from: 'host' } };
  });
  beforeEach(async () => {
    await lead(store, holder);
  });

  for (const [title, prepare] of Object.entries(scenarios)) {
    it(`has no contradiction after ${title}`, async () => {
      const { step } = await prepare(store);
      await step(store);
      expect(await contradictions(store.connection)).to.deep.equal([]);
    });
  }

  it('is not taken for free of contradictions where it cannot be read', async () => {
    const send = () => Promise.reject(new Error('it cannot be read'));
    expect(await failureOf(lastingContradictions({ send }))).to.have.property('message', 'it cannot be read');
  });

  /** Damages of a record with a job that has ended and one that waits, and what is said of each. */
  const damages: Readonly<Record<string, (ids: Scene) => readonly [command: string[], said: RegExp]>> = {
    'a job that no queue has': ({ accountId, waits }) => [['ZREM', keys.queue(accountId), waits], /waits and queues/],
    'a job that is in no open work': ({ waits }) => [['ZREM', keys.openWork, waits], /open jobs and open work/],
    'a job whose index says otherwise': ({ accountId, waits }) => [
      ['ZINCRBY', keys.jobs(accountId), '1', shortId(waits)],
      /and its index/,
    ],
    'a held credit too many': ({ accountId }) => [['HINCRBY', keys.account(accountId), 'held', '1'], /held credits/],
    'a slot that nothing has': ({ accountId }) => [
      ['HINCRBY', keys.account(accountId), 'running', '1'],
      /running jobs/,
    ],
    'an account without its turn': ({ accountId }) => [['ZREM', keys.ready, accountId], /has its turn/],
    'an ended job that no index has': ({ ended }) => [['ZREM', keys.ended, shortId(ended)], /ended jobs and their/],
    'a webhook that nobody sends': () => [['DEL', keys.webhooks], /webhooks that are due/],
    'an end whose receiver is not told': ({ ended }) => [['DEL', keys.webhook(ended)], /has ended with a receiver/],
    'a charge that the ledger lost': ({ accountId }) => [['DEL', keys.ledger(accountId)], /without a charge/],
    'a ledger that no index has': () => [['DEL', keys.ledgerStreams], /ledger_streams/],
    'a plan with a user too many': ({ plan }) => [['HINCRBY', keys.planUsers, plan, '1'], /users of plans/],
    'a key that opens no account': ({ accountId }) => [['DEL', keys.keyring(accountId)], /keys and keyrings/],
  };
  for (const [title, damage] of Object.entries(damages)) {
    it(`is seen to have ${title}`, async () => {
      const scene = await aScene(store);
      expect(await contradictions(store.connection)).to.deep.equal([]);
      const [command, said] = damage(scene);
      await store.connection.send(command);
      expect((await contradictions(store.connection)).join('\n')).to.match(said);
    });
  }
});

type Scene = Awaited<ReturnType<typeof aScene>>;

async function aScene(store: TestStore) {
  const { accountId, plan, ...caller } = await anAccount(store, { quota: 5 });
  const ended = await aRunningJob(store, { accountId, ...caller }, withWebhook);
  await settleJob(store, holder, ended, completed);
  return { accountId, plan, ended: ended.id, waits: await admitted(store, { accountId, ...caller }) };
}
