import { expect } from 'chai';
import { timed } from '../support/turn-length.ts';
import { until } from '../support/until.ts';
import { webhookScene } from '../support/webhook-scene.ts';
import { copyWebhook } from '../support/webhooks.ts';

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
        const id = await aWebhook(`http://dead.test/${n}`);
        await copyWebhook(store, id, webhooks - 1, (m) => `http://dead.test/${n}/${m % 100}`);
      }
      const sender = start({ limitSeconds: 5 });
      await until(() => receivers.of('dead.test').length > 32, 10, 'the first attempts have hung');
      const id = await aWebhook('http://live.test/');
      sender.wake();
      const { answer, seconds } = await timed(ended(id));
      expect(answer).to.deep.include({ state: 'delivered' });
      expect(seconds).to.be.below(2);
    });
  }
});
