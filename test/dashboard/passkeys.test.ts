import { expect } from 'chai';
import { recordLimits } from '../../src/model/record-limits.ts';
import { removePerson } from '../../src/store/people/remove-person.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { makeAuthenticator } from '../support/authenticator.ts';
import { type BrowserSession, openBrowser, signedInAt } from '../support/browser-session.ts';
import { contentOf } from '../support/script-faults.ts';

const minute = 60_000;
const email = 'ada@example.com';

describe('passkeys', () => {
  let api: TestApi;
  let caller: ApiCaller;
  let owner: BrowserSession;
  before(async () => {
    api = await startApi({ TRAWL_DASHBOARD_URL: 'http://localhost:0', TRAWL_AUTH_FAILURES: '1000000' });
  });
  after(() => api.stop());
  beforeEach(async () => {
    caller = await api.addCaller();
    owner = await signedIn();
  });

  const signedIn = (account = caller.account, of = email) => signedInAt(api, account, 'owner', of);
  const add = async (browser = owner, name = 'laptop') => {
    const own = makeAuthenticator(api.dashboardUrl);
    const { json } = await browser.ask('POST', '/api/passkeys/begin', {});
    const answer = await browser.ask('POST', '/api/passkeys', { name, response: own.create(json) });
    return { own, options: json, answer };
  };
  const challenge = async () => (await openBrowser(api.dashboardUrl).ask('POST', '/api/sign-in/passkey', {})).json;
  const use = async (passkey: object) => {
    const browser = openBrowser(api.dashboardUrl);
    const { status, headers } = await browser.ask('POST', '/api/sign-in', { passkey });
    return { browser, status, code: headers.get('x-error-code') };
  };
  const listed = async (browser = owner) => (await browser.ask('GET', '/api/passkeys')).json.passkeys;
  afterEach(async () => {
    await removePerson(api.store, caller.account, email).catch(() => null);
  });

  it('sign their person in without anything else, are listed, named and removed', async () => {
    const { own, options, answer } = await add();
    expect(answer.status).to.equal(201);
    expect(options).to.deep.include({ rp: { name: 'trawl', id: 'localhost' } });
    expect(options.authenticatorSelection).to.include({ residentKey: 'required', userVerification: 'required' });
    const { browser, status } = await use(own.sign(await challenge()));
    expect(status).to.equal(200);
    expect((await browser.ask('GET', '/api/session')).json.user).to.include({ email, has_passkey: true });
    const [{ created_at, last_used_at, ...shown }] = await listed();
    expect(shown).to.deep.equal({ id: own.id, name: 'laptop' });
    expect([created_at, last_used_at].every((at) => Date.parse(at) > 0)).to.equal(true);
    const renamed = await owner.ask('PATCH', `/api/passkeys/${own.id}`, { name: 'desk' });
    expect([renamed.status, (await listed())[0].name]).to.deep.equal([200, 'desk']);
    const second = await add(owner, 'phone');
    expect((await owner.ask('DELETE', `/api/passkeys/${own.id}`)).status).to.equal(200);
    expect((await use(own.sign(await challenge()))).code).to.equal('sign_in_failed');
    expect((await use(second.own.sign(await challenge()))).status).to.equal(200);
  });

  it('refuse a signature that is not for this page, this challenge, or by a verified person', async () => {
    const { own } = await add();
    const other = makeAuthenticator(api.dashboardUrl);
    const asked = await challenge();
    const forged = { challenge: Buffer.from('1.a.b').toString('base64url') };
    const { json: forCreation } = await owner.ask('POST', '/api/passkeys/begin', {});
    const wrong = {
      'another origin': own.sign(asked, { origin: 'https://evil.example' }),
      'another site': own.sign(asked, { rpId: 'evil.example' }),
      'another ceremony': own.sign(asked, { type: 'webauthn.create' }),
      'a challenge of its own': own.sign(forged),
      'a challenge that makes passkeys': own.sign(forCreation),
      'nobody verified': own.sign(asked, { flags: 1 }),
      'nobody present': own.sign(asked, { flags: 4 }),
      'another key': { ...other.sign(asked), id: own.id, rawId: own.id },
      'a passkey that is unknown': other.sign(asked),
      'no response': { id: own.id },
      'no object': 'x',
    };
    for (const [title, passkey] of Object.entries(wrong)) {
      const { status, code } = await use(passkey as object);
      expect([status, code], title).to.deep.equal([401, 'sign_in_failed']);
    }
    api.store.advance(6 * minute);
    expect((await use(own.sign(asked))).status, 'too late').to.equal(401);
  });

  it('sign in once with each challenge, and never with one that is older than the last', async () => {
    const { own } = await add();
    const [first, second] = [await challenge(), await challenge()];
    const signed = own.sign(second);
    const answers = await Promise.all([1, 2, 3].map(() => use(signed)));
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 401, 401]);
    expect((await use(signed)).status).to.equal(401);
    expect((await use(own.sign(first))).status).to.equal(401);
    expect((await use(own.sign(await challenge(), { counter: 5 }))).status).to.equal(200);
    expect((await use(own.sign(await challenge(), { counter: 5 }))).status, 'a copied authenticator').to.equal(401);
  });

  it('are added by the session that asked, from our page, once, and at most ten', async () => {
    const { own, options } = await add();
    const fresh = () => makeAuthenticator(api.dashboardUrl);
    const another = await signedIn();
    const send = (browser: BrowserSession, response: object) =>
      browser.ask('POST', '/api/passkeys', { name: 'x', response });
    expect((await send(owner, own.create(options))).status, 'known already').to.equal(409);
    expect((await send(another, fresh().create(options))).status, 'of another session').to.equal(400);
    expect((await send(owner, fresh().create(options, { origin: 'https://evil.example' }))).status).to.equal(400);
    expect((await send(owner, fresh().create(options, { flags: 65 }))).status, 'nobody verified').to.equal(400);
    expect((await send(owner, {})).status).to.equal(400);
    expect((await owner.ask('POST', '/api/passkeys', { name: '', response: {} })).status).to.equal(400);
    expect((await owner.ask('POST', '/api/passkeys/begin', {}, { csrf: null })).status).to.equal(403);
    for (let n = 1; n < recordLimits.passkeysOfPerson; n++) expect((await add()).answer.status).to.equal(201);
    // Before a device makes one that would open nothing, and after.
    const answers = [await owner.ask('POST', '/api/passkeys/begin', {}), await send(owner, fresh().create(options))];
    for (const { status, headers } of answers)
      expect([status, headers.get('x-error-code')]).to.deep.equal([409, 'too_many']);
  });

  it('are not begun with a name that would be refused', async () => {
    for (const name of [' ', 'x'.repeat(61), 7])
      expect((await owner.ask('POST', '/api/passkeys/begin', { name })).status, String(name)).to.equal(400);
    expect((await owner.ask('POST', '/api/passkeys/begin', { name: 'laptop' })).status).to.equal(200);
  });

  it('cannot be removed when nothing else would sign their person in', async () => {
    const { own } = await add();
    const remove = async () => (await owner.ask('DELETE', `/api/passkeys/${own.id}`)).status;
    expect(await remove()).to.equal(409);
    await owner.ask('POST', '/api/password', { password: 'correct horse' });
    expect(await remove()).to.equal(200);
    expect(await remove()).to.equal(404);
  });

  it('go with a lost password: the first one that is set in a session of a link leaves only those that were made there', async () => {
    const intruder = await add();
    const back = await signedIn();
    const own = (await add(back, 'phone')).own;
    const { json } = await back.ask('POST', '/api/password', { password: 'correct horse' });
    expect(json).to.deep.equal({ password_set: true, passkeys_removed: 1 });
    expect((await use(intruder.own.sign(await challenge()))).code).to.equal('sign_in_failed');
    expect(JSON.stringify(await contentOf(api.store))).not.to.include(intruder.own.id);
    const { browser, status } = await use(own.sign(await challenge()));
    expect(status).to.equal(200);
    browser.csrf = (await browser.ask('GET', '/api/session')).json.csrf;
    await add(browser, 'desk');
    const changed = await back.ask('POST', '/api/password', { password: 'correct horses' });
    expect(changed.json).to.deep.equal({ password_set: true, passkeys_removed: 0 });
    expect(await listed(back)).to.have.length(2);
  });

  it('of other accounts stay when a password is set by the link of an owner', async () => {
    const unbound = (await add()).own;
    const other = await api.addCaller();
    const host = await signedIn(other.account, 'host@example.com');
    const invite = async () => {
      const { json } = await host.ask('POST', '/api/people', { email, role: 'member' });
      const guest = openBrowser(api.dashboardUrl);
      await guest.signIn(json.sign_in_url.split('#')[1]);
      return guest;
    };
    const bound = (await add(await invite())).own;
    const again = await invite();
    const { json } = await again.ask('POST', '/api/password', { password: 'correct horse' });
    expect(json.passkeys_removed).to.equal(1);
    expect((await use(bound.sign(await challenge()))).status).to.equal(401);
    expect((await use(unbound.sign(await challenge()))).status).to.equal(200);
    await removePerson(api.store, other.account, email);
  });

  it('open what the session opens in which they were made, and show nothing of another person', async () => {
    const unbound = (await add()).own;
    const other = await api.addCaller();
    const host = await signedIn(other.account, 'host@example.com');
    const invitation = await host.ask('POST', '/api/people', { email, role: 'member' });
    const guest = openBrowser(api.dashboardUrl);
    await guest.signIn(invitation.json.sign_in_url.split('#')[1]);
    expect(await listed(guest)).to.deep.equal([]);
    for (const ask of ['PATCH', 'DELETE']) {
      expect((await guest.ask(ask, `/api/passkeys/${unbound.id}`, { name: 'mine' })).status, ask).to.equal(404);
      expect((await host.ask(ask, `/api/passkeys/${unbound.id}`, { name: 'mine' })).status, ask).to.equal(404);
    }
    const bound = (await add(guest)).own;
    const { browser } = await use(bound.sign(await challenge()));
    const { json } = await browser.ask('GET', '/api/session');
    expect([json.account.slug, json.accounts.length]).to.deep.equal([other.slug, 1]);
    await removePerson(api.store, other.account, email);
    expect((await use(bound.sign(await challenge()))).status).to.equal(401);
    expect((await listed()).map(({ id }: { id: string }) => id)).to.deep.equal([unbound.id]);
    await removePerson(api.store, caller.account, email);
    expect(JSON.stringify(await contentOf(api.store))).not.to.include(unbound.id);
  });

  it('need a name: a dashboard at an address offers none', async () => {
    const own = await startApi();
    try {
      const browser = openBrowser(own.dashboardUrl);
      expect((await browser.ask('GET', '/api/sign-in')).json).to.deep.include({ openid: false, passkeys: false });
      expect((await browser.ask('POST', '/api/sign-in/passkey', {})).status).to.equal(404);
    } finally {
      await own.stop();
    }
  });
});
