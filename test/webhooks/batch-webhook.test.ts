import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import type { EndedSpan, Traces } from '../../src/base/traces.ts';
import { receiverOf } from '../../src/model/public-address.ts';
import { writeTraceparent } from '../../src/model/trace-context.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { endBatch } from '../../src/store/batches/end-batch.ts';
import { deliverWebhooks, type WebhookDelivery } from '../../src/webhooks/deliver-webhooks.ts';
import { anAdmittedBatch, cancelJobs } from '../support/batch-scenarios.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { type ReceiverProxy, startReceiverProxy } from '../support/receiver-proxy.ts';
import { aDownload, anAccount, type TestStore } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const seal = makeSeal({ secret: randomBytes(32) });

describe('the webhook of a batch', () => {
  let store: TestStore;
  let forwarder: ReceiverProxy;
  let deliveries: WebhookDelivery;
  let spans: EndedSpan[];
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });
  beforeEach(async () => {
    forwarder = await startReceiverProxy();
    spans = [];
    const traces: Traces = { record: (span) => void spans.push(span), close: async () => {} };
    const parts = {
      traces,
      store,
      seal,
      proxy: forwarder.address,
      linkOf: () => null,
      metrics: makeMetrics(),
      log: aLog().log,
    };
    deliveries = deliverWebhooks({ ...parts, limitSeconds: 60, gapSeconds: 0.05, drainSeconds: 0 });
  });
  afterEach(async () => {
    await deliveries.close();
    await forwarder.close();
  });

  it('D98: is sent with its counts and credits, signed as that of a job, and repeated after an answer of 500', async () => {
    forwarder.answer('good.test', 500, 204);
    const caller = await anAccount(store, { credits: 3 });
    const secret = `whsec_${randomBytes(24).toString('base64')}`;
    await setAccount(store, caller.accountId, { webhook_secret: seal.seal('webhook_secret', secret) });
    const url = 'http://good.test/batch';
    const authorization = seal.seal('webhook', 'Bearer hush-hush');
    const webhook = { url, receiver: receiverOf(caller.accountId, url), authorization };
    const { id } = await anAdmittedBatch(store, caller, 2, { webhook });
    await cancelJobs(store, id);
    await endBatch(store, id);
    deliveries.wake();
    await until(async () => forwarder.of('good.test').length === 2, 4, 'two posts');
    const [first, second] = forwarder.of('good.test');
    expect([second?.headers.authorization, second?.headers['webhook-id']]).to.deep.equal(['Bearer hush-hush', id]);
    expect(second?.headers['webhook-signature']).to.match(/^v1,/);
    expect(first?.body).to.equal(second?.body);
    expect(JSON.parse(second?.body ?? '')).to.deep.equal({
      id,
      status: 'Completed',
      counts: { queued: 0, running: 0, completed: 0, failed: 2 },
      credits: { held: 0, charged: 0 },
    });
    expect([first?.headers.traceparent, spans], 'without traced jobs').to.deep.equal([undefined, []]);
  });

  it('belongs to the trace of the request that made the batch', async () => {
    forwarder.answer('good.test', 204);
    const caller = await anAccount(store, { credits: 3 });
    const url = 'http://good.test/batch';
    const webhook = { url, receiver: receiverOf(caller.accountId, url), authorization: '' };
    const request = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) };
    const work = { ...aDownload, trace: writeTraceparent(request) };
    const items = [{ jobId: randomUUID(), work }];
    const { id } = await anAdmittedBatch(store, caller, 1, { items, webhook });
    await cancelJobs(store, id);
    await endBatch(store, id);
    deliveries.wake();
    await until(async () => spans.length > 0, 4, 'a span');
    const [span] = spans;
    expect(spans).to.have.length(1);
    expect(span).to.include({ name: 'webhook', traceId: request.traceId, parentId: request.spanId, failure: null });
    expect(span?.attributes).to.include({ 'trawl.batch.id': id, 'trawl.outcome': 'delivered' });
    const { spanId = '' } = span ?? {};
    const told = forwarder.of('good.test').map(({ headers }) => headers.traceparent);
    expect(told).to.deep.equal([writeTraceparent({ ...request, spanId })]);
  });
});
