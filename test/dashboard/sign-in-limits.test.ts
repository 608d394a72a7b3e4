import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import type { OpenRoute } from '../../src/dashboard/dashboard-app.ts';
import { signInRoutes } from '../../src/dashboard/sign-in-routes.ts';
import { personIdOf } from '../../src/model/person.ts';
import { keys } from '../../src/store/keys.ts';
import { countSignIn, takeSignInBack } from '../../src/store/people/count-sign-in.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { invited, openBrowser, signedInAt } from '../support/browser-session.ts';
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

  it('have a window from the first sign-in of a person, out of which each success is taken back', async () => {
    const personId = personIdOf('store@example.com');
    const count = async () => (await countSignIn(api.store, personId, 15 * minute)).count;
    expect([await count(), await count(), await count()]).to.deep.equal([1, 2, 3]);
    await takeSignInBack(api.store, personId);
    expect(await count()).to.equal(3);
    const ttl = Number(await api.store.connection.send(['PTTL', keys.signInFailures(personId)]));
    expect(ttl).to.be.within(1, 15 * minute);
    for (let n = 0; n < 4; n++) await takeSignInBack(api.store, personId);
    expect(await api.store.connection.send(['EXISTS', keys.signInFailures(personId)])).to.equal(0);
    expect(await count()).to.equal(1);
    api.store.advance(14 * minute);
    expect(await count()).to.equal(2);
    expect((await countSignIn(api.store, personId, 15 * minute)).leftMs).to.be.within(1, minute);
    api.store.advance(minute);
    expect(await count(), 'after its window').to.equal(1);
  });

  it('D38: leave out a failure whose address was blocked meanwhile, so that the block gets no longer', async () => {
    const waits = [null, 900];
    const blocked = { waitSeconds: () => waits.shift() ?? null, countFailure: () => expect.fail('it was counted') };
    const findCaller = () => ({ ip: '203.0.113.9', blame: '203.0.113.9' });
    const parts = { blocked, findCaller, metrics: makeMetrics() } as unknown as Parameters<typeof signInRoutes>[0];
    const req = { socket: {}, get: () => undefined };
    const call = { req, given: { token: 'nonsense' } } as unknown as Parameters<OpenRoute['handle']>[0];
    const refused = await signInRoutes(parts)
      .open[0]!.handle(call)
      .catch((error) => error);
    expect([refused.code, refused.retryAfterSeconds, waits]).to.deep.equal(['ip_blocked', 900, []]);
  });
});
