import { expect } from 'chai';
import type { ReceiverAnswer } from '../support/receiver-proxy.ts';
import { timed } from '../support/turn-length.ts';
import { until } from '../support/until.ts';
import { webhookScene } from '../support/webhook-scene.ts';
import { copyWebhook } from '../support/webhooks.ts';

/** Answers of a host that keeps each attempt for seconds although it answers all of them. */
const slowAnswers: Readonly<Record<string, ReceiverAnswer>> = {
  'answers after 3 s': (_, res) => void setTimeout(() => res.end(), 3_000),
  'answers at once and sends the body without an end': (_, res) => {
    res.writeHead(200);
    const timer = setInterval(() => res.write('x'), 500);
    res.once('close', () => clearInterval(timer));
  },
};

describe('webhooks of many accounts to a host that hangs', () => {
  const { scene, start, aWebhook, ended } = webhookScene();

  for (const [accounts, webhooks] of [
    [100, 1],
    [25, 1_000],
  ] as const) {
    it(`do not delay one of another account to another host (${accounts} accounts with ${webhooks} each)`, async () => {
      const { store, receivers } = scene();
      receivers.answer('dead.test', 'hang');
      receivers.answer('live.test', 200);
      for (let n = 0; n < accounts; n++) {
        const { id } = await aWebhook(`http://dead.test/${n}`);
        await copyWebhook(store, id, webhooks - 1, (m) => `http://dead.test/${n}/${m % 100}`);
      }
      const sender = start({ limitSeconds: 5 });
      await until(() => receivers.of('dead.test').length > 32, 10, 'the first attempts have hung');
      const { id } = await aWebhook('http://live.test/');
      sender.wake();
      const { answer, seconds } = await timed(ended(id));
      expect(answer).to.deep.include({ state: 'delivered' });
      expect(seconds).to.be.below(2);
    });
  }

  for (const [title, answer] of Object.entries(slowAnswers)) {
    it(`do not delay one of another account to another host either when it ${title}`, async () => {
      const { store, receivers } = scene();
      receivers.answer('slow.test', answer);
      receivers.answer('live.test', 200);
      for (let n = 0; n < 100; n++) {
        const { id } = await aWebhook(`http://slow.test/${n}`);
        await copyWebhook(store, id, 4, (m) => `http://slow.test/${n}/${m}`);
      }
      const sender = start({ limitSeconds: 5 });
      await until(() => receivers.of('slow.test').length > 32, 10, 'the first attempts have ended');
      const { id } = await aWebhook('http://live.test/');
      sender.wake();
      const { seconds } = await timed(until(() => receivers.of('live.test').length > 0, 20, 'the live host is told'));
      expect(seconds).to.be.below(2);
      expect(await ended(id)).to.deep.include({ state: 'delivered' });
    });
  }
});
