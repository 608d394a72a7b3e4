import { expect } from 'chai';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { channels } from '../../src/store/keys.ts';
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
    const cancelled = await heardOf(() => cancelJob(store(), second, 'Cancelled'));
    expect(cancelled).to.deep.equal([`work ${second.id}`]);
    await cancelJob(store(), await theJob(store(), waiting), 'Cancelled');
    for (const end of leave) await end();
  });
}
