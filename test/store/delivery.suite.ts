import { expect } from 'chai';
import { maxTriedLength, maxWebhookAttempts, type WebhookAttempt } from '../../src/model/webhook-attempts.ts';
import { clearBlock } from '../../src/store/access/clear-block.ts';
import { countAuthFailure } from '../../src/store/access/count-auth-failure.ts';
import { listBlocks } from '../../src/store/access/list-blocks.ts';
import { readTimeline } from '../../src/store/job-timeline.ts';
import { readStored } from '../../src/store/jobs/read-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { layouts, prepareSchema } from '../../src/store/schema.ts';
import { dueWebhooks } from '../../src/store/webhooks/due-webhooks.ts';
import { endWebhook } from '../../src/store/webhooks/end-webhook.ts';
import { readDelivery } from '../../src/store/webhooks/read-deliveries.ts';
import { replayWebhook } from '../../src/store/webhooks/replay-webhook.ts';
import { returnWebhook } from '../../src/store/webhooks/return-webhook.ts';
import { takeWebhook } from '../../src/store/webhooks/take-webhook.ts';
import { aDownload, anAccount, aRunningJob, completed, holder, type TestStore } from '../support/record.ts';

const minutes = 60_000;
const rule = { maxFailures: 3, windowMs: 10 * minutes, blockMs: 15 * minutes };
let address = 0;

/** Webhooks, blocked addresses and the record's layout. */
export function deliverySuite(store: () => TestStore): void {
  describe('webhooks', () => {
    const webhook = { url: 'https://example.com/hook', receiver: 'example.com:443', authorization: '' };
    const due = async () => {
      const caller = await anAccount(store(), { credits: 1 });
      const job = await aRunningJob(store(), caller, { work: { ...aDownload, webhook } });
      await settleJob(store(), holder, job, completed);
      const found = (await dueWebhooks(store(), 10_000)).due.find((one) => one.id === job.id);
      if (!found) throw new Error('the webhook is not due');
      return found;
    };

    it('lets one of many senders take an attempt', async () => {
      const one = await due();
      expect(one.receiver).to.equal('example.com:443');
      const taken = await Promise.all([...Array(10)].map(() => takeWebhook(store(), one, 15_000)));
      expect(taken.flatMap((one) => one?.attempt ?? [])).to.deep.equal([1]);
    });

    it('events-3 limit-webhook D55: has three attempts with the gap between them, and has failed then', async () => {
      const one = await due();
      for (const attempt of [1, 2, 3]) {
        expect((await takeWebhook(store(), one, 15_000))?.attempt).to.equal(attempt);
        const verdict = await endWebhook(store(), one, attempt, { verdict: 'again', status: 500 }, 5000);
        expect(verdict).to.equal(attempt < 3 ? 'again' : 'failed');
        expect(await takeWebhook(store(), one, 15_000)).to.equal(null);
        store().advance(5000);
      }
      expect(await readDelivery(store(), one.id)).to.deep.include({
        state: 'failed',
        attempts: 3,
        last_status: 500,
      });
      expect(await takeWebhook(store(), one, 15_000)).to.equal(null);
    });

    /** Makes the attempts of a webhook up to its end, each of which takes `ms`; returns when each began. */
    const fail = async (one: Awaited<ReturnType<typeof due>>, ms: number, statuses: readonly (number | null)[]) => {
      const begun: number[] = [];
      for (const [n, status] of statuses.entries()) {
        begun.push(store().clock.now());
        expect((await takeWebhook(store(), one, 15_000))?.attempt).to.equal(n + 1);
        store().advance(ms);
        await endWebhook(store(), one, n + 1, { verdict: 'again', status }, 5000);
        store().advance(5000);
      }
      return begun;
    };
    const told = async (jobId: string) => {
      const events = await readTimeline(store(), (await readStored(store(), jobId))!);
      return events.filter(({ source }) => source === 'webhook');
    };

    it('keeps of each attempt when it began, how long it took and its answer, of those before it was sent again, too', async () => {
      const one = await due();
      const begun = await fail(one, 1_200, [500, null, 404]);
      const near = ({ tried = [] }: { tried?: readonly WebhookAttempt[] }) =>
        tried.map(({ at, ms, ...rest }, n) => {
          // The clock of the test goes on meanwhile.
          expect(Math.abs(at - begun[n]!), `begin of attempt ${n + 1}`).to.be.below(60_000);
          expect(ms, `duration of attempt ${n + 1}`).to.be.within(1_200, 61_200);
          return Object.values(rest);
        });
      const three = [
        [1, 500],
        [2, null],
        [3, 404],
      ];
      expect(near((await readDelivery(store(), one.id))!)).to.deep.equal(three);
      const words = (await told(one.id)).map(({ text }) => text.replace(/[\d.]+ s$/, 'some s'));
      expect(words).to.deep.equal([
        'Its webhook is due',
        'Attempt 1 to deliver its webhook had the answer 500 after some s',
        'Attempt 2 to deliver its webhook had no answer after some s',
        'Attempt 3 to deliver its webhook had the answer 404 after some s',
        'Its webhook is failed with the answer 404',
      ]);
      await replayWebhook(store(), one.id, null);
      begun.push(...(await fail(one, 1_200, [503])));
      expect(near((await readDelivery(store(), one.id))!)).to.deep.equal([...three, [1, 503]]);
      expect((await told(one.id)).at(-2)?.text).to.match(
        /^Sent again: attempt 1 to deliver its webhook had the answer 503/,
      );
    });

    it('keeps all attempts of a sending in few bytes, whenever it was', async () => {
      const statuses = Array.from({ length: maxWebhookAttempts }, (_, n) => 500 + n);
      const one = await due();
      await fail(one, 60_000, statuses);
      store().advance(365 * 86_400_000);
      await replayWebhook(store(), one.id, null);
      await fail(one, 60_000, statuses);
      const { tried } = (await readDelivery(store(), one.id))!;
      const last = tried.slice(-maxWebhookAttempts).map(({ attempt, status }) => [attempt, status]);
      expect(last).to.deep.equal(statuses.map((status, n) => [n + 1, status]));
      const kept = await store().connection.read(['HGET', keys.webhook(one.id), 'tried']);
      expect(String(kept).length).to.be.at.most(maxTriedLength);
    });

    it('counts an attempt whose sender died, and refuses its late end once the next one began', async () => {
      const one = await due();
      expect((await takeWebhook(store(), one, 15_000))?.attempt).to.equal(1);
      store().advance(15_000);
      expect((await takeWebhook(store(), one, 15_000))?.attempt).to.equal(2);
      expect(await endWebhook(store(), one, 1, { verdict: 'delivered', status: 200 }, 5000)).to.equal('stale');
      expect(await endWebhook(store(), one, 2, { verdict: 'delivered', status: 200 }, 5000)).to.equal('delivered');
      expect(await endWebhook(store(), one, 2, { verdict: 'delivered', status: 200 }, 5000)).to.equal('stale');
      expect(await readDelivery(store(), one.id)).to.deep.include({ state: 'delivered', attempts: 2 });
    });

    it('is due as before once an attempt is given back, which counts no more, unless another one has begun meanwhile, even of the same number', async () => {
      const one = await due();
      const before = await readDelivery(store(), one.id);
      store().advance(1_000);
      const first = (await takeWebhook(store(), one, 15_000))!;
      await returnWebhook(store(), one, first);
      expect(await readDelivery(store(), one.id)).to.deep.equal(before);
      expect((await dueWebhooks(store(), 10_000)).due).to.deep.include(one);
      store().advance(10);
      expect((await takeWebhook(store(), one, 15_000))?.attempt).to.equal(1);
      await returnWebhook(store(), one, first);
      expect(await readDelivery(store(), one.id)).to.deep.include({ attempts: 1 });
      store().advance(15_000);
      expect((await takeWebhook(store(), one, 15_000))?.attempt).to.equal(2);
      await returnWebhook(store(), one, first);
      expect(await readDelivery(store(), one.id)).to.deep.include({ attempts: 2 });
    });

    it('has failed when the sender of its last attempt died', async () => {
      const one = await due();
      for (const attempt of [1, 2, 3]) {
        expect((await takeWebhook(store(), one, 15_000))?.attempt).to.equal(attempt);
        store().advance(15_000);
      }
      expect(await takeWebhook(store(), one, 15_000)).to.equal(null);
      expect(await readDelivery(store(), one.id)).to.deep.include({ state: 'failed', next_at: null });
    });

    it('is due when its next attempt is further ahead than any wait, because the clock went back', async () => {
      const one = await due();
      const attempt = (await takeWebhook(store(), one, 15_000))?.attempt ?? 0;
      await endWebhook(store(), one, attempt, { verdict: 'again', status: 500 }, 5000);
      const dueNow = async () => (await dueWebhooks(store(), 10_000, 0, 30_000)).due.map(({ id }) => id);
      expect(await dueNow()).not.to.include(one.id);
      store().advance(-86_400_000);
      expect(await dueNow()).to.include(one.id);
      expect((await takeWebhook(store(), one, 15_000))?.attempt).to.equal(2);
      expect(await dueNow()).not.to.include(one.id);
    });

    it('D55: makes no further attempt when egress refuses the address', async () => {
      const one = await due();
      await takeWebhook(store(), one, 15_000);
      expect(await endWebhook(store(), one, 1, { verdict: 'refused', status: null }, 5000)).to.equal('failed');
      expect((await dueWebhooks(store(), 10_000)).due.map(({ id }) => id)).not.to.include(one.id);
    });
  });

  describe('blocked addresses', () => {
    const fail = async (ip: string, times: number) => {
      let until: number | null = null;
      for (let n = 0; n < times; n++) ({ until } = await countAuthFailure(store(), ip, rule));
      return until === null ? null : Math.round((until - store().clock.now()) / minutes);
    };
    const fresh = () => `198.51.100.${++address}`;
    const blocked = async (ip: string) => (await listBlocks(store())).some((one) => one.address === ip);

    it('blocks after too many failures in the window, and begins anew after the block', async () => {
      const ip = fresh();
      expect(await fail(ip, 2)).to.equal(null);
      expect(await fail(ip, 1)).to.equal(15);
      expect(await blocked(ip)).to.equal(true);
      store().advance(15 * minutes + 1);
      expect(await blocked(ip)).to.equal(false);
      expect(await fail(ip, 2)).to.equal(null);
    });

    it('counts a sliding window', async () => {
      const ip = fresh();
      await fail(ip, 2);
      store().advance(10 * minutes);
      expect(await fail(ip, 1)).to.equal(null);
    });

    it('D86: doubles each further block up to a day, and forgets that after a day without a failure', async () => {
      const ip = fresh();
      const seen = [];
      for (let n = 0; n < 9; n++) seen.push(await fail(ip, 3));
      expect(seen).to.deep.equal([15, 30, 60, 120, 240, 480, 960, 1440, 1440]);
      store().advance(24 * 60 * minutes);
      expect(await fail(ip, 3)).to.equal(15);
    });

    it('is cleared by hand', async () => {
      const ip = fresh();
      await fail(ip, 3);
      expect(await clearBlock(store(), ip)).to.equal(true);
      expect(await blocked(ip)).to.equal(false);
      expect(await clearBlock(store(), ip)).to.equal(false);
    });
  });

  describe('the layout of the record', () => {
    const layout = () => store().connection.read(['GET', keys.schema]);
    afterEach(() => store().connection.send(['SET', keys.schema, String(layouts.own)]));

    it('is the newest one in an empty record', async () => {
      await store().connection.send(['DEL', keys.schema]);
      await prepareSchema(store());
      expect(await layout()).to.equal(String(layouts.own));
    });

    for (const [other, sentence] of [
      [layouts.oldest - 1, /reads none before \d+: first run the releases in between/],
      [
        layouts.own + 1,
        /which (a newer release|trawl \d\S+ or newer) reads, and this is trawl .*: start the newer release again/,
      ],
    ] as const) {
      it(`is left alone and refused with a sentence when it is number ${other}`, async () => {
        await store().connection.send(['SET', keys.schema, String(other)]);
        const refused = await prepareSchema(store()).catch((error: Error) => error.message);
        expect(refused).to.match(sentence).and.include(`layout ${other}`);
        expect(await layout()).to.equal(String(other));
      });
    }
  });
}
