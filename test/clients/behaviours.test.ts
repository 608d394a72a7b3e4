import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import {
  type ClientCommand,
  type ClientDriver,
  type ClientName,
  clientNames,
  startClientDriver,
  type WebhookPost,
} from '../support/client-driver.ts';
import { type FaultyLink, startFaultyLink } from '../support/faulty-link.ts';
import { freePort } from '../support/free-port.ts';
import type { AccountOptions } from '../support/record.ts';
import { type Customer, makeService, type Service } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { until } from '../support/until.ts';

interface Downloaded {
  readonly job_id: string;
  readonly sha256: string;
  readonly bytes: string;
  readonly stages: readonly string[];
}

const submits = /^\/v1\/video\/download/;
const events = /^\/v1\/jobs\/[^/]+\/events/;

/** One client of a service, which it reaches by a link of its own, with a source and a new account. */
interface Scene {
  readonly films: Source;
  readonly link: FaultyLink;
  readonly customer: Customer;
  readonly film: string;
  readonly run: (
    command: Partial<ClientCommand>,
    wanted?: Partial<ClientCommand['service']>,
  ) => ReturnType<ClientDriver['run']>;
}

describe('the clients of callers', function () {
  this.timeout(240_000);
  const service: Service = makeService({ TRAWL_WORKERS: '3' });
  const parts = new Map<ClientName, Pick<Scene, 'films' | 'link'> & { readonly driver: ClientDriver }>();
  let publicUrl: string;
  let own: string;
  const start = async () => {
    const port = await freePort();
    own = `http://127.0.0.1:${port}`;
    // Links to files lead through a faulty link too.
    await service.start({ TRAWL_PUBLIC_URL: publicUrl, TRAWL_PORT: String(port) });
    for (const { link } of parts.values()) link.lead(own);
  };
  before(async () => {
    const linkOfJob = new Map();
    for (const name of clientNames) {
      const [films, link] = await Promise.all([startSource(), startFaultyLink(linkOfJob)]);
      parts.set(name, { films, link, driver: startClientDriver(name) });
      publicUrl = link.url;
    }
    await start();
  });
  after(async () => {
    await Promise.all([...parts.values()].map(({ driver }) => driver.stop()));
    await service.close();
    for (const { films, link } of parts.values()) await Promise.all([films.stop(), link.stop()]);
  });

  const sceneOf = async (name: ClientName): Promise<Scene> => {
    const { films, link, driver } = parts.get(name)!;
    link.mend();
    const customer = await service.aCustomer();
    const film = `${films.url}/films/clip.mp4`;
    const run: Scene['run'] = (command, wanted = {}) => {
      const access = { url: link.url, key: customer.key, patienceSeconds: 60, ...wanted };
      return driver.run({ verb: 'download', url: film, ...command, service: access });
    };
    return { films, link, customer, film, run };
  };
  const jobsOf = ({ account }: Customer) =>
    service.withStore(
      async (store) => (await listJobs(store, account, { status: undefined, limit: 100, after: null })).jobs,
    );
  const otherKey = async (wanted: AccountOptions) => (await service.aCustomer(wanted)).key;
  /** One job, one charge, and the file that the record knows. */
  const expectOne = async ({ value, error }: Awaited<ReturnType<Scene['run']>>, customer: Customer) => {
    expect(error).to.equal(undefined);
    const file = value as Downloaded;
    const jobs = await jobsOf(customer);
    expect(jobs.map(({ id, status }) => [id, status])).to.deep.equal([[file.job_id, 'CompletedJob']]);
    expect([file.bytes, file.sha256]).to.deep.equal([jobs[0]!.delivered!.sha256, file.bytes]);
    expect(file.stages.at(-1)).to.equal('CompletedJob');
    await service.checkLedger(customer.account, jobs);
    return file;
  };
  /** Has every client behave, all at once, because most of the time is waiting; each has a verdict of its own. */
  const inEach = (title: string, behave: (scene: Scene) => Promise<void>) => {
    describe(title, () => {
      const verdicts = new Map<ClientName, Promise<void>>();
      before(async () => {
        for (const name of clientNames) verdicts.set(name, sceneOf(name).then(behave));
        await Promise.allSettled(verdicts.values());
      });
      for (const name of clientNames) it(`${title}, in ${name}`, () => verdicts.get(name));
    });
  };

  inEach(
    'makes one job, one charge and one file when answers are lost and the service is busy',
    async ({ link, customer, run }) => {
      link.loseAnswers(submits, 2);
      link.refuse(events, 1);
      await expectOne(await run({}), customer);
      const keys = link.calls.filter(({ path }) => submits.test(path)).map(({ headers }) => headers['idempotency-key']);
      expect([keys.length, new Set(keys).size]).to.deep.equal([3, 1]);
    },
  );

  inEach(
    'makes one job, one charge and one file when streams and the file are cut off',
    async ({ link, customer, run }) => {
      link.cutStreams(2);
      link.cutFiles(1, () => true);
      await expectOne(await run({}), customer);
      const seen = link.calls.filter(({ path }) => events.test(path)).map(({ headers }) => headers['last-event-id']);
      expect([seen.length >= 2, seen[0], seen.slice(1).includes(undefined)]).to.deep.equal([true, undefined, false]);
      const files = link.calls.filter(({ path }) => path.startsWith('/files/')).map(({ headers }) => headers);
      expect(files.map((headers) => headers['x-api-key'])).to.deep.equal([undefined, undefined]);
      expect(files[1]!.range).to.match(/^bytes=[1-9]\d*-$/);
    },
  );

  inEach(
    'makes one job, one charge and one file when it polls and the bytes of the file are wrong once',
    async ({ link, customer, run }) => {
      link.refuse(submits, 1);
      link.alterFiles(1);
      const parameters = { kind: 'audio', audio_format: 'm4a', wait: 'poll' };
      await expectOne(await run({ parameters }), customer);
      expect(link.calls.some(({ path }) => events.test(path))).to.equal(false);
    },
  );

  inEach('takes no file whose bytes stay wrong', async ({ link, run }) => {
    link.alterFiles();
    const { error } = await run({});
    expect(error).to.include({ code: 'checksum_mismatch', blame: 'us', retryable: true });
  });

  inEach('is charged once for metadata whose answer is lost', async ({ link, run }) => {
    link.loseAnswers(/^\/v1\/media\/metadata/, 1);
    expect((await run({ verb: 'metadata' })).value).to.deep.equal({ title: 'clip', used: 1 });
  });

  inEach(
    'starts one batch when the answer is lost, waits for its jobs, and tells what they cost',
    async ({ films, link, customer, film, run }) => {
      link.loseAnswers(/^\/v1\/batches$/, 1);
      const items = [{ query: film }, { query: `${films.url}/status/404` }];
      const { value, error } = await run({
        verb: 'batch',
        batch: { endpoint: 'metadata', items, max_credits: 2 },
      });
      expect(error).to.equal(undefined);
      expect(value).to.deep.equal({
        ...{ credits: { held: 0, charged: 1 }, codes: [null, 'deleted'] },
        ...{ status: 'Completed', charged_in_history: 1 },
      });
      const jobs = await jobsOf(customer);
      expect(jobs).to.have.length(2);
      await service.checkLedger(customer.account, jobs);
    },
  );

  inEach(
    'cancels the job of a download that its caller gives up, which costs nothing',
    async ({ films, customer, run }) => {
      const release = films.hold();
      expect(await run({ verb: 'abort', url: `${films.url}/held/clip.mp4` })).to.deep.equal({ value: {} });
      release();
      const jobs = await jobsOf(customer);
      expect(jobs.map(({ error_code }) => error_code)).to.deep.equal(['cancelled']);
      await service.checkLedger(customer.account, jobs);
      const { value } = await run({ verb: 'jobs' });
      expect(value).to.deep.equal({ ids: [jobs[0]!.id], own: [jobs[0]!.id] });
    },
  );

  inEach('tells the code, the blame and the use of a retry of each error', async ({ films, link, customer, run }) => {
    const poor = await otherKey({ credits: 0 });
    const failed = await run({ url: `${films.url}/status/404` });
    expect(failed.error).to.include({ code: 'deleted', blame: 'caller', retryable: false, status: null });
    expect(failed.error!.job_id).to.equal((await jobsOf(customer))[0]!.id);
    for (const [wanted, code, status] of [
      [{ key: 'trawl_wrong' }, 'invalid_api_key', 401],
      [{ key: poor }, 'payment_required', 402],
    ] as const) {
      const { error } = await run({}, wanted);
      expect(error).to.include({ code, status, blame: 'caller', retryable: false });
    }
    const wrong = await run({ parameters: { video_quality: '8k' } });
    expect(wrong.error).to.include({ code: 'bad_request', blame: 'caller', retryable: false });
    expect(wrong.error!.sentence).to.contain('video_quality must be one of');
    link.lead(null);
    const away = await run({}, { patienceSeconds: 0.5 });
    link.lead(own);
    expect(away.error).to.include({ code: 'unreachable', blame: 'us', retryable: true, status: null });
  });

  inEach('waits as long as a rate limit says', async ({ run }) => {
    const key = await otherKey({ perSecond: 1 });
    expect((await run({ verb: 'metadata' }, { key })).value).to.deep.equal({ title: 'clip', used: 1 });
  });

  inEach('knows a genuine webhook, and takes no other', async ({ run }) => {
    const post = aPost();
    expect((await run({ verb: 'verify', post })).value).to.deep.equal(JSON.parse(post.body));
    const old = `v1,${'A'.repeat(43)}= ${post.headers['webhook-signature']}`;
    const rotated = { ...post, headers: { ...post.headers, 'webhook-signature': old } };
    expect(await run({ verb: 'verify', post: rotated })).to.have.property('value');
    for (const change of [
      { body: post.body.replace('film', 'clip') },
      { now: post.now + 301 },
      { now: post.now - 301 },
      { secret: `whsec_${Buffer.alloc(24, 2).toString('base64')}` },
      { headers: {} },
      { headers: { ...post.headers, 'webhook-id': 'another' } },
      { headers: { ...post.headers, 'webhook-timestamp': 'now' } },
      { headers: { ...post.headers, 'webhook-signature': 'v1,' } },
    ]) {
      const { error } = await run({ verb: 'verify', post: { ...post, ...change } });
      expect(error?.code, JSON.stringify(change)).to.equal('bad_signature');
    }
  });

  it('all wait for a service that is restarted: one job, one charge and one file each', async () => {
    const scenes = await Promise.all(clientNames.map(sceneOf));
    const releases = scenes.map(({ films }) => films.hold());
    const polls = { parameters: { wait: 'poll' } };
    const runs = scenes.map(({ films, run }, n) =>
      run({ url: `${films.url}/held/clip.mp4`, ...(clientNames[n] === 'python async' && polls) }),
    );
    const begun = async ({ customer }: Scene) => (await jobsOf(customer))[0]?.status === 'Running';
    await until(async () => (await Promise.all(scenes.map(begun))).every(Boolean), 30, 'three jobs run');
    for (const { link } of scenes) link.lead(null);
    await service.stop();
    const calls = scenes.map(({ link }) => link.calls.length);
    const isAsking = ({ link }: Scene, n: number) => link.calls.length > calls[n]!;
    await until(() => scenes.every(isAsking), 30, 'they ask again while nothing answers');
    await start();
    for (const release of releases) release();
    for (const [n, { customer }] of scenes.entries()) await expectOne(await runs[n]!, customer);
  });
});

/** A post as the service signs it, written from Standard Webhooks. */
function aPost(): WebhookPost {
  const now = 1_800_000_000;
  const body = '{"id":"1","status":"Error","error":"no film"}';
  const key = Buffer.alloc(24, 1);
  const signature = createHmac('sha256', key).update(`1.${now}.${body}`).digest('base64');
  const headers = { 'webhook-id': '1', 'webhook-timestamp': String(now), 'webhook-signature': `v1,${signature}` };
  return { body, headers, secret: `whsec_${key.toString('base64')}`, now };
}
