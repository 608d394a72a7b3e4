import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { makePersonSecret, personIdOf } from '../../src/model/person.ts';
import { countAuthFailure } from '../../src/store/access/count-auth-failure.ts';
import { listBlocks } from '../../src/store/access/list-blocks.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { noteStoring } from '../../src/store/jobs/note-storing.ts';
import { keys } from '../../src/store/keys.ts';
import { countSignIn } from '../../src/store/people/count-sign-in.ts';
import { mailSignInLink } from '../../src/store/people/mail-sign-in-link.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { advanceWith, aRunner } from '../support/advance.ts';
import { invited } from '../support/browser-session.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';
import { admitted, anAccount, aRunningJob, holder, type TestStore, theJob } from '../support/record.ts';

const day = 86_400_000;
const ahead = 400 * day;

describe('after the clock of Redis was ahead by 400 days and is right again', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });

  it('the hold of a synchronous call whose API died meanwhile is released', async () => {
    store.advance(ahead);
    const caller = await anAccount(store, { credits: 1 });
    await admitted(store, caller, { work: { holdMs: 65_000 } });
    store.advance(-ahead);
    expect((await sweepRecord(store, { job: 30 * day, line: 90 * day })).calls).to.equal(1);
    await removeAccount(store, caller.accountId, caller.slug);
  });

  it('D75: a job that began to wait for its file meanwhile is tried again a minute later, and not when that day comes', async () => {
    store.advance(ahead);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const delivered = { ...someDelivered(1), key: `${job.id}/1/media.mp4` };
    await noteStoring(store, holder, job, { metadata: someMetadata, delivered });
    store.advance(-ahead);
    const advance = advanceWith(store, aRunner({}));
    await advance(job.id);
    expect((await theJob(store, job.id)).storing_since).to.be.at.most(store.clock.now());
    store.advance(60_000);
    await advance(job.id);
    expect(await theJob(store, job.id)).to.include({ storing_since: null, failures: 1 });
  });

  it('D38: an address that was blocked meanwhile is not, and its failures of then count no more', async () => {
    const fail = () => countAuthFailure(store, '192.0.2.7', { maxFailures: 2, windowMs: day / 2, blockMs: day / 4 });
    const blocked = async () => (await listBlocks(store)).map(({ until }) => (until - store.clock.now()) / day);
    store.advance(ahead);
    for (let n = 0; n < 3; n++) await fail();
    expect(await blocked()).to.have.length(1);
    store.advance(-ahead);
    expect(await blocked()).to.deep.equal([]);
    expect(await fail()).to.deep.equal({ failures: 1, until: null });
    await fail();
    const [lasts] = await blocked();
    expect(lasts).to.be.within(0.24, 0.26);
  });

  it('a person who asked for a sign-in link meanwhile gets another one', async () => {
    const email = 'ada@example.com';
    const { accountId } = await anAccount(store);
    await invited(store, accountId, 'owner', email);
    const ask = async () => {
      const secret = makePersonSecret(personIdOf(email), randomBytes(32));
      await mailSignInLink(store, { email, accountId, secret, sealed: '' });
      return store.connection.send(['HDEL', keys.outbox, `link-${personIdOf(email)}`]);
    };
    store.advance(ahead);
    expect([await ask(), await ask()]).to.deep.equal([1, 0]);
    store.advance(-ahead);
    expect([await ask(), await ask()]).to.deep.equal([1, 0]);
  });

  it('sign-ins of a person that failed meanwhile count no more', async () => {
    const count = async () => (await countSignIn(store, 'ada', day)).count;
    store.advance(ahead);
    expect([await count(), await count()]).to.deep.equal([1, 2]);
    store.advance(-ahead);
    expect([await count(), await count()]).to.deep.equal([1, 2]);
  });
});
