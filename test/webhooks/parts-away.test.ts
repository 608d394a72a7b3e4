import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { keys } from '../../src/store/keys.ts';
import { dueWebhooks } from '../../src/store/webhooks/due-webhooks.ts';
import { readDelivery } from '../../src/store/webhooks/read-deliveries.ts';
import { takeWebhook } from '../../src/store/webhooks/take-webhook.ts';
import { startReceiverProxy } from '../support/receiver-proxy.ts';
import { completed } from '../support/record.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { webhookScene } from '../support/webhook-scene.ts';

describe('a webhook while a part of the service is away', () => {
  const { scene, start, aWebhook, ended } = webhookScene();

  it('D55: reaches nobody, and has no attempt that counts, until egress takes connections again', async () => {
    const { store, told, metrics } = scene();
    const { folder, remove } = aFolder();
    const path = join(folder, 'egress.sock');
    const { id } = await aWebhook('http://good.test/');
    const sender = start({ proxy: { path } });
    const tries = () => told.lines.filter((line) => line.includes('egress is away')).length;
    await until(() => tries() > 3, 5, 'more tries than a webhook has attempts');
    const back = async () => {
      const delivery = await readDelivery(store, id);
      return delivery?.attempts === 0 ? delivery : null;
    };
    const waiting = await until(back, 4, 'the attempt is given back');
    expect(waiting).to.deep.include({ state: 'due', next_at: waiting?.created_at, tried: [] });
    expect(told.lines.filter((line) => line.includes('egress cannot be reached')).length).to.equal(1);
    const egress = await startReceiverProxy(path);
    egress.answer('good.test', 500, 200);
    expect(await ended(id)).to.deep.include({ state: 'delivered', attempts: 2 });
    expect(egress.received.length).to.equal(2);
    const delays = await metrics.registry.getSingleMetricAsString('trawl_webhook_delay_seconds');
    expect(delays).to.match(/_count 1$/);
    await sender.close();
    await egress.close();
    remove();
  });

  it('waits without a warning for an egress that listens right after it is begun, as at a start', async () => {
    const { told } = scene();
    const { folder, remove } = aFolder();
    const path = join(folder, 'egress.sock');
    const { id } = await aWebhook('http://good.test/');
    const sender = start({ proxy: { path } });
    await until(() => told.lines.some((line) => line.includes('egress is away')), 5, 'a try');
    const egress = await startReceiverProxy(path);
    egress.answer('good.test', 200);
    await ended(id);
    await sender.close();
    await egress.close();
    remove();
    expect(told.lines.join()).not.to.include('egress cannot be reached');
  });

  it('warns once of an egress that is away while other webhooks cannot be unsealed, which reach no egress', async () => {
    const { told } = scene();
    const { folder, remove } = aFolder();
    const authorization = makeSeal({ secret: randomBytes(32) }).seal('webhook', 'Bearer x');
    for (let n = 0; n < 4; n++) await aWebhook('http://lost.test/', completed, authorization);
    await aWebhook('http://good.test/');
    const count = (text: string) => told.lines.filter((line) => line.includes(text)).length;
    const sender = start({ proxy: { path: join(folder, 'egress.sock') }, gapSeconds: 1 });
    for (const tries of [3, 5]) {
      await until(() => count('egress is away') >= tries, 5, 'a try');
      expect(count('egress cannot be reached'), `after ${tries} tries`).to.equal(1);
    }
    await sender.close();
    remove();
  });

  it('D55: has no attempt that counts when Redis is away, too, while egress takes no connection', async () => {
    const { store, redis } = scene();
    let isFirst = true;
    // Its clients wait for a handshake of TLS, which never comes.
    const egress = createServer((socket) => {
      socket.on('error', () => {});
      if (isFirst) process.kill(redis.pid(), 'SIGKILL');
      const isAway = () => !isFirst || !redis.connection.ready();
      void until(isAway, 5, 'redis is away').then(() => {
        isFirst = false;
        socket.destroy();
      });
    })
      .listen(0, '127.0.0.1')
      .unref();
    await once(egress, 'listening');
    const { id } = await aWebhook('http://good.test/');
    const { port } = egress.address() as AddressInfo;
    const sender = start({ proxy: { host: '127.0.0.1', port, tls: { caFile: null } } });
    const isBack = async () => !isFirst && (await readDelivery(store, id).catch(() => null))?.attempts === 0;
    await until(isBack, 10, 'the attempt is given back');
    await sender.close();
    egress.close();
  });

  it('does not keep webhooks waiting after egress is back, however many have waited', async () => {
    const { store, told } = scene();
    const { folder, remove } = aFolder();
    const path = join(folder, 'egress.sock');
    for (let n = 0; n < 32; n++) await aWebhook('http://good.test/');
    // More accounts than webhooks find a place in memory; their jobs are gone, so that each ends when it is begun.
    const since = store.clock.now();
    store.advance(60_000);
    const others = Array.from({ length: 20_100 }, (_, n) => [
      String(since + n),
      `${randomUUID()}@gone.test/${randomUUID()}`,
    ]);
    await store.connection.send(['ZADD', keys.webhooks, ...others.flat()]);
    const sender = start({ proxy: { path } });
    await until(() => told.lines.some((line) => line.includes('egress cannot be reached')), 5, 'egress is away');
    const egress = await startReceiverProxy(path);
    egress.answer('good.test', 200);
    const left = () => store.connection.read(['ZCARD', keys.webhooks]);
    await until(async () => (await left()) < 20_000, 15, 'webhooks are sent again');
    await sender.close();
    await egress.close();
    remove();
  });

  it('is noted as delivered once Redis is back, and not sent again, when its receiver answers while Redis is away', async () => {
    const { redis, receivers } = scene();
    receivers.answer('good.test', (_, res) => {
      process.kill(redis.pid(), 'SIGKILL');
      void until(() => !redis.connection.ready(), 5, 'redis is away').then(() => res.end());
    });
    const { id } = await aWebhook('http://good.test/');
    start({ limitSeconds: 10 });
    expect(await ended(id)).to.deep.include({ state: 'delivered', attempts: 1, last_status: 200 });
    expect(receivers.received.length).to.equal(1);
  });

  it('is counted and logged as failed when its sender died during the last attempt', async () => {
    const { store, told, metrics } = scene();
    const { id } = await aWebhook('http://good.test/');
    const [due] = (await dueWebhooks(store, 1)).due;
    for (const attempt of [1, 2, 3]) {
      expect((await takeWebhook(store, due!, 15_000))?.attempt).to.equal(attempt);
      store.advance(15_000);
    }
    start();
    expect(await ended(id)).to.deep.include({ state: 'failed', attempts: 3 });
    const count = /trawl_webhook_deliveries_total\{outcome="failed"\} 1$/m;
    const counted = async () =>
      count.test(await metrics.registry.getSingleMetricAsString('trawl_webhook_deliveries_total'));
    await until(counted, 2, 'it is counted');
    expect(told.lines.join('')).to.match(/"level":"warn","text":"a webhook has failed: its sender died/);
  });
});
