import { expect } from 'chai';
import type { Job } from '../../src/model/job.ts';
import { readTimeline } from '../../src/store/job-timeline.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { anAccount, aRunningJob, completed, failed, holder, type TestStore, theJob } from '../support/record.ts';

describe('the ledger in the timeline of a job', () => {
  let store: TestStore;
  let caller: Awaited<ReturnType<typeof anAccount>>;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });
  beforeEach(async () => {
    caller = await anAccount(store, { credits: 9 });
  });

  const settled = async (end: typeof completed) => {
    const { id } = await aRunningJob(store, caller);
    await settleJob(store, holder, await theJob(store, id), end);
    return theJob(store, id);
  };
  /** Puts charges of other jobs into the ledger, whose ids begin with this time, or are the next ones. */
  const put = async (count: number, time?: number) => {
    const charge = ['at', String(store.clock.now()), 'kind', 'c', 'balance', 'c', 'amount', '1', 'job', 'other'];
    const idOf = (n: number) => (time === undefined ? '*' : `${time}-${n}`);
    const commands = Array.from({ length: count }, (_, n) => [
      'XADD',
      keys.ledger(caller.accountId),
      idOf(n),
      ...charge,
    ]);
    // Not all at once: a busy machine would not answer the last ones in time.
    for (let sent = 0; sent < count; sent += 100) {
      await Promise.all(commands.slice(sent, sent + 100).map((command) => store.connection.send(command)));
    }
  };
  /** Returns what the timeline says of the ledger, and how many entries were read for it. */
  const told = async (job: Job) => {
    let entries = 0;
    const read: TestStore['connection']['read'] = async (command) => {
      const reply = await store.connection.read(command);
      if (command[1] === keys.ledger(job.account)) entries += (reply as unknown[]).length;
      return reply;
    };
    const events = await readTimeline(
      { ...store, connection: { ...store.connection, read } },
      { job, attempts: [], unreadable: [] },
    );
    return { texts: events.filter(({ source }) => source === 'ledger').map(({ text }) => text), entries };
  };

  it('is read at the end of the job alone, however many charges are newer', async () => {
    const [charged, released, running] = [
      await settled(completed),
      await settled(failed),
      await aRunningJob(store, caller),
    ];
    await put(5_000);
    const { texts, entries } = await told(charged);
    expect(texts).to.deep.equal(['1 credit is charged, from single credits']);
    expect(entries).to.be.at.most(100);
    for (const job of [released, running]) expect(await told(job), job.status).to.deep.equal({ texts: [], entries: 0 });
  });

  it('has the charge of a job that ended after the clock of Redis went back', async () => {
    await put(1_000, store.clock.now() + 3_600_000);
    const job = await settled(completed);
    await put(5_000);
    expect((await told(job)).texts).to.deep.equal(['1 credit is charged, from single credits']);
  });

  it('is read no further than 2,000 entries when the charge of a job is missing', async () => {
    const job = await settled(completed);
    await store.connection.send(['DEL', keys.ledger(job.account)]);
    await put(5_000);
    expect(await told(job)).to.deep.equal({ texts: [], entries: 2_000 });
  });
});
