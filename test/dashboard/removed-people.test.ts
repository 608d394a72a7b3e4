import { expect } from 'chai';
import { removePerson } from '../../src/store/people/remove-person.ts';
import type { ApiCaller } from '../support/api.ts';
import {
  type BrowserSession,
  byPassword,
  type Dashboard,
  eachWithDashboard,
  invited,
  openBrowser,
} from '../support/browser-session.ts';

const email = 'guest@example.com';

describe('a person who was removed and has another account', () => {
  let api: Dashboard['api'];
  let caller: Dashboard['caller'];
  let owner: Dashboard['owner'];
  let signedIn: Dashboard['signedIn'];
  let other: ApiCaller;
  eachWithDashboard((dashboard) => {
    ({ api, caller, owner, signedIn } = dashboard);
  });
  beforeEach(async () => {
    other = await api.addCaller();
    await invited(api.store, other.account, 'viewer', email);
  });
  afterEach(async () => {
    for (const { account } of [caller, other]) await removePerson(api.store, account, email).catch(() => null);
  });

  const invite = async (): Promise<string> =>
    (await owner.ask('POST', '/api/people', { email, role: 'member' })).json.sign_in_url.split('#')[1];
  const removeAndInviteAgain = async () => {
    expect((await owner.ask('DELETE', `/api/people/${email}`)).status).to.equal(200);
    await invite();
  };
  const statusOf = async (browser: BrowserSession) => (await browser.ask('GET', '/api/session')).status;

  it('gets back no session, no unused link and no password of before when they are invited again', async () => {
    const [session, unused] = [openBrowser(api.dashboardUrl), openBrowser(api.dashboardUrl)];
    await session.signIn(await invite());
    expect((await session.ask('POST', '/api/password', { password: 'of before' })).status).to.equal(200);
    const link = await invite();
    await removeAndInviteAgain();
    expect(await statusOf(session)).to.equal(401);
    expect((await unused.signIn(link)).status).to.equal(401);
    expect((await byPassword(unused, email, 'of before')).status).to.equal(401);
  });

  it('keeps the session that opens the other account, too, which then shows that one', async () => {
    const session = await signedIn(caller.account, 'member', email);
    const here = await invited(api.store, caller.account, 'member', email);
    const there = await invited(api.store, other.account, 'viewer', email);
    await removeAndInviteAgain();
    const { json } = await session.ask('GET', '/api/session');
    expect([json.account.slug, json.role]).to.deep.equal([other.slug, 'viewer']);
    expect((await openBrowser(api.dashboardUrl).signIn(here)).status).to.equal(401);
    expect((await openBrowser(api.dashboardUrl).signIn(there)).status).to.equal(200);
  });
});
