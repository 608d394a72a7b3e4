import { expect } from 'chai';
import { packTexts } from '../../src/store/jobs/ended-job.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
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
    expect(job.trace).to.deep.equal({ parent });
    await settleJob(store, holder, job, completed);
    expect((await readJob(store, job.id))?.trace).to.deep.equal({ parent });
  });

  it('leaves no mark in the record of a job that is not traced', async () => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    expect(job.trace).to.equal(null);
    const fields = await store.connection.read(['HGETALL', keys.job(job.id)]);
    expect(JSON.stringify(fields)).not.to.match(/trace/);
    expect(packTexts(job)).to.have.length.below(packTexts({ ...job, trace: { parent } }).length);
    await settleJob(store, holder, job, completed);
    expect((await readJob(store, job.id))?.trace).to.equal(null);
  });
});
