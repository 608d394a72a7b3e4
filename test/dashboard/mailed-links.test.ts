import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { makePersonSecret, personIdOf } from '../../src/model/person.ts';
import { recordLimits } from '../../src/model/record-limits.ts';
import { keys } from '../../src/store/keys.ts';
import { mailSignInLink } from '../../src/store/people/mail-sign-in-link.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { invited, openBrowser, signedInAt } from '../support/browser-session.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { until } from '../support/until.ts';

describe('links by mail', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_SMTP_URL: 'smtp://127.0.0.1:1', TRAWL_MAIL_FROM: 'trawl@example.com' });
  });
  after(() => api.stop());

  const waiting = async () => {
    const found = (await api.store.connection.send(['HVALS', keys.outbox])) as string[];
    return found.map((json) => JSON.parse(json) as { kind: string; to: string }).map(({ kind, to }) => `${kind} ${to}`);
  };

  it('are left for a person who is invited, and for a known one who asks; strangers get the same answer', async () => {
    const { account } = await api.addCaller();
    const owner = await signedInAt(api, account, 'owner', 'ada@example.com');
    const { json } = await owner.ask('POST', '/api/people', { email: 'new@example.com', role: 'viewer' });
    expect(json).to.deep.include({ email: 'new@example.com', role: 'viewer', mailed: true });
    const stranger = openBrowser(api.dashboardUrl);
    expect((await stranger.ask('GET', '/api/sign-in')).json.mail).to.equal(true);
    const ask = (email: string, origin?: string) =>
      stranger.ask('POST', '/api/sign-in/forgotten', { email }, origin === undefined ? {} : { origin });
    const [known, unknown] = [await ask('ada@example.com'), await ask('nobody@example.com')];
    expect([known.status, known.text]).to.deep.equal([202, unknown.text]);
    expect((await ask('new@example.com', 'https://evil.example')).status).to.equal(403);
    expect((await ask('no address')).status).to.equal(400);
    await until(async () => (await waiting()).length === 2, 5, 'the mail with the link');
    expect((await waiting()).sort()).to.deep.equal(['invitation new@example.com', 'link ada@example.com']);
  });

  it('for one who asked work for an hour, and are not said to be older than 72 hours then', async () => {
    const { account } = await api.addCaller();
    const secret = makePersonSecret(personIdOf('late@example.com'), randomBytes(32));
    await invited(api.store, account, 'owner', 'late@example.com');
    await mailSignInLink(api.store, { email: 'late@example.com', accountId: account, secret, sealed: '' });
    api.store.advance(61 * 60_000);
    const { status, json } = await openBrowser(api.dashboardUrl).signIn(secret);
    expect([status, json.error]).to.deep.equal([
      401,
      'The sign-in failed: e-mail address or password is wrong, or the link was used or is too old',
    ]);
  });

  it('are answered for before the record is asked, so that the time tells nothing of an address', async () => {
    const { account } = await api.addCaller();
    await invited(api.store, account, 'owner', 'eve@example.com');
    const stranger = openBrowser(api.dashboardUrl);
    const ask = (email: string) => stranger.ask('POST', '/api/sign-in/forgotten', { email });
    const goOn = await freezeProcess(api.redis.pid());
    try {
      for (const email of ['eve@example.com', 'nobody@example.com']) expect((await ask(email)).status).to.equal(202);
    } finally {
      goOn();
    }
  });

  it('of an invitation go to a person once in 15 minutes, even when the person is removed between; the owner gets each link', async () => {
    const { account } = await api.addCaller();
    const owner = await signedInAt(api, account);
    const invite = async (email: string) => {
      const { status, json } = await owner.ask('POST', '/api/people', { email, role: 'viewer' });
      expect([status, json.sign_in_url.startsWith(api.dashboardUrl)]).to.deep.equal([201, true]);
      return json.mailed;
    };
    expect(await invite('one@example.com')).to.equal(true);
    expect(await invite('one@example.com')).to.equal(false);
    expect((await owner.ask('DELETE', '/api/people/one@example.com')).status).to.equal(200);
    expect(await invite('one@example.com')).to.equal(false);
    expect(await invite('two@example.com')).to.equal(true);
    api.store.advance(15 * 60_000);
    expect(await invite('one@example.com')).to.equal(true);
  });

  it('of invitations are 100 in 15 minutes for an account, whoever is invited', async () => {
    const { account } = await api.addCaller();
    const owner = await signedInAt(api, account);
    const mailed = Array.from({ length: recordLimits.mailedInvitationsOfAccount }, (_, n) => [
      `${api.store.clock.now()}`,
      `${n}`,
    ]);
    await api.store.connection.send(['ZADD', keys.mailedInvitations(account), ...mailed.flat()]);
    const { status, json } = await owner.ask('POST', '/api/people', { email: 'last@example.com', role: 'viewer' });
    expect([status, json.mailed]).to.deep.equal([201, false]);
  });

  it('are refused to a blocked address', async () => {
    const own = await startApi({
      ...{ TRAWL_SMTP_URL: 'smtp://127.0.0.1:1', TRAWL_MAIL_FROM: 'trawl@example.com', TRAWL_AUTH_FAILURES: '1' },
    });
    try {
      const browser = openBrowser(own.dashboardUrl);
      expect((await browser.signIn('nothing')).status).to.equal(401);
      const refused = await browser.ask('POST', '/api/sign-in/forgotten', { email: 'ada@example.com' });
      expect([refused.status, refused.headers.get('x-error-code')]).to.deep.equal([403, 'ip_blocked']);
    } finally {
      await own.stop();
    }
  });

  it('are not promised where there is no mail server', async () => {
    const silent = await startApi();
    try {
      const { account } = await silent.addCaller();
      const owner = await signedInAt(silent, account);
      const { json } = await owner.ask('POST', '/api/people', { email: 'new@example.com', role: 'viewer' });
      expect(json.mailed).to.equal(false);
      expect((await owner.ask('POST', '/api/sign-in/forgotten', { email: 'new@example.com' })).status).to.equal(404);
      expect(await silent.store.connection.send(['HLEN', keys.outbox])).to.equal(0);
    } finally {
      await silent.stop();
    }
  });
});
