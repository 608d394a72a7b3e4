import { expect } from 'chai';
import { packTexts } from '../../src/store/jobs/ended-job.ts';
import { noteStage } from '../../src/store/jobs/note-stage.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { aJob } from '../support/jobs.ts';
import { aDownload, anAccount, aRunningJob, completed, holder, type TestStore } from '../support/record.ts';

const parent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
const traced = { work: { ...aDownload, trace: parent } };

describe('the trace of a job', () => {
  let store: TestStore;
  eachWithEmptyRecord((given) => {
    store = given;
  });

  it('is kept from its admission until after its end', async () => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }), traced);
    expect(job.trace).to.deep.equal({ parent, stages: [] });
    await settleJob(store, holder, job, completed);
    expect((await readJob(store, job.id))?.trace).to.deep.equal({ parent, stages: [] });
  });

  it('leaves no mark in the record of a job that is not traced', async () => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    expect(job.trace).to.equal(null);
    const fields = await store.connection.read(['HGETALL', keys.job(job.id)]);
    expect(JSON.stringify(fields)).not.to.match(/trace|stages/);
    expect(packTexts(job.id, job)).to.have.length.below(
      packTexts(job.id, { ...job, trace: { parent, stages: [] } }).length,
    );
    await settleJob(store, holder, job, completed);
    expect((await readJob(store, job.id))?.trace).to.equal(null);
  });

  it('knows when the open attempt reached each stage first', async () => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }), traced);
    const since = store.clock.now();
    for (const stage of ['inspect', 'fetch', 'inspect', 'fetch', 'upload']) await noteStage(store, job.id, 1, stage);
    await noteStage(store, job.id, 2, 'inspect');
    const stages = (await readJob(store, job.id))?.trace?.stages ?? [];
    expect(stages.map(({ attempt, stage }) => `${attempt} ${stage}`)).to.deep.equal([
      '1 inspect',
      '1 fetch',
      '1 upload',
    ]);
    for (const { at } of stages) expect(at).to.be.within(since - 1000, store.clock.now() + 1000);
  });

  it('makes nothing of a job that has ended', async () => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }), traced);
    await settleJob(store, holder, job, completed);
    await noteStage(store, job.id, 1, 'upload');
    await noteStage(store, aJob().id, 1, 'upload');
    expect(await store.connection.read(['HGETALL', keys.job(job.id)])).to.deep.equal([]);
  });
});
