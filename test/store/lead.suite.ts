import { expect } from 'chai';
import type { Job } from '../../src/model/job.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { isLeaderOff, leaveLead, takeLead } from '../../src/store/jobs/leadership.ts';
import { noteStoring } from '../../src/store/jobs/note-storing.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { startAttempt } from '../../src/store/jobs/start-attempt.ts';
import { keys } from '../../src/store/keys.ts';
import {
  admitted,
  anAccount,
  aRunningJob,
  completed,
  holder,
  lead,
  type TestStore,
  takeJob,
  theJob,
} from '../support/record.ts';

/** The terms of controllers that lead. */
export function leadSuite(store: () => TestStore): void {
  const checkPowerless = async (term: string, job: Job) => {
    const refused = { refused: 'not_leading' };
    const why = { counts: 'failure', code: 'timeout', notBefore: 0 } as const;
    expect(await settleJob(store(), term, job, completed)).to.deep.equal(refused);
    expect(await takeJob(store(), term, 1_000_000)).to.equal(null);
    expect(await startAttempt(store(), term, job, 2)).to.deep.equal(refused);
    expect(await retryJob(store(), term, job, why)).to.deep.equal(refused);
    expect(await noteStoring(store(), term, job, { metadata: {}, delivered: {} })).to.deep.equal(refused);
    expect(await theJob(store(), job.id)).to.deep.equal(job);
  };

  it('refuses every write of a controller that does not lead', async () => {
    const caller = await anAccount(store(), { credits: 9 });
    const job = await aRunningJob(store(), caller);
    const waiting = await admitted(store(), caller);
    await lead(store(), holder);
    const another = { holder: 'another', term: 'another/0', isOff: false };
    expect(await takeLead(store(), another)).to.equal(null);
    await checkPowerless('another/0', job);
    await leaveLead(store(), holder);
    const term = String(await takeLead(store(), another));
    expect(await settleJob(store(), holder, job, completed)).to.deep.equal({ refused: 'not_leading' });
    await leaveLead(store(), term);
    await cancelJob(store(), await theJob(store(), waiting));
  });

  it('refuses every write that a controller decided in an earlier term, although it leads again', async () => {
    const caller = await anAccount(store(), { credits: 9 });
    const job = await aRunningJob(store(), caller);
    await leaveLead(store(), holder);
    const [first, other] = ['one', 'other'].map((name) => ({ holder: name, term: '', isOff: false }));
    const term = String(await takeLead(store(), first!));
    expect(await takeLead(store(), { ...first!, term })).to.equal(term);
    await leaveLead(store(), term);
    await leaveLead(store(), String(await takeLead(store(), other!)));
    const next = String(await takeLead(store(), { ...first!, term }));
    expect(next).not.to.equal(term);
    await checkPowerless(term, job);
    expect(await settleJob(store(), next, job, completed)).to.have.property('done', true);
    await leaveLead(store(), next);
  });

  it('hands the lead of a controller whose clock is off to one whose clock is not, and to no other', async () => {
    const [off, alsoOff, right] = [true, true, false].map((isOff, n) => ({ holder: `c${n}`, term: '', isOff }));
    await store().connection.send(['DEL', keys.lead]);
    const term = String(await takeLead(store(), off!));
    expect(await takeLead(store(), alsoOff!)).to.equal(null);
    expect(await isLeaderOff(store().connection)).to.equal(true);
    const taken = await takeLead(store(), right!);
    expect(await isLeaderOff(store().connection)).to.equal(false);
    expect(taken).to.match(/^c2\//);
    expect(await takeLead(store(), { ...off!, term })).to.equal(null);
    expect(await takeLead(store(), { ...off!, term, isOff: false })).to.equal(null);
    await leaveLead(store(), String(taken));
  });

  it('lets no lease of a dead controller outlast two leases when the clock of Redis has gone back', async () => {
    await store().connection.send(['SET', keys.lead, 'dead/1', 'PX', '86400000']);
    const term = String(await takeLead(store(), { holder: 'alive', term: '', isOff: false }));
    expect(term).to.match(/^alive\//);
    await leaveLead(store(), term);
  });
}
