import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { clientNames, type WebhookPost } from '../support/client-driver.ts';
import { type ClientScene, makeClientScenes } from '../support/client-scenes.ts';
import type { AccountOptions } from '../support/record.ts';
import { until } from '../support/until.ts';

const submits = /^\/v1\/video\/download/;
const events = /^\/v1\/jobs\/[^/]+\/events/;

describe('the clients of callers', () => {
  const { service, start, sceneOf, jobsOf, expectOne, inEach, address } = makeClientScenes();
  const otherKey = async (wanted: AccountOptions) => (await service.aCustomer(wanted)).key;

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
    link.lead(address());
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
      { headers: { ...post.headers, 'webhook-timestamp': '1'.repeat(5_000) } },
      // Some servers give bytes that are no UTF-8 as lone surrogates.
      { headers: { ...post.headers, 'webhook-id': '\udcff' } },
      { headers: { ...post.headers, 'webhook-signature': 'v1,\udcff' } },
      { body: '\udcff' },
      { headers: { ...post.headers, 'webhook-signature': 'v1,' } },
    ]) {
      const { error } = await run({ verb: 'verify', post: { ...post, ...change } });
      expect(error?.code, JSON.stringify(change)).to.equal('bad_signature');
    }
  });

  inEach('takes no webhook by a secret that is none, whatever key a forger guesses from it', async ({ run }) => {
    for (const secret of ['', 'whsec_', '!!!!', 'undefined', 'not base64!', 'whsec_abc$', 'whsec_AAAA', 'пароль']) {
      for (const key of [Buffer.alloc(0), Buffer.alloc(1), Buffer.from(secret.replace('whsec_', ''), 'base64')]) {
        const { error } = await run({ verb: 'verify', post: { ...aPost(key), secret } });
        expect([error?.code, error?.sentence], secret).to.deep.equal([
          'bad_signature',
          'The webhook secret must be whsec_ and the base64 of at least 24 bytes, as the service shows it',
        ]);
      }
    }
    const { error } = await run({ verb: 'verify', post: { ...aPost(), secret: [] } });
    expect(error?.sentence).to.equal('No webhook secret was given');
  });

  it('all wait for a service that is restarted: one job, one charge and one file each', async () => {
    const scenes = await Promise.all(clientNames.map(sceneOf));
    const releases = scenes.map(({ films }) => films.hold());
    const polls = { parameters: { wait: 'poll' } };
    const runs = scenes.map(({ films, run }, n) =>
      run({ url: `${films.url}/held/clip.mp4`, ...(clientNames[n] === 'python async' && polls) }),
    );
    const begun = async ({ customer }: ClientScene) => (await jobsOf(customer))[0]?.status === 'Running';
    await until(async () => (await Promise.all(scenes.map(begun))).every(Boolean), 30, 'three jobs run');
    for (const { link } of scenes) link.lead(null);
    await service.stop();
    const calls = scenes.map(({ link }) => link.calls.length);
    const isAsking = ({ link }: ClientScene, n: number) => link.calls.length > calls[n]!;
    await until(() => scenes.every(isAsking), 30, 'they ask again while nothing answers');
    await start();
    for (const release of releases) release();
    for (const [n, { customer }] of scenes.entries()) await expectOne(await runs[n]!, customer);
  });
});

/** A post as the service signs it, written from Standard Webhooks. */
function aPost(key = Buffer.alloc(24, 1)): WebhookPost {
  const now = 1_800_000_000;
  const body = '{"id":"1","status":"Error","error":"no film"}';
  const signature = createHmac('sha256', key).update(`1.${now}.${body}`).digest('base64');
  const headers = { 'webhook-id': '1', 'webhook-timestamp': String(now), 'webhook-signature': `v1,${signature}` };
  return { body, headers, secret: `whsec_${key.toString('base64')}`, now };
}
