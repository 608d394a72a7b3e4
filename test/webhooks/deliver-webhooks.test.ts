import { createHmac, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { readDelivery } from '../../src/store/webhooks/read-deliveries.ts';
import { replayWebhook } from '../../src/store/webhooks/replay-webhook.ts';
import type { ReceiverProxy } from '../support/receiver-proxy.ts';
import { aDownload, anAccount, aRunningJob, completed, failed } from '../support/record.ts';
import { timed } from '../support/turn-length.ts';
import { until } from '../support/until.ts';
import { type WebhookScene, webhookScene } from '../support/webhook-scene.ts';
import { copyWebhook, wholeRecord } from '../support/webhooks.ts';

const authorization = 'Bearer hush-hush';

describe('the delivery of webhooks', () => {
  const { scene, seal, start, wake, aWebhook, ended } = webhookScene();
  let store: WebhookScene['store'];
  let redis: WebhookScene['redis'];
  let receivers: WebhookScene['receivers'];
  let metrics: WebhookScene['metrics'];
  let told: WebhookScene['told'];
  beforeEach(() => {
    ({ store, redis, receivers, metrics, told } = scene());
  });

  const outcomes = async () => {
    const values = (await metrics.webhook_deliveries_total.get()).values.filter(({ value }) => value > 0);
    return Object.fromEntries(values.map(({ labels, value }) => [labels.outcome, value]));
  };

  it('video-webhook_url audio-webhook_url events-1 events-4 D94: a completed job sends one webhook with the payload of the contract', async () => {
    receivers.answer('good.test', 204);
    const { id } = await aWebhook('http://good.test/hook?a=b');
    start();
    expect(await ended(id)).to.deep.include({ state: 'delivered', attempts: 1, last_status: 204, next_at: null });
    const [{ path, headers, body } = { path: '', headers: {}, body: '' }, ...more] = receivers.of('good.test');
    expect([path, headers['content-type'], more]).to.deep.equal(['/hook?a=b', 'application/json', []]);
    expect(headers).not.to.have.any.keys('authorization', 'webhook-id', 'webhook-signature', 'webhook-timestamp');
    expect(JSON.parse(body)).to.deep.equal({
      id,
      status: 'CompletedJob',
      result: { metadata: completed.metadata, response: `https://trawl.test/files/${id}` },
    });
    expect(await outcomes()).to.deep.equal({ delivered: 1 });
  });

  it('webhook_delay_seconds has the first attempt alone, also when a person has the delivery sent again', async () => {
    const { id } = await aWebhook('http://gone.test/');
    start();
    await ended(id);
    store.advance(86_400_000);
    await replayWebhook(store, id, null);
    expect(await ended(id)).to.include({ state: 'failed', attempts: 3 });
    const delays = await metrics.registry.getSingleMetricAsString('trawl_webhook_delay_seconds');
    expect(delays).to.match(/_bucket\{le="10"\} 1\n[\s\S]*_count 1$/);
  });

  it('events-5 D94: a failed and a cancelled job send a webhook with status Error', async () => {
    receivers.answer('good.test', 200);
    const { id } = await aWebhook('http://good.test/', failed);
    const caller = await anAccount(store, { credits: 1 });
    const webhook = { url: 'http://good.test/2', receiver: 'good.test', authorization: '' };
    const job = await aRunningJob(store, caller, { work: { ...aDownload, webhook } });
    await cancelJob(store, job);
    start();
    await Promise.all([ended(id), ended(job.id)]);
    expect(receivers.received.map(({ body }) => JSON.parse(body))).to.have.deep.members([
      { id, status: 'Error', error: failed.text },
      { id: job.id, status: 'Error', error: 'Cancelled' },
    ]);
  });

  it('events-3 limit-webhook D55: after two answers of 500 a third attempt follows, with the gap before each', async () => {
    receivers.answer('poor.test', 500, 500, 200);
    const { id } = await aWebhook('http://poor.test/');
    start({ gapSeconds: 0.3 });
    expect(await ended(id)).to.deep.include({ state: 'delivered', attempts: 3, last_status: 200 });
    const received = receivers.of('poor.test');
    expect(new Set(received.map(({ body }) => body)).size).to.equal(1);
    const [first = 0, second = 0, third = 0] = received.map(({ at }) => at);
    expect([received.length, second - first >= 300, third - second >= 300]).to.deep.equal([3, true, true]);
    expect(await outcomes()).to.deep.equal({ retried: 2, delivered: 1 });
  });

  for (const [what, url, last_status, answer] of [
    ['that hangs', 'http://slow.test/', null, 'hang'],
    ['that is gone', 'http://gone.test/', null, undefined],
    ['that redirects', 'http://moved.test/', 302, (_: unknown, res) => res.writeHead(302, { location: '/new' }).end()],
    ['that says 410', 'http://over.test/', 410, 410],
  ] as [string, string, number | null, Parameters<ReceiverProxy['answer']>[1] | undefined][]) {
    it(`D55: a receiver ${what} gets three attempts`, async () => {
      const { hostname } = new URL(url);
      if (answer !== undefined) receivers.answer(hostname, answer);
      const { id } = await aWebhook(url);
      start(answer === 'hang' ? { limitSeconds: 0.2 } : {});
      expect(await ended(id)).to.deep.include({ state: 'failed', attempts: 3, last_status });
      expect(receivers.of(hostname).map(({ path }) => path)).to.deep.equal(answer === undefined ? [] : ['/', '/', '/']);
      expect(await outcomes()).to.deep.equal({ retried: 2, failed: 1 });
    });
  }

  it('an address that egress refuses gets one attempt', async () => {
    receivers.judge('inside.test', 'refused_address', 403);
    const { id } = await aWebhook('http://inside.test/');
    start();
    expect(await ended(id)).to.deep.include({ state: 'failed', attempts: 1, last_status: null, next_at: null });
    expect(await outcomes()).to.deep.equal({ failed: 1 });
  });

  it('the webhook of a job that ends later is sent at the hint or at the next search', async () => {
    receivers.answer('good.test', 200);
    start();
    await until(() => redis.connection.calls() > 0, 1, 'it has looked');
    const { id } = await aWebhook('http://good.test/');
    wake();
    await ended(id);
    await ended((await aWebhook('http://good.test/')).id);
  });

  it('an attempt that a restart cut off counts and is repeated after its lease', async () => {
    receivers.answer('slow.test', 'hang', 500, 200);
    const { id } = await aWebhook('http://slow.test/');
    const first = start({ limitSeconds: 60 });
    await until(() => receivers.received.length === 1, 2, 'the first attempt');
    await first.close();
    const left = await readDelivery(store, id);
    expect(left).to.deep.include({ state: 'due', attempts: 1 });
    expect(left?.next_at).to.be.above(store.clock.now() + 60_000);
    start();
    store.advance(64_000);
    wake();
    expect((await readDelivery(store, id))?.attempts).to.equal(1);
    store.advance(2_000);
    wake();
    expect(await ended(id)).to.deep.include({ state: 'delivered', attempts: 3 });
    expect(receivers.received.map(({ body }) => JSON.parse(body).id)).to.deep.equal([id, id, id]);
  });

  it('close waits for a running attempt and starts no other', async () => {
    let answer = () => {};
    receivers.answer('slow.test', (_, res) => {
      answer = () => res.end();
    });
    const caller = await anAccount(store, { credits: 3 });
    const jobs = await Promise.all([1, 2, 3].map(() => aWebhook('http://slow.test/', completed, '', caller)));
    const { close } = start({ limitSeconds: 10, drainSeconds: 10 });
    await until(() => receivers.received.length === 2, 2, 'two attempts');
    const closed = close();
    answer();
    receivers.answer('slow.test', 200);
    const [first, second] = receivers.received.map(({ body }) => JSON.parse(body).id);
    expect(jobs.map(({ id }) => id)).to.include(first);
    expect(first).not.to.equal(second);
    await receivers.close();
    await closed;
    expect(receivers.received.length).to.equal(2);
    // An attempt is counted before anything is sent.
    const attempts = await Promise.all(jobs.map(async ({ id }) => (await readDelivery(store, id))?.attempts));
    expect(attempts.sort()).to.deep.equal([0, 1, 1]);
  });

  it('1,000 webhooks to a dead host, under 100 paths, do not delay one to a live host', async () => {
    receivers.answer('dead.test', 'hang');
    receivers.answer('live.test', 200);
    const { id } = await aWebhook('http://dead.test/');
    await copyWebhook(store, id, 1_000, (n) => `http://dead.test/${n % 100}`);
    start({ limitSeconds: 5 });
    await until(() => receivers.of('dead.test').length === 4, 5, 'the dead host is busy');
    const live = await aWebhook('http://live.test/');
    wake();
    const { answer, seconds } = await timed(ended(live.id));
    expect(answer).to.deep.include({ state: 'delivered' });
    expect(seconds).to.be.below(2);
    expect(receivers.most.get('dead.test')).to.equal(4);
  });

  it('a path that hangs gets two attempts at once and does not delay another path of its host', async () => {
    receivers.answer('both.test', (req, res) => {
      if (req.url?.endsWith('/fast')) res.end();
    });
    const caller = await anAccount(store, { credits: 4 });
    const slow = await Promise.all([1, 2, 3].map(() => aWebhook('http://both.test/slow', completed, '', caller)));
    start({ limitSeconds: 5 });
    await until(() => receivers.received.length === 2, 2, 'two attempts');
    const fast = await aWebhook('http://both.test/fast', completed, '', caller);
    wake();
    await ended(fast.id);
    expect(receivers.received.filter(({ path }) => path === '/slow').length).to.equal(2);
    expect(slow.length).to.equal(3);
  });

  it('thousands of webhooks to one host are all sent once, also those that a full queue leaves in Redis', async () => {
    receivers.answer('busy.test', 200);
    const { id } = await aWebhook('http://busy.test/');
    await copyWebhook(store, id, 1_200, () => 'http://busy.test/');
    start({ limitSeconds: 10 });
    await until(() => receivers.received.length === 1_201, 25, 'all are sent');
    expect(new Set(receivers.received.map(({ body }) => body)).size).to.equal(1_201);
    expect(receivers.most.get('busy.test')).to.be.at.most(2);
  });

  it('events-6: is signed while the account has a secret, with the newest one', async () => {
    receivers.answer('good.test', 500, 200);
    const { id, accountId } = await aWebhook('http://good.test/');
    const secret = async (text: string | null) => {
      await setAccount(store, accountId, { webhook_secret: text && seal.seal('webhook_secret', text) });
      return text?.slice('whsec_'.length) ?? '';
    };
    const first = await secret(`whsec_${randomBytes(32).toString('base64')}`);
    start({ gapSeconds: 60 });
    await until(async () => (await outcomes()).retried === 1, 2, 'the end of the first attempt');
    const second = await secret(`whsec_${randomBytes(32).toString('base64')}`);
    const times = [store.clock.now()];
    store.advance(61_000);
    wake();
    await ended(id);
    times.push(store.clock.now());
    for (const [n, key] of [first, second].entries()) {
      const { headers, body } = receivers.received[n]!;
      const { 'webhook-id': named, 'webhook-timestamp': at, 'webhook-signature': signature } = headers;
      const expected = createHmac('sha256', Buffer.from(key, 'base64')).update(`${named}.${at}.${body}`);
      expect([named, signature]).to.deep.equal([id, `v1,${expected.digest('base64')}`]);
      expect(Math.abs(Number(at) * 1000 - times[n]!)).to.be.below(5_000);
    }
  });

  it('video-webhook_authorization audio-webhook_authorization auth-9 events-2: brings the authorization of the caller, which is nowhere in clear', async () => {
    receivers.answer('good.test', 200);
    const { id } = await aWebhook('http://good.test/', completed, seal.seal('webhook', authorization));
    start();
    await ended(id);
    expect(receivers.received[0]?.headers.authorization).to.equal(authorization);
    expect(told.lines.join('') + (await wholeRecord(store)))
      .to.contain(id)
      .and.not.contain('hush-hush');
  });

  it('is not sent without an authorization that cannot be opened', async () => {
    receivers.answer('good.test', 200);
    const other = makeSeal({ secret: randomBytes(32) });
    const { id } = await aWebhook('http://good.test/', completed, other.seal('webhook', authorization));
    start();
    expect(await ended(id)).to.deep.include({ state: 'failed', attempts: 3, last_status: null });
    expect(receivers.received).to.deep.equal([]);
    expect(told.lines.join('')).to.contain('a secret that is not known any more');
  });

  it('sending goes on after Redis was away', async () => {
    receivers.answer('good.test', 200);
    start();
    process.kill(redis.pid(), 'SIGKILL');
    await until(() => !redis.connection.ready(), 5, 'redis is away');
    await until(() => redis.connection.ready(), 10, 'redis is back');
    await ended((await aWebhook('http://good.test/')).id);
  });
});
