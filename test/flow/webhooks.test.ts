import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { readDelivery, type StoredDelivery } from '../../src/store/webhooks/read-deliveries.ts';
import { askForTest, readTest } from '../../src/store/webhooks/receiver-tests.ts';
import { freePort } from '../support/free-port.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { makeService, type Service } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';
import { copyWebhook } from '../support/webhooks.ts';

const dueToDead = 5_000;

describe('webhooks through trawl up', () => {
  const service: Service = makeService({
    TRAWL_WORKERS: '4',
    TRAWL_WEBHOOK_SECONDS: '1',
    TRAWL_WEBHOOK_GAP_SECONDS: '1',
  });
  let films: Source;
  let inside: Receiver;
  let receiver: Receiver;
  let failuresLeft = 2;
  before(async () => {
    films = await startSource();
    inside = await startReceiver();
    const answers: Readonly<Record<string, (res: ServerResponse) => unknown>> = {
      '/poor': (res) => res.writeHead(failuresLeft-- > 0 ? 500 : 200).end(),
      '/hangs': () => undefined,
      '/moved': (res) => res.writeHead(302, { location: `${inside.url}/inside` }).end(),
    };
    receiver = await startReceiver((req, res) => {
      const answer = answers[req.url ?? ''];
      if (answer) answer(res);
      else res.end();
    });
    await service.start();
  });
  after(async () => {
    await service.close();
    for (const server of [films, inside, receiver]) await server?.stop();
  });

  /** A job that fails at once, and tells this address. */
  const submit = (key: string, url: string) =>
    service.submit(key, `/v1/video/download?query=${films.url}/status/404&webhook_url=${encodeURIComponent(url)}`);
  const ended = (id: string): Promise<StoredDelivery | null> =>
    until(
      async () => {
        const delivery = await service.withStore((store) => readDelivery(store, id));
        return delivery && delivery.state !== 'due' ? delivery : null;
      },
      40,
      `the webhook of ${id} ends`,
    );

  it('get three attempts when a receiver fails, hangs, redirects or is gone, and follow no redirect', async () => {
    const { key } = await service.aCustomer();
    const gone = `http://127.0.0.1:${await freePort()}`;
    const urls = ['/poor', '/hangs', '/moved'].map((path) => receiver.url + path);
    const ids = await Promise.all([...urls, `${gone}/gone`].map((url) => submit(key, url)));
    const deliveries = await Promise.all(ids.map(ended));
    const how = deliveries.map((delivery) => [delivery?.state, delivery?.attempts, delivery?.last_status]);
    expect(how).to.deep.equal([
      ['delivered', 3, 200],
      ['failed', 3, null],
      ['failed', 3, 302],
      ['failed', 3, null],
    ]);
    expect(ids.map((id) => receiver.of(id).length)).to.deep.equal([3, 3, 3, 0]);
    expect(inside.posted, 'where the redirect leads').to.deep.equal([]);
    for (const { body } of receiver.posted) expect(body).to.include({ status: 'Error' });
  });

  it('may be tested: a person who asks for a test reads what the receiver answered', async () => {
    const result = async () => {
      // An account of its own for each: one account may ask for few.
      const { account } = await service.aCustomer();
      const id = randomUUID();
      const test = { id, account, url: `${receiver.url}/tested`, authorization: '' };
      expect(await service.withStore((store) => askForTest(store, test))).to.equal(null);
      return until(
        async () => {
          const found = await service.withStore((store) => readTest(store, account, id));
          return found?.state === 'ended' ? found : null;
        },
        20,
        'the test has ended',
      );
    };
    // The proxy may begin to listen after the API does.
    const answered = await until(
      async () => {
        const found = await result();
        return found?.status ? found : null;
      },
      30,
      'the receiver has answered a test',
    );
    expect(answered).to.include({ delivered: true, status: 200 });
    const posted = receiver.posted.filter(({ path }) => path === '/tested');
    expect(posted.map(({ body }) => body.type)).to.deep.equal(['test']);
  });

  it(`${dueToDead} due webhooks to a dead host delay one to a live host by less than two seconds`, async function () {
    const { key } = await service.aCustomer();
    const dead = await startReceiver(() => undefined);
    try {
      const first = await submit(key, `${dead.url}/0`);
      await service.ended([first], 20);
      // A webhook that is due earlier than the last one that was read is only found by the next full pass.
      const from = Date.now() + 3_000;
      await service.withStore((store) => copyWebhook(store, first, dueToDead, (n) => `${dead.url}/${n % 100}`, from));
      await until(() => dead.posted.length >= 50, 30, 'the dead host is busy');
      const id = await submit(key, `${receiver.url}/live`);
      const [job] = await service.ended([id], 20);
      await until(() => receiver.of(id).length > 0, 20, 'the live host is told');
      const seconds = ((receiver.of(id)[0]?.at ?? 0) - (job?.ended_at ?? 0)) / 1000;
      if (this.test) this.test.title += ` (seen: ${seconds} s)`;
      expect(seconds).to.be.below(2);
    } finally {
      await dead.stop();
    }
  });
});
