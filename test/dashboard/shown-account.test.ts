import { expect } from 'chai';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { byPassword, type Dashboard, eachWithDashboard, invited } from '../support/browser-session.ts';

describe('a page of the dashboard that names the account it shows', () => {
  let api: Dashboard['api'];
  let caller: Dashboard['caller'];
  let signedIn: Dashboard['signedIn'];
  eachWithDashboard((dashboard) => {
    ({ api, caller, signedIn } = dashboard);
  });

  /** An owner of two accounts, of which the session shows the second. */
  const moved = async (email: string) => {
    const other = await api.addCaller();
    const browser = await signedIn(caller.account, 'owner', email);
    await invited(api.store, other.account, 'owner', email);
    const { account_id } = (await browser.ask('GET', '/api/session')).json;
    await browser.ask('POST', '/api/session/account', { account: other.slug });
    return { other, browser, page: { headers: { 'x-account': account_id as string } } };
  };

  it('is refused with 409 when its session was moved to another account, and nothing is changed or read', async () => {
    const { other, browser, page } = await moved('moved@example.com');
    const made = await browser.ask('POST', '/api/keys', { alias: 'wrong' }, page);
    expect([made.status, made.headers.get('x-error-code')]).to.deep.equal([409, 'other_account']);
    expect(made.json.error).to.include('Another account was chosen');
    for (const { account } of [caller, other])
      expect((await listKeys(api.store, account)).map(({ alias }) => alias)).not.to.include('wrong');
    expect((await browser.ask('GET', '/api/keys', undefined, page)).status).to.equal(409);
    const query = `account=${page.headers['x-account']}`;
    for (const path of ['/api/jobs/events', '/api/requests.csv'])
      expect((await browser.ask('GET', `${path}?${query}`)).status, path).to.equal(409);
  });

  it('changes the account, its own session and its own password whichever account it shows', async () => {
    const { browser, page } = await moved('own@example.com');
    expect((await browser.ask('POST', '/api/password', { password: 'correct horse' }, page)).status).to.equal(200);
    const chosen = await browser.ask('POST', '/api/session/account', { account: caller.slug }, page);
    expect(chosen.status).to.equal(200);
    expect((await browser.ask('POST', '/api/keys', { alias: 'right' }, page)).status).to.equal(201);
    expect((await browser.ask('POST', '/api/sign-out', {}, page)).status).to.equal(200);
  });

  it('gets a session in that account when its person signs in again, and in their first one when it is not theirs', async () => {
    const { other, browser } = await moved('again@example.com');
    await browser.ask('POST', '/api/password', { password: 'correct horse' });
    const ids = [caller.account, other.account];
    const foreign = await api.addCaller();
    const first = ids.toSorted()[0];
    for (const [named, opened] of [...ids.map((id) => [id, id]), [foreign.account, first], ['__proto__', first]]) {
      const again = await browser.ask(
        'POST',
        '/api/sign-in',
        { email: 'again@example.com', password: 'correct horse' },
        {
          headers: { 'x-account': named! },
        },
      );
      expect(again.status).to.equal(200);
      expect((await browser.ask('GET', '/api/session')).json.account_id, named).to.equal(opened);
    }
    await byPassword(browser, 'again@example.com', 'correct horse');
    expect((await browser.ask('GET', '/api/session')).json.account_id).to.equal(first);
  });
});
