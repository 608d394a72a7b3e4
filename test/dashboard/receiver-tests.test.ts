import { expect } from 'chai';
import { verifyWebhook } from '../../clients/typescript/src/webhook.ts';
import type { Seal } from '../../src/base/seal.ts';
import { channels, keys } from '../../src/store/keys.ts';
import { askForTest } from '../../src/store/webhooks/receiver-tests.ts';
import { testReceivers } from '../../src/webhooks/test-receivers.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { type BrowserSession, type DashboardAnswer, signedInAt } from '../support/browser-session.ts';
import { closedAddress, startEgress, type TestEgress } from '../support/egress.ts';
import { freePort } from '../support/free-port.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const film = 'https://example.com/film.mp4';

describe('a test of a receiver', () => {
  let [api, egress, receiver]: [TestApi?, TestEgress?, Receiver?] = [];
  let seal: Seal;
  let caller: ApiCaller;
  let owner: BrowserSession;
  let answer: Parameters<typeof startReceiver>[0];
  const controllers: ReturnType<typeof testReceivers>[] = [];
  before(async () => {
    // The API lets both addresses pass: the proxy alone decides where posts go.
    api = await startApi({ TRAWL_EGRESS_ALLOW: `127.0.0.1:*,${closedAddress}:*` }, (parts) => {
      seal = parts.seal;
      return parts;
    });
    egress = await startEgress({ allow: '127.0.0.1:*' });
    receiver = await startReceiver((req, res) => answer!(req, res));
  });
  after(async () => {
    await receiver?.stop();
    await egress?.close();
    await api?.stop();
  });
  beforeEach(async () => {
    caller = await api!.addCaller();
    owner = await signedInAt(api!, caller.account);
    answer = (_, res) => res.end();
    receiver!.posted.length = 0;
  });
  const unsubscribes: (() => Promise<void>)[] = [];
  afterEach(async () => {
    await Promise.all(unsubscribes.splice(0).map((unsubscribe) => unsubscribe()));
    await Promise.all(controllers.splice(0).map((controller) => controller.close()));
  });

  /** Starts the part of a controller that sends tests. */
  const startController = async (limitSeconds = 5) => {
    const parts = { store: api!.store, seal, proxy: egress!.address, limitSeconds, log: aLog().log };
    const controller = testReceivers(parts);
    controllers.push(controller);
    unsubscribes.push(await api!.store.connection.subscribe(channels.receiverTests, controller.hear));
    return controller;
  };
  const ask = (body: object, browser = owner): Promise<DashboardAnswer> =>
    browser.ask('POST', '/api/webhooks/tests', body);
  const read = (id: string, browser = owner) => browser.ask('GET', `/api/webhooks/tests/${id}`);
  const ended = async (id: string) =>
    until(
      async () => {
        const { json } = await read(id);
        return json.state === 'ended' && json;
      },
      10,
      'the test has ended',
    );
  const tested = async (body: object) => {
    const { status, json, text } = await ask(body);
    expect(status, text).to.equal(202);
    return ended(json.test);
  };

  it('is one post that the clients verify, with a body and a header that say what it is', async () => {
    await startController();
    const { webhook_secret: secret } = (await owner.ask('POST', '/api/webhooks/secret', {})).json;
    answer = (_, res) => void res.writeHead(204).end();
    const test = await tested({ url: `${receiver!.url}/hook?a=b` });
    expect(test).to.include({ delivered: true, status: 204 });
    expect(test.sentence).to.match(/^The receiver answered 204 after \d+ ms\.$/);
    expect(receiver!.posted.length).to.equal(1);
    const { path, headers, body } = receiver!.posted[0]!;
    expect([path, headers['x-trawl-test']]).to.deep.equal(['/hook?a=b', 'true']);
    expect(Object.keys(body)).to.deep.equal(['id', 'type', 'created_at']);
    expect(body.type).to.equal('test');
    expect(await verifyWebhook(JSON.stringify(body), headers, { secret })).to.deep.equal(body);
  });

  it("goes to a job's own receiver with the Authorization that the job gave", async () => {
    await startController();
    const params = { query: film, webhook_url: `${receiver!.url}/own`, webhook_authorization: 'Bearer hush' };
    const { job_id: job } = (await api!.get('/v1/video/download', caller.key, params)).json;
    expect(await tested({ job })).to.include({ delivered: true });
    expect(receiver!.posted.map(({ path, headers }) => [path, headers.authorization])).to.deep.equal([
      ['/own', 'Bearer hush'],
    ]);
    const { job_id: without } = (await api!.get('/v1/video/download', caller.key, { query: film })).json;
    expect((await ask({ job: without })).json).to.deep.equal({ error: 'This job has no webhook' });
  });

  it('says what went wrong, sends nothing twice and shows nothing of an answer', async () => {
    await startController();
    answer = (req, res) => {
      if (req.url === '/error') res.writeHead(500).end('secret words');
      else if (req.url === '/moved') res.writeHead(302, { location: '/elsewhere' }).end();
      else if (req.url === '/break') req.socket.destroy();
    };
    for (const [url, sentence] of [
      [`${receiver!.url}/error`, /answered 500 after \d+ ms\. It must answer 2xx/],
      [`${receiver!.url}/moved`, /answered 302 .* Redirects are not followed/],
      [`${receiver!.url}/break`, /broke/],
      [`http://${closedAddress}/`, /address of this host is not public, so nothing was sent/],
      [`http://127.0.0.1:${await freePort()}/`, /took no connection/],
    ] as const) {
      const test = await tested({ url });
      expect([test.delivered, test.sentence], url).to.satisfy(
        ([delivered, told]: [boolean, string]) => !delivered && sentence.test(told),
      );
      expect(JSON.stringify(test)).not.to.include('secret');
    }
    expect(receiver!.posted.map(({ path }) => path)).to.deep.equal(['/error', '/moved', '/break']);
  });

  it('gives a receiver that hangs up after its limit', async () => {
    await startController(0.3);
    answer = () => undefined;
    const test = await tested({ url: `${receiver!.url}/hang` });
    expect(test.delivered).to.equal(false);
    expect(test.sentence).to.match(/gave no answer within \d+ s/);
  });

  it('is sent by one of two controllers, and after its hint was lost', async () => {
    const { json } = await ask({ url: receiver!.url });
    expect((await read(json.test)).json).to.deep.equal({ state: 'waiting' });
    await Promise.all([startController(), startController()]);
    expect(await ended(json.test)).to.include({ delivered: true });
    for (const controller of controllers) controller.hear(`${caller.account}/${json.test}`);
    expect(await tested({ url: receiver!.url })).to.include({ delivered: true });
    expect(receiver!.posted.length).to.equal(2);
  });

  it('leaves nothing in the record for long, and ends as stopped with its controller', async () => {
    const controller = await startController();
    answer = () => {};
    const { test: id } = (await ask({ url: receiver!.url })).json;
    await until(() => receiver!.posted.length === 1, 5, 'the receiver has the post');
    expect((await read(id)).json).to.deep.equal({ state: 'sending' });
    await controller.close();
    const testId = `${caller.account}/${id}`;
    expect((await read(id)).json.sentence).to.include('restarted');
    for (const key of [
      keys.receiverTest(testId),
      keys.receiverTestResult(testId),
      keys.receiverTestsAsked(caller.account),
    ]) {
      expect(await api!.store.connection.send(['PTTL', key]), key).to.be.within(1, 300_000);
    }
  });

  it('is refused to viewers, for addresses that are not public, for jobs of others and beyond 10 a minute', async () => {
    expect((await ask({ url: receiver!.url }, await signedInAt(api!, caller.account, 'viewer'))).status).to.equal(403);
    for (const url of [
      'http://10.0.0.1/',
      'http://169.254.169.254/',
      'ftp://example.com/',
      'http://a:b@example.com/',
    ]) {
      expect((await ask({ url })).status, url).to.equal(400);
    }
    expect((await ask({})).status).to.equal(400);
    const other = await signedInAt(api!, (await api!.addCaller()).account);
    const { job_id: job } = (
      await api!.get('/v1/video/download', caller.key, { query: film, webhook_url: 'https://example.com/hook' })
    ).json;
    expect((await ask({ job }, other)).status).to.equal(404);
    const { test: id } = (await ask({ job })).json;
    expect([(await read(id, other)).status, (await read('none')).status]).to.deep.equal([404, 404]);
    for (let n = 1; n < 10; n++) expect((await ask({ job })).status).to.equal(202);
    const refused = await ask({ job });
    expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).to.deep.equal([429, true]);
    expect((await ask({ url: 'https://example.com/hook' }, other)).status).to.equal(202);
    // Another process counts on, because the record counts.
    const more = { id: 'more', account: caller.account, url: 'https://example.com/hook', authorization: '' };
    expect(await askForTest(api!.store, more)).to.be.within(1, 60_000);
  });

  it('is refused like any other change when the memory of redis is full, while one that was asked for before ends', async () => {
    const limit = (bytes: number) => api!.redis.connection.send(['CONFIG', 'SET', 'maxmemory', String(bytes)]);
    const { test: id } = (await ask({ url: receiver!.url })).json;
    try {
      await limit(1);
      await startController();
      expect(await ended(id)).to.include({ delivered: true });
      const refused = await ask({ url: receiver!.url });
      expect([refused.status, refused.headers.get('x-error-code')]).to.deep.equal([503, 'unavailable']);
    } finally {
      await limit(0);
    }
    expect(await api!.store.connection.send(['GET', keys.receiverTestsAsked(caller.account)])).to.equal('1');
  });

  it('leaves room for other accounts while the receivers of one hang', async () => {
    await startController();
    let [open, most] = [0, 0];
    answer = (req, res) => {
      if (req.url !== '/hang') return void res.end();
      most = Math.max(most, ++open);
      res.once('close', () => open--);
    };
    for (let n = 0; n < 8; n++) await ask({ url: `${receiver!.url}/hang` });
    await until(() => most >= 4, 10, 'four posts hang');
    const other = await signedInAt(api!, (await api!.addCaller()).account);
    const { test: id } = (await ask({ url: receiver!.url }, other)).json;
    await until(async () => (await read(id, other)).json.state === 'ended', 10, 'the other account has its answer');
    expect((await read(id, other)).json).to.include({ delivered: true });
    expect(most).to.equal(4);
  });
});
