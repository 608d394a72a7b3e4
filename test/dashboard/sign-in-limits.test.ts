import { expect } from 'chai';
import { cacheBlocks } from '../../src/api/caller-address.ts';
import { addressCounts, emailCounts } from '../../src/api/sign-in-counts.ts';
import { personIdOf } from '../../src/model/person.ts';
import { keys } from '../../src/store/keys.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { invited, openBrowser, signedInAt } from '../support/browser-session.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const password = 'correct horse';
const minute = 60_000;

describe('the counts of failed sign-ins', () => {
  let api: TestApi;
  let other: TestApi;
  let caller: ApiCaller;
  let people = 0;
  before(async () => {
    // Addresses are told by a header, so that each test has one of its own.
    const env = { TRAWL_AUTH_FAILURES: '20', TRAWL_TRUSTED_PROXIES: '127.0.0.1/32' };
    api = await startApi(env);
    other = await startApi(env, (parts) => ({ ...parts, store: api.store }));
    caller = await api.addCaller();
  });
  after(async () => {
    await other.stop();
    await api.stop();
  });

  const aPerson = async () => {
    const email = `person${++people}@example.com`;
    const person = await signedInAt(api, caller.account, 'owner', email);
    expect((await person.ask('POST', '/api/password', { password })).status).to.equal(200);
    const count = () => api.store.connection.send(['GET', keys.signInFailures(personIdOf(email))]);
    return { email, count };
  };
  /** Signs in from an address; returns the code of the refusal. */
  const ask = (address: string, given: object, at = api) =>
    openBrowser(at.dashboardUrl).ask('POST', '/api/sign-in', given, { headers: { 'x-forwarded-for': address } });
  const tried = async (...asked: Parameters<typeof ask>) =>
    (await ask(...asked)).headers.get('x-error-code') ?? 'let in';
  const wrongLink = { token: `${'a'.repeat(20)}.${'b'.repeat(43)}` };

  it('are shared by all processes: ten of an e-mail address in 15 minutes, in whichever they are made', async () => {
    const { email } = await aPerson();
    const wrong = { email, password: 'wrong-one' };
    const guesses = Array.from({ length: 15 }, (_, n) => tried(`192.0.2.${n}`, wrong, n % 2 ? api : other));
    const codes = await Promise.all(guesses);
    expect(codes.filter((code) => code === 'sign_in_failed')).to.have.length(10);
    expect(codes.filter((code) => code === 'rate_limited')).to.have.length(5);
    for (const at of [api, other]) {
      const { status, headers } = await ask('192.0.2.20', { email, password }, at);
      expect([status, headers.get('x-error-code')]).to.deep.equal([429, 'rate_limited']);
      expect(Number(headers.get('retry-after'))).to.be.within(1, 900);
    }
  });

  it('D38: block an address in every process, together with wrong API keys', async () => {
    const headers = { 'x-forwarded-for': '198.51.100.1' };
    for (let n = 0; n < 10; n++) await api.call('GET', '/v1/usage', { key: 'wrong', headers });
    for (let n = 0; n < 10; n++) {
      expect(await tried('198.51.100.1', wrongLink, n % 2 ? api : other), `failure ${n}`).to.equal('sign_in_failed');
    }
    for (const at of [api, other]) {
      // With a right key, which counts as no failure, until this process has heard of the block.
      const isBlocked = async () => (await at.call('GET', '/v1/usage', { key: caller.key, headers })).status === 403;
      await until(isBlocked, 20, 'the block');
      const refused = await ask('198.51.100.1', wrongLink, at);
      expect([refused.status, refused.headers.get('x-error-code')]).to.deep.equal([403, 'ip_blocked']);
      expect(Number(refused.headers.get('retry-after'))).to.be.within(14 * 60, 15 * 60);
    }
    expect(await tried('198.51.100.2', wrongLink)).to.equal('sign_in_failed');
  });

  it('leave out what succeeds: thirty at once from an address with 19 failures, and twelve of one person', async () => {
    const { email, count } = await aPerson();
    const here = '203.0.113.1';
    for (let n = 0; n < 19; n++) expect(await tried(here, wrongLink)).to.equal('sign_in_failed');
    const links = await Promise.all(Array.from({ length: 30 }, () => invited(api.store, caller.account)));
    const codes = await Promise.all(links.map((token) => tried(here, { token })));
    expect(codes).to.deep.equal(links.map(() => 'let in'));
    for (let n = 0; n < 12; n++) expect(await tried(here, { email, password })).to.equal('let in');
    await until(async () => (await count()) === null, 20, 'what succeeded to be taken back');
    expect(await tried(here, { email, password: 'wrong-one' })).to.equal('sign_in_failed');
    expect(await tried(here, { email, password })).to.equal('ip_blocked');
    expect(await count()).to.match(/^1 /);
  });

  it('are a store of express-rate-limit: a window from the first, taken back and reset, gone by itself', async () => {
    const person = personIdOf('store@example.com');
    const [one, two] = [emailCounts(api.store), emailCounts({ ...api.store })];
    const hits = async (store = one) => (await store.increment(person)).totalHits;
    expect([await hits(), await hits(two), await hits()]).to.deep.equal([1, 2, 3]);
    await two.decrement(person);
    expect(await hits()).to.equal(3);
    const ttl = Number(await api.store.connection.send(['PTTL', keys.signInFailures(person)]));
    expect(ttl).to.be.within(1, 15 * minute);
    await one.resetKey(person);
    expect(await api.store.connection.send(['EXISTS', keys.signInFailures(person)])).to.equal(0);
    await one.decrement(person);
    expect(await hits()).to.equal(1);
    api.store.advance(14 * minute);
    expect(await hits()).to.equal(2);
    const { resetTime } = await one.increment(person);
    expect(resetTime!.getTime() - Date.now()).to.be.within(1, minute);
    api.store.advance(minute);
    expect(await hits(), 'after its window').to.equal(1);
  });

  it('are a store of express-rate-limit for addresses, whose block no failure meanwhile makes longer', async () => {
    const rule = { maxFailures: 3, windowMs: 10 * minute, blockMs: 15 * minute };
    const blocked = await cacheBlocks(api.store, rule, aLog().log);
    try {
      const store = addressCounts(api.store, blocked);
      const hits = async () => (await store.increment('203.0.113.9')).totalHits;
      expect([await hits(), await hits(), await hits()]).to.deep.equal([1, 2, 3]);
      expect(await hits()).to.equal(Number.POSITIVE_INFINITY);
      const { resetTime } = (await store.get!('203.0.113.9'))!;
      expect(resetTime!.getTime() - Date.now()).to.be.within(14 * minute, 15 * minute + 1000);
      api.store.advance(15 * minute + 1000);
      expect([await store.get!('203.0.113.9'), await hits()]).to.deep.equal([undefined, 1]);
      await store.resetKey('203.0.113.9');
      expect(await hits()).to.equal(1);
    } finally {
      await blocked.close();
    }
  });
});
