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

describe('the clients of callers', function () {
  this.timeout(120_000);
  const service: Service = makeService({ TRAWL_WORKERS: '3' });
  const drivers = new Map<ClientName, ClientDriver>();
  let films: Source;
  let link: FaultyLink;
  let customer: Customer;
  let own: string;
  const start = async () => {
    const port = await freePort();
    own = `http://127.0.0.1:${port}`;
    // Links to files lead through the faulty link too.
    await service.start({ TRAWL_PUBLIC_URL: link.url, TRAWL_PORT: String(port) });
    link.lead(own);
  };
  before(async () => {
    [films, link] = await Promise.all([startSource(), startFaultyLink()]);
    await start();
    for (const name of clientNames) drivers.set(name, startClientDriver(name));
  });
  after(async () => {
    await Promise.all([...drivers.values()].map((driver) => driver.stop()));
    await service.close();
    await link.stop();
    await films.stop();
  });
  beforeEach(async () => {
    customer = await service.aCustomer();
  });
  afterEach(() => link.mend());

  const film = () => `${films.url}/films/clip.mp4`;
  const run = (name: ClientName, command: Partial<ClientCommand>, wanted: Partial<ClientCommand['service']> = {}) => {
    const access = { url: link.url, key: customer.key, patienceSeconds: 60, ...wanted };
    return drivers.get(name)!.run({ verb: 'download', url: film(), ...command, service: access });
  };
  const jobsOf = (account: string) =>
    service.withStore(
      async (store) => (await listJobs(store, account, { status: undefined, limit: 100, after: null })).jobs,
    );
  const otherKey = async (wanted: AccountOptions) => (await service.aCustomer(wanted)).key;
  /** One job, one charge, and the file that the record knows. */
  const expectOne = async ({ value, error }: Awaited<ReturnType<typeof run>>, account = customer.account) => {
    expect(error).to.equal(undefined);
    const file = value as Downloaded;
    const jobs = await jobsOf(account);
    expect(jobs.map(({ id, status }) => [id, status])).to.deep.equal([[file.job_id, 'CompletedJob']]);
    expect([file.bytes, file.sha256]).to.deep.equal([jobs[0]!.delivered!.sha256, file.bytes]);
    expect(file.stages.at(-1)).to.equal('CompletedJob');
    await service.checkLedger(account, jobs);
    return file;
  };

  for (const name of clientNames) {
    describe(name, () => {
      it('makes one job, one charge and one file when answers are lost and the service is busy', async () => {
        link.loseAnswers(submits, 2);
        link.refuse(events, 1);
        await expectOne(await run(name, {}));
        const keys = link.calls
          .filter(({ path }) => submits.test(path))
          .map(({ headers }) => headers['idempotency-key']);
        expect([keys.length, new Set(keys).size]).to.deep.equal([3, 1]);
      });

      it('makes one job, one charge and one file when streams and the file are cut off', async () => {
        link.cutStreams(2);
        link.cutFiles(1, () => true);
        await expectOne(await run(name, {}));
        const seen = link.calls.filter(({ path }) => events.test(path)).map(({ headers }) => headers['last-event-id']);
        expect([seen.length >= 2, seen[0], seen.slice(1).includes(undefined)]).to.deep.equal([true, undefined, false]);
        const files = link.calls.filter(({ path }) => path.startsWith('/files/')).map(({ headers }) => headers);
        expect(files.map((headers) => headers['x-api-key'])).to.deep.equal([undefined, undefined]);
        expect(files[1]!.range).to.match(/^bytes=[1-9]\d*-$/);
      });

      it('makes one job, one charge and one file when it polls and the bytes of the file are wrong once', async () => {
        link.refuse(submits, 1);
        link.alterFiles(1);
        const parameters = { kind: 'audio', audio_format: 'm4a', wait: 'poll' };
        await expectOne(await run(name, { parameters }));
        expect(link.calls.some(({ path }) => events.test(path))).to.equal(false);
      });

      it('takes no file whose bytes stay wrong', async () => {
        link.alterFiles();
        const { error } = await run(name, {});
        expect(error).to.include({ code: 'checksum_mismatch', blame: 'us', retryable: true });
      });

      it('is charged once for metadata whose answer is lost', async () => {
        link.loseAnswers(/^\/v1\/media\/metadata/, 1);
        expect((await run(name, { verb: 'metadata' })).value).to.deep.equal({ title: 'clip', used: 1 });
      });

      it('starts one batch when the answer is lost, waits for its jobs, and tells what they cost', async () => {
        link.loseAnswers(/^\/v1\/batches$/, 1);
        const items = [{ query: film() }, { query: `${films.url}/status/404` }];
        const { value, error } = await run(name, {
          verb: 'batch',
          batch: { endpoint: 'metadata', items, max_credits: 2 },
        });
        expect(error).to.equal(undefined);
        expect(value).to.deep.equal({
          ...{ credits: { held: 0, charged: 1 }, codes: [null, 'deleted'] },
          ...{ status: 'Completed', charged_in_history: 1 },
        });
        const jobs = await jobsOf(customer.account);
        expect(jobs).to.have.length(2);
        await service.checkLedger(customer.account, jobs);
      });

      it('cancels the job of a download that its caller gives up, which costs nothing', async () => {
        const release = films.hold();
        expect(await run(name, { verb: 'abort', url: `${films.url}/held/clip.mp4` })).to.deep.equal({ value: {} });
        release();
        const jobs = await jobsOf(customer.account);
        expect(jobs.map(({ error_code }) => error_code)).to.deep.equal(['cancelled']);
        await service.checkLedger(customer.account, jobs);
        const { value } = await run(name, { verb: 'jobs' });
        expect(value).to.deep.equal({ ids: [jobs[0]!.id], own: [jobs[0]!.id] });
      });

      it('tells the code, the blame and the use of a retry of each error', async () => {
        const poor = await otherKey({ credits: 0 });
        const failed = await run(name, { url: `${films.url}/status/404` });
        expect(failed.error).to.include({ code: 'deleted', blame: 'caller', retryable: false, status: null });
        expect(failed.error!.job_id).to.equal((await jobsOf(customer.account))[0]!.id);
        for (const [wanted, code, status] of [
          [{ key: 'trawl_wrong' }, 'invalid_api_key', 401],
          [{ key: poor }, 'payment_required', 402],
        ] as const) {
          const { error } = await run(name, {}, wanted);
          expect(error).to.include({ code, status, blame: 'caller', retryable: false });
        }
        const wrong = await run(name, { parameters: { video_quality: '8k' } });
        expect(wrong.error).to.include({ code: 'bad_request', blame: 'caller', retryable: false });
        expect(wrong.error!.sentence).to.contain('video_quality must be one of');
        link.lead(null);
        const away = await run(name, {}, { patienceSeconds: 0.5 });
        link.lead(own);
        expect(away.error).to.include({ code: 'unreachable', blame: 'us', retryable: true, status: null });
      });

      it('waits as long as a rate limit says', async () => {
        const key = await otherKey({ perSecond: 1 });
        expect((await run(name, { verb: 'metadata' }, { key })).value).to.deep.equal({ title: 'clip', used: 1 });
      });

      it('knows a genuine webhook, and takes no other', async () => {
        const post = aPost();
        expect((await run(name, { verb: 'verify', post })).value).to.deep.equal(JSON.parse(post.body));
        const old = `v1,${'A'.repeat(43)}= ${post.headers['webhook-signature']}`;
        const rotated = { ...post, headers: { ...post.headers, 'webhook-signature': old } };
        expect(await run(name, { verb: 'verify', post: rotated })).to.have.property('value');
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
          const { error } = await run(name, { verb: 'verify', post: { ...post, ...change } });
          expect(error?.code, JSON.stringify(change)).to.equal('bad_signature');
        }
      });
    });
  }

  it('all wait for a service that is restarted: one job, one charge and one file each', async () => {
    const customers = await Promise.all(clientNames.map(() => service.aCustomer()));
    const release = films.hold();
    const url = `${films.url}/held/clip.mp4`;
    const polls = { parameters: { wait: 'poll' } };
    const runs = clientNames.map((name, n) =>
      run(name, { url, ...(name === 'python async' && polls) }, { key: customers[n]!.key }),
    );
    const begun = async ({ account }: Customer) => (await jobsOf(account))[0]?.status === 'Running';
    await until(async () => (await Promise.all(customers.map(begun))).every(Boolean), 30, 'three jobs run');
    link.lead(null);
    await service.stop();
    const calls = link.calls.length;
    await until(() => link.calls.length > calls + 3, 30, 'they ask again while nothing answers');
    await start();
    release();
    const outcomes = await Promise.all(runs);
    for (const [n, outcome] of outcomes.entries()) await expectOne(outcome, customers[n]!.account);
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
