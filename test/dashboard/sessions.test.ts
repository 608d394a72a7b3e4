import { expect } from 'chai';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { listPeople } from '../../src/store/people/read-people.ts';
import { lastOwner } from '../../src/store/people/shown-links.ts';
import { startApi } from '../support/api.ts';
import {
  type BrowserSession,
  byPassword,
  type Dashboard,
  eachWithDashboard,
  invited,
  openBrowser,
} from '../support/browser-session.ts';

describe('the sessions of the dashboard', () => {
  let api: Dashboard['api'];
  let caller: Dashboard['caller'];
  let owner: Dashboard['owner'];
  let signedIn: Dashboard['signedIn'];
  eachWithDashboard((dashboard) => {
    ({ api, caller, owner, signedIn } = dashboard);
  });

  it('show a person of several accounts one of them, and changes it', async () => {
    const [email, other] = ['both@example.com', await api.addCaller()];
    const browser = await signedIn(caller.account, 'viewer', email);
    await invited(api.store, other.account, 'owner', email);
    const { json } = await browser.ask('GET', '/api/session');
    expect(json.accounts.map(({ slug }: { slug: string }) => slug).sort()).to.deep.equal(
      [caller.slug, other.slug].sort(),
    );
    expect((await browser.ask('POST', '/api/keys', { alias: 'a' })).status).to.equal(403);
    await browser.ask('POST', '/api/session/account', { account: other.slug });
    expect((await browser.ask('POST', '/api/keys', { alias: 'a' })).status).to.equal(201);
  });

  it('by a link that an owner made open the account of the owner alone, whatever else its person may see', async () => {
    const [email, other] = ['victim@example.com', await api.addCaller()];
    const victim = await signedIn(other.account, 'owner', email);
    await invited(api.store, '', 'operator', email);
    const invite = async () => {
      const { json } = await owner.ask('POST', '/api/people', { email, role: 'viewer' });
      const thief = openBrowser(api.dashboardUrl);
      await thief.signIn(json.sign_in_url.split('#')[1]);
      return thief;
    };
    const thief = await invite();
    const seen = (await thief.ask('GET', '/api/session')).json;
    expect([seen.user.operator, seen.account.slug, seen.accounts]).to.deep.equal([
      ...[false, caller.slug],
      [{ slug: caller.slug, name: caller.slug, role: 'viewer' }],
    ]);
    for (const slug of [other.slug, caller.slug]) {
      expect((await thief.ask('POST', '/api/session/account', { account: slug })).status, slug).not.to.equal(200);
    }
    expect((await thief.ask('GET', '/api/sessions')).json.sessions).to.have.length(1);
    expect((await thief.ask('POST', '/api/password', { password: 'of the thief' })).status).to.equal(200);
    const byThief = openBrowser(api.dashboardUrl);
    expect((await byPassword(byThief, email, 'of the thief')).status).to.equal(200);
    expect((await byThief.ask('GET', '/api/session')).json.accounts).to.have.length(1);
    expect((await victim.ask('POST', '/api/password', { password: 'of the victim' })).status).to.equal(200);
    expect((await byThief.ask('GET', '/api/session')).status).to.equal(401);
    expect((await (await invite()).ask('POST', '/api/password', { password: 'of the thief' })).status).to.equal(403);
    // Nor do many invitations push out the sessions of the victim.
    for (let n = 0; n < 25; n++) await invite();
    expect((await victim.ask('GET', '/api/session')).status).to.equal(200);
    const own = openBrowser(api.dashboardUrl);
    expect((await byPassword(own, email, 'of the victim')).status).to.equal(200);
    expect((await own.ask('GET', '/api/session')).json.accounts).to.have.length(2);
  });

  it('are listed and ended; an account keeps one owner', async () => {
    const people = (await owner.ask('GET', '/api/people')).json.people as { email: string }[];
    expect((await owner.ask('DELETE', `/api/people/${people[0]!.email}`)).status).to.equal(409);
    const second = await signedIn(caller.account, 'owner', people[0]!.email);
    const { sessions } = (await owner.ask('GET', '/api/sessions')).json;
    expect(sessions).to.have.length(2);
    const name = sessions.find(({ current }: { current: boolean }) => !current).name;
    await owner.ask('DELETE', `/api/sessions/${name}`);
    expect((await second.ask('GET', '/api/session')).status).to.equal(401);
    await setAccount(api.store, caller.account, { suspended: true });
    expect((await owner.ask('GET', '/api/billing')).json.suspended).to.equal(true);
  });

  it('let an owner take the owner role from another owner, and not from the last one', async () => {
    const [{ email }] = (await owner.ask('GET', '/api/people')).json.people;
    const give = async (to: string, role: string) => {
      const { status, json } = await owner.ask('POST', '/api/people', { email: to, role });
      return status === 201 ? 'given' : json.error;
    };
    for (const role of ['member', 'viewer']) {
      expect(await give('other@example.com', 'owner')).to.equal('given');
      expect(await give('other@example.com', role), role).to.equal('given');
      expect(await give(email, role), role).to.equal(lastOwner);
      const people = await listPeople(api.store, caller.account);
      expect(people.map((person) => [person.email, person.role])).to.have.deep.members([
        [email, 'owner'],
        ['other@example.com', role],
      ]);
    }
  });

  it('leave an account one owner when two take the role of each other at the same moment', async () => {
    const emails = ['left@example.com', 'right@example.com'] as const;
    const takes = {
      remove: (browser: BrowserSession, email: string) => browser.ask('DELETE', `/api/people/${email}`),
      demote: (browser: BrowserSession, email: string) => browser.ask('POST', '/api/people', { email, role: 'viewer' }),
    };
    for (const [word, take] of Object.entries(takes)) {
      for (let round = 0; round < 10; round++) {
        const { account } = await api.addCaller();
        const [left, right] = await Promise.all(emails.map((email) => signedIn(account, 'owner', email)));
        const answers = await Promise.all([take(left!, emails[1]), take(right!, emails[0])]);
        expect(answers.filter(({ status }) => status < 300).length, `${word} ${round}`).to.be.at.most(1);
        for (const { status, text } of answers) expect(status, text).to.be.below(500);
        const owners = (await listPeople(api.store, account)).filter(({ role }) => role === 'owner');
        expect(owners.length, `${word} ${round}`).to.be.within(1, 2);
      }
    }
  });

  it('are behind https in a cookie that only https carries', async () => {
    const own = await startApi({ TRAWL_DASHBOARD_URL: 'https://dash.example.com' });
    try {
      const { account } = await own.addCaller();
      const browser = openBrowser(`http://127.0.0.1:${own.dashboardPort}`);
      const token = await invited(own.store, account);
      const answer = await browser.ask('POST', '/api/sign-in', { token }, { origin: 'https://dash.example.com' });
      expect(answer.headers.get('set-cookie')).to.match(/^__Host-trawl=.*; Secure$/);
      expect(answer.headers.get('content-security-policy')).to.include("default-src 'none'").and.not.include('unsafe');
    } finally {
      await own.stop();
    }
  });
});
