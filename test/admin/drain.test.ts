import { expect } from 'chai';
import { waitForEnd } from '../../src/admin/drain-commands.ts';
import type { OpenWork } from '../../src/store/access/drain.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { listOverdue } from '../../src/store/jobs/open-work.ts';
import { type Operator, startOperator } from '../support/operator.ts';
import { admitted, anAccount, aRunningJob, ask, theJob } from '../support/record.ts';

const empty = { queued: 0, running: 0, recording: 0, delayed: 0, calls: 0, webhooks_due: 0 };

describe('commands for a drain', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator();
  });
  after(() => operator.stop());

  const drain = (...line: string[]) => operator.json('drain', ...line);

  it('begin it once, say what is open until nothing is, and end it', async () => {
    expect(await drain('status')).to.deep.equal({ draining: false, since: null, ...empty, done: false });
    const caller = await anAccount(operator.store, { credits: 9 });
    const running = await aRunningJob(operator.store, caller);
    const queued = await admitted(operator.store, caller);
    await admitted(operator.store, caller, { work: { holdMs: 60_000 } });
    const began = await drain('on');
    expect(began).to.deep.include({ draining: true, ...empty, queued: 1, running: 1, calls: 1, done: false });
    expect(began.since).to.match(/^20\d\d-.*Z$/);
    expect(await drain('on')).to.deep.equal(began);
    const { code, out } = await operator.run(['drain', 'status', '--wait', '0']);
    expect(code).to.equal(1);
    expect(out)
      .to.match(/^draining +yes$/m)
      .and.match(/^queued +1$/m)
      .and.match(/^done +no$/m);
    await cancelJob(operator.store, await theJob(operator.store, running.id));
    await cancelJob(operator.store, await theJob(operator.store, queued));
    await operator.store.connection.send(['DEL', '{trawl}:calls']);
    expect(await drain('status', '--wait', '60')).to.deep.equal({ ...began, ...empty, done: true });
    expect(await ask(operator.store, caller)).to.deep.include({ refused: 'draining' });
    expect(await drain('off')).to.deep.equal({ draining: false, since: null, ...empty, done: false });
    await admitted(operator.store, caller);
  });

  it('wait until the last job has ended', async () => {
    const caller = await anAccount(operator.store, { credits: 1 });
    const job = await theJob(operator.store, await admitted(operator.store, caller));
    const told = Promise.withResolvers<OpenWork>();
    const waiting = waitForEnd(operator.store, 60_000, told.resolve);
    expect((await told.promise).queued).to.equal(2);
    for (const one of [job, ...(await queuedBefore(job.id))]) await cancelJob(operator.store, one);
    expect((await waiting).queued).to.equal(0);
  });

  const queuedBefore = async (id: string) => {
    const ids = await listOverdue(operator.store, operator.store.clock.now() + 1);
    return Promise.all(ids.filter((other) => other !== id).map((other) => theJob(operator.store, other)));
  };
});
