import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import type { ApiCaller } from '../support/api.ts';
import { expectAccessible } from '../support/browser.ts';
import { invited } from '../support/browser-session.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

describe('the pages of a person with two accounts', () => {
  let on: VisitedDashboard;
  let other: ApiCaller;
  eachWithVisits((visited) => {
    on = visited;
  });
  beforeEach(async () => {
    other = await on.api.addCaller({ credits: 100 });
    await setAccount(on.api.store, on.caller.account, { name: 'Alpha' });
    await setAccount(on.api.store, other.account, { name: 'Beta' });
  });

  const emailOf = () => `owner-${on.caller.slug}@example.com`;
  /** Signs in at Alpha as an owner of both. */
  const signIn = async () => {
    const visit = await on.signIn();
    await invited(on.api.store, other.account, 'owner', emailOf());
    return visit;
  };
  const chooser = (page: Page) => page.locator('.who select');
  const choose = async (page: Page, slug: string) => {
    const loaded = page.waitForEvent('load');
    await chooser(page).selectOption(slug);
    await loaded;
    await page.getByRole('heading', { level: 1 }).waitFor();
  };
  const fillKey = async (page: Page, alias: string) => {
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.getByLabel('Alias').fill(alias);
  };
  const create = (page: Page) => page.getByRole('button', { name: 'Create', exact: true }).click();
  const aliases = async (account: string) => (await listKeys(on.api.store, account)).map(({ alias }) => alias);

  it('create no key in another account than the one they show: a tab whose account was changed in another says so', async () => {
    const { page, context } = await signIn();
    await on.show(page, '/keys');
    const second = await context.newPage();
    await on.show(second, '/keys');
    await choose(second, other.slug);
    await fillKey(page, 'stray');
    await create(page);
    await page.getByText('this page shows Beta').waitFor();
    expect(await chooser(page).inputValue()).to.equal(other.slug);
    expect([await aliases(on.caller.account), await aliases(other.account)].flat()).not.to.include('stray');
    await expectAccessible(page);
    await fillKey(page, 'meant');
    await create(page);
    await page.getByText('The secret of meant').waitFor();
    expect(await aliases(other.account)).to.include('meant');
  });

  it('show nothing of one account under the name of the other when only the session has moved', async () => {
    const { page, context } = await signIn();
    await on.show(page, '/');
    const second = await context.newPage();
    await on.show(second, '/');
    await choose(second, other.slug);
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    await page.getByText('this page shows Beta').waitFor();
    expect(await chooser(page).inputValue()).to.equal(other.slug);
  });

  it('go on in the chosen account after signing in again, and send what was typed there', async () => {
    const { page, context } = await signIn();
    await on.show(page, '/account');
    await page.getByLabel('New password').fill('correct horse');
    await page.getByLabel('The same again').fill('correct horse');
    await page.getByRole('button', { name: 'Set password' }).click();
    await page.getByText('The password is set').waitFor();
    // Both ways, for one of them is the first account by its id.
    for (const { slug, account } of [other, on.caller]) {
      await on.show(page, '/');
      if ((await chooser(page).inputValue()) !== slug) await choose(page, slug);
      await on.show(page, '/keys');
      await fillKey(page, 'kept');
      await context.clearCookies();
      await create(page);
      const over = page.getByRole('dialog', { name: 'Your session has ended' });
      await over.getByLabel('E-mail address').fill(emailOf());
      await over.getByLabel('Password').fill('correct horse');
      await over.getByRole('button', { name: 'Sign in', exact: true }).click();
      await over.waitFor({ state: 'detached' });
      await create(page);
      await page.getByText('The secret of kept').waitFor();
      expect(await aliases(account)).to.include('kept');
    }
  });

  it('say so when the account cannot be changed and when signing out fails', async () => {
    const { page } = await signIn();
    await on.show(page, '/keys');
    const headers = { 'content-type': 'application/json', 'x-error-code': 'unavailable' };
    const answer = { status: 503, headers, body: '{"error":"Service Unavailable"}' };
    const said = page.getByRole('banner').getByRole('alert').filter({ hasText: 'The service cannot answer just now' });
    for (const path of ['/api/session/account', '/api/sign-out'])
      await page.route(`**${path}`, (route) => route.fulfill(answer));
    await chooser(page).selectOption(other.slug);
    await said.waitFor();
    expect(await chooser(page).inputValue()).to.equal(on.caller.slug);
    await on.show(page, '/keys');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await said.waitFor();
    await expectAccessible(page);
  });
});
