import { randomBytes } from 'node:crypto';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { receiverOf } from '../../src/model/public-address.ts';
import { type JobEnding, settleJob } from '../../src/store/jobs/settle-job.ts';
import { readDelivery, type StoredDelivery } from '../../src/store/webhooks/read-deliveries.ts';
import { type DeliveryOptions, deliverWebhooks, type WebhookDelivery } from '../../src/webhooks/deliver-webhooks.ts';
import { eachWithEmptyRecord } from './empty-record.ts';
import { type ReceiverProxy, startReceiverProxy } from './receiver-proxy.ts';
import { aDownload, anAccount, aRunningJob, completed, holder, type TestStore } from './record.ts';
import { aLog, type TestRedis } from './redis.ts';
import { until } from './until.ts';

/** A sender of webhooks with an empty record and receivers behind a proxy, anew for each test. */
export interface WebhookScene {
  readonly store: TestStore;
  readonly redis: TestRedis;
  readonly receivers: ReceiverProxy;
  readonly metrics: ReturnType<typeof makeMetrics>;
  readonly told: ReturnType<typeof aLog>;
}

type Account = Awaited<ReturnType<typeof anAccount>>;

/** Returns the scene of the test that runs, and what its tests do with it. */
export function webhookScene() {
  let scene: WebhookScene;
  let sender: WebhookDelivery | undefined;
  const seal = makeSeal({ secret: randomBytes(32) });
  let record: Pick<WebhookScene, 'store' | 'redis'>;
  eachWithEmptyRecord((store, redis) => {
    record = { store, redis };
  });
  beforeEach(async () => {
    scene = { ...record, receivers: await startReceiverProxy(), metrics: makeMetrics(), told: aLog() };
  });
  afterEach(async () => {
    await sender?.close();
    sender = undefined;
    await scene.receivers.close();
  });
  return {
    scene: () => scene,
    seal,
    start(options: Partial<DeliveryOptions> = {}): WebhookDelivery {
      const { store, receivers, metrics, told } = scene;
      const linkOf = ({ id }: { id: string }) => `https://trawl.test/files/${id}`;
      const parts = { store, seal, proxy: receivers.address, linkOf, metrics, traces: null, log: told.log };
      sender = deliverWebhooks({ ...parts, limitSeconds: 60, gapSeconds: 0.05, drainSeconds: 0, ...options });
      return sender;
    },
    /** Lets the sender look for webhooks that are due. */
    wake: () => sender?.wake(),
    /** Ends a job, of a new account unless one is given, whose webhook is due then; returns the account with the id of the job. */
    async aWebhook(url: string, end: JobEnding = completed, authorization = '', of?: Account) {
      const { store } = scene;
      const caller = of ?? (await anAccount(store, { credits: 1 }));
      const webhook = { url, receiver: receiverOf(caller.accountId, url), authorization };
      const job = await aRunningJob(store, caller, { work: { ...aDownload, webhook } });
      await settleJob(store, holder, job, end);
      return { ...caller, id: job.id };
    },
    /** Waits until a delivery has ended, or Redis is back that tells of it. */
    ended: (id: string): Promise<StoredDelivery | null> =>
      until(
        async () => {
          const delivery = await readDelivery(scene.store, id).catch(() => null);
          return delivery === null || delivery.state === 'due' ? null : delivery;
        },
        4,
        'the delivery has ended',
      ),
  };
}
