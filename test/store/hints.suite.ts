import { expect } from 'chai';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { markWatched } from '../../src/store/jobs/mark-watched.ts';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { channels, keys } from '../../src/store/keys.ts';
import {
  aDownload,
  admitted,
  anAccount,
  aRunningJob,
  completed,
  holder,
  startNext,
  type TestStore,
  theJob,
} from '../support/record.ts';
import { until } from '../support/until.ts';

const webhook = { url: 'https://example.com/hook', receiver: 'example.com', authorization: 'sealed' };

/** Hints that replace polling. */
export function hintsSuite(store: () => TestStore): void {
  it('the end of a job is published only when another job waits, a webhook is due, or a running job was cancelled', async () => {
    while (await startNext(store()));
    const heard: string[] = [];
    const hear = (channel: 'work' | 'webhooks') =>
      store().connection.subscribe(channels[channel], (word) => heard.push(`${channel} ${word}`));
    const leave = [await hear('work'), await hear('webhooks')];
    const hearAll = async () => {
      await store().connection.send(['PUBLISH', channels.work, 'last']);
      await until(() => heard.includes('work last'), 5, 'the last hint is heard');
      return heard.splice(0).filter((word) => word !== 'work last');
    };
    const heardOf = async (act: () => Promise<unknown>): Promise<string[]> => {
      await hearAll();
      await act();
      return hearAll();
    };
    const caller = await anAccount(store(), { credits: 9, concurrency: 2 });
    const aJob = (asked = {}) => aRunningJob(store(), caller, { work: { ...aDownload, ...asked } });
    const [plain, hooked] = [await aJob(), await aJob({ webhook })];
    while (await startNext(store()));
    expect(await heardOf(() => settleJob(store(), holder, plain, completed)), 'nothing waits').to.deep.equal([]);
    expect(await heardOf(() => settleJob(store(), holder, hooked, completed))).to.deep.equal(['webhooks ']);
    const [first, second] = [await aJob(), await aJob()];
    const waiting = await admitted(store(), caller);
    expect(await heardOf(() => settleJob(store(), holder, first, completed)), 'one waits').to.deep.equal(['work ']);
    const cancelled = await heardOf(() => cancelJob(store(), second));
    expect(cancelled).to.deep.equal([`work ${second.id}`]);
    await cancelJob(store(), await theJob(store(), waiting));
    for (const end of leave) await end();
  });

  it('the changes of a job are published from the moment at which it is marked as watched, and none before', async () => {
    const job = await aRunningJob(store(), await anAccount(store(), { credits: 9 }));
    let heard = 0;
    const end = await store().connection.subscribe(channels.job(job.id), () => heard++);
    const hearOwn = async (wanted: number) => {
      await store().connection.send(['PUBLISH', channels.job(job.id), '']);
      await until(() => heard === wanted, 5, `${wanted} hints are heard`);
    };
    const report = { progress: 5, stage: 'download', speed_bytes: null, eta_seconds: null };
    await noteProgress(store(), job, 1, report);
    await hearOwn(1);
    await markWatched(store(), job.id);
    await noteProgress(store(), job, 1, report);
    await settleJob(store(), holder, job, completed);
    await hearOwn(4);
    await markWatched(store(), job.id);
    expect(await store().connection.read(['HGETALL', keys.job(job.id)]), 'of an ended job').to.be.empty;
    await end();
  });
}
