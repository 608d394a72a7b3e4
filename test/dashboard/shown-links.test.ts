import { expect } from 'chai';
import { personIdOf, readPersonSecret } from '../../src/model/person.ts';
import { keys } from '../../src/store/keys.ts';
import { invitePerson } from '../../src/store/people/invite-person.ts';
import { addPasskey, findPasskey, listPasskeys } from '../../src/store/people/passkeys.ts';
import { listPeople } from '../../src/store/people/read-people.ts';
import { removePerson } from '../../src/store/people/remove-person.ts';
import {
  type BrowserSession,
  byPassword,
  type Dashboard,
  eachWithDashboard,
  invited,
  openBrowser,
} from '../support/browser-session.ts';
import { aSecret } from '../support/people-scenarios.ts';

const [victor, mallory, carol] = ['victor@example.com', 'mallory@example.com', 'carol@example.com'];
const password = 'of mallory';

describe('what was shown to an owner who invited', () => {
  let api: Dashboard['api'];
  let caller: Dashboard['caller'];
  let owner: Dashboard['owner'];
  let signedIn: Dashboard['signedIn'];
  eachWithDashboard((dashboard) => {
    ({ api, caller, owner, signedIn } = dashboard);
  });
  afterEach(async () => {
    for (const email of [victor, mallory, carol]) {
      await removePerson(api.store, caller.account, email).catch(() => null);
    }
  });

  const invite = async (by: BrowserSession, email: string, role = 'owner'): Promise<string> => {
    const { json } = await by.ask('POST', '/api/people', { email, role });
    return json.sign_in_url.split('#')[1];
  };
  const opened = async (secret: string) => {
    const browser = openBrowser(api.dashboardUrl);
    return { browser, status: (await browser.signIn(secret)).status };
  };
  const statusOf = async (browser: BrowserSession) => (await browser.ask('GET', '/api/session')).status;
  const passkeysOf = (email: string) => listPasskeys(api.store, personIdOf(email), '');

  /** Lets Mallory, an owner, sign in as Victor, the other owner, and take all that the session can be kept by. */
  const intrude = async () => {
    const own = await signedIn(caller.account, 'owner', victor);
    const by = await signedIn(caller.account, 'owner', mallory);
    const { browser } = await opened(await invite(by, victor));
    expect((await browser.ask('POST', '/api/password', { password })).status).to.equal(200);
    const { secretHash } = readPersonSecret(browser.cookie.split('=')[1])!;
    const session = { personId: personIdOf(victor), secretHash, accountId: caller.account };
    await addPasskey(api.store, session, { id: 'shown', name: 'x', key: 'x', counter: 0, transports: [] });
    const again = openBrowser(api.dashboardUrl);
    expect((await byPassword(again, victor, password)).status).to.equal(200);
    again.csrf = (await again.ask('GET', '/api/session')).json.csrf;
    const links = [await invite(by, victor), await invite(again, carol)];
    return { own, sessions: [browser, again], links };
  };

  const losses = {
    removed: () => owner.ask('DELETE', `/api/people/${mallory}`),
    'made a viewer': () => owner.ask('POST', '/api/people', { email: mallory, role: 'viewer' }),
  };
  for (const [word, lose] of Object.entries(losses)) {
    it(`opens nothing once that owner was ${word}: no link, session, passkey or password of another person`, async () => {
      const { own, sessions, links } = await intrude();
      expect((await lose()).status).to.be.within(200, 201);
      for (const session of sessions) expect(await statusOf(session)).to.equal(401);
      for (const link of links) expect((await opened(link)).status).to.equal(401);
      expect((await byPassword(openBrowser(api.dashboardUrl), victor, password)).status).to.equal(401);
      expect([await passkeysOf(victor), await findPasskey(api.store, 'shown')]).to.deep.equal([[], null]);
      expect(await statusOf(own)).to.equal(200);
    });
  }

  it('stays while another one is removed, and so does what other owners were shown', async () => {
    const { sessions, links } = await intrude();
    const other = await invite(owner, victor);
    await invite(owner, carol, 'viewer');
    expect((await owner.ask('DELETE', `/api/people/${carol}`)).status).to.equal(200);
    for (const session of sessions) expect(await statusOf(session)).to.equal(200);
    expect((await opened(links[0]!)).status).to.equal(200);
    await owner.ask('DELETE', `/api/people/${mallory}`);
    expect((await opened(other)).status).to.equal(200);
  });

  it('leaves the session in which that owner is removed, so that somebody can go on', async () => {
    const by = await signedIn(caller.account, 'owner', mallory);
    const { browser } = await opened(await invite(by, carol));
    browser.csrf = (await browser.ask('GET', '/api/session')).json.csrf;
    expect((await browser.ask('DELETE', `/api/people/${mallory}`)).status).to.equal(200);
    expect([await statusOf(browser), await statusOf(by)]).to.deep.equal([200, 401]);
  });

  it('is not made by an owner who was removed while the invitation was on its way', async () => {
    const wanted = { accountId: caller.account, email: victor, role: 'owner', isBound: true } as const;
    await invited(api.store, caller.account, 'owner', mallory);
    await removePerson(api.store, caller.account, mallory);
    const late = invitePerson(api.store, { ...wanted, secret: aSecret(victor).text, shownTo: [personIdOf(mallory)] });
    expect(await late.catch(({ code }) => code)).to.equal('forbidden');
    expect((await listPeople(api.store, caller.account)).map(({ email }) => email)).not.to.include(victor);
  });

  it('ends, too, for a person who was invited while the owner was being removed', async () => {
    const by = await signedIn(caller.account, 'owner', mallory);
    let link = '';
    const { connection } = api.store;
    const read: typeof connection.read = async (command) => {
      const found = await connection.read(command);
      if (command[1] === keys.people(caller.account)) link ||= await invite(by, carol);
      return found;
    };
    const store = { ...api.store, connection: { ...connection, read } };
    await removePerson(store, caller.account, mallory);
    expect(link).to.have.length.above(0);
    expect((await opened(link)).status).to.equal(401);
  });
});
