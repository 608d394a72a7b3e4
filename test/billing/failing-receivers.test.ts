import { expect } from 'chai';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { endWebhook } from '../../src/store/webhooks/end-webhook.ts';
import { takeWebhook } from '../../src/store/webhooks/take-webhook.ts';
import { invited } from '../support/browser-session.ts';
import { eachWithMailedRecord, type MailSender } from '../support/mail-sender.ts';
import { aDownload, anAccount, aRunningJob, completed, holder, type TestStore } from '../support/record.ts';

describe('mails about failing receivers', () => {
  let store: TestStore;
  let sender: MailSender;
  eachWithMailedRecord((made, given) => {
    [store, sender] = [made, given];
  });

  /** Ends webhooks of a receiver one after the other; returns how many mails tell of failing ones. */
  const deliverTo = async (
    caller: Awaited<ReturnType<typeof anAccount>>,
    path: string,
    verdict: 'refused' | 'delivered',
    times = 1,
  ) => {
    const receiver = `${caller.accountId}@hooks.example/${path}`;
    const webhook = { url: `https://hooks.example/${path}`, receiver, authorization: '' };
    for (let n = 0; n < times; n++) {
      const job = await aRunningJob(store, caller, { work: { ...aDownload, webhook } });
      await settleJob(store, holder, job, completed);
      const due = { receiver, id: job.id };
      const attempt = (await takeWebhook(store, due, 1_000))?.attempt ?? 0;
      await endWebhook(store, due, attempt, { verdict, status: verdict === 'refused' ? 410 : 200 }, 1);
    }
    await sender.send();
    return sender.box.mails.filter(({ mail }) => mail.subject?.includes('keep failing')).length;
  };

  it('tell owners once of a receiver whose webhooks keep failing, and again only a day later', async () => {
    const caller = await anAccount(store, { credits: 50 });
    await invited(store, caller.accountId, 'owner', 'ada@example.com');
    const deliver = (verdict: 'refused' | 'delivered', times = 1) => deliverTo(caller, 'a', verdict, times);
    expect(await deliver('refused', 4)).to.equal(0);
    expect(await deliver('delivered')).to.equal(0);
    expect(await deliver('refused', 4)).to.equal(0);
    expect(await deliver('refused')).to.equal(1);
    const { mail, to } = sender.box.mails.find((one) => one.mail.subject?.includes('keep failing'))!;
    expect([to, mail.text]).to.satisfy(
      ([reader, text]: string[]) => reader === 'ada@example.com' && text!.includes('410'),
    );
    expect(mail.text)
      .to.include('hooks.example/a')
      .and.include('The last 5 webhooks')
      .and.not.include(caller.accountId);
    expect(await deliver('refused', 6)).to.equal(1);
    store.advance(25 * 3_600_000);
    expect(await deliver('refused')).to.equal(2);
  });

  it('tell owners again once the clock of Redis is right that was ahead when they were told', async () => {
    const caller = await anAccount(store, { credits: 50 });
    await invited(store, caller.accountId, 'owner', 'ada@example.com');
    const ahead = 20 * 24 * 3_600_000;
    store.advance(ahead);
    expect(await deliverTo(caller, 'a', 'refused', 5)).to.equal(1);
    store.advance(-ahead);
    expect(await deliverTo(caller, 'a', 'refused')).to.equal(2);
    expect(await deliverTo(caller, 'a', 'refused')).to.equal(2);
  });

  it('tell owners of a failing receiver though 100 others failed once before, and of 100 a day at most', async () => {
    const caller = await anAccount(store, { credits: 50 });
    await invited(store, caller.accountId, 'owner', 'ada@example.com');
    const key = keys.failingHooks(caller.accountId);
    const fill = (entry: (n: number) => string) =>
      store.connection.send(['HSET', key, ...Array.from({ length: 100 }, (_, n) => [`old${n}`, entry(n)]).flat()]);
    const now = store.clock.now();
    await fill((n) => `1 0 ${now - 1 - ((n + 50) % 100)}`);
    expect(await deliverTo(caller, 'new', 'refused', 5)).to.equal(1);
    expect(await store.connection.send(['HLEN', key])).to.equal(100);
    // The one that failed longest ago went.
    expect(await store.connection.send(['HEXISTS', key, 'old49'])).to.equal(0);
    await store.connection.send(['DEL', key]);
    await fill(() => `5 ${now} ${now}`);
    expect(await deliverTo(caller, 'other', 'refused', 5)).to.equal(1);
    store.advance(25 * 3_600_000);
    expect(await deliverTo(caller, 'other', 'refused', 5)).to.equal(2);
  });

  it('tell of receivers that fail, of which nothing is kept once they take a webhook, a day after a mail', async () => {
    const caller = await anAccount(store, { credits: 50 });
    const key = keys.failingHooks(caller.accountId);
    const kept = () => store.connection.send(['HLEN', key]);
    await deliverTo(caller, 'a', 'refused', 4);
    await deliverTo(caller, 'a', 'delivered');
    expect(await kept()).to.equal(0);
    await deliverTo(caller, 'a', 'refused', 5);
    await deliverTo(caller, 'a', 'delivered');
    expect(await kept()).to.equal(1);
    store.advance(25 * 3_600_000);
    await deliverTo(caller, 'a', 'delivered');
    expect(await kept()).to.equal(0);
  });
});
