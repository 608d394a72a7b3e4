import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { addPack } from '../../src/store/money/add-pack.ts';
import { expectAccessible } from '../support/browser.ts';
import { invited } from '../support/browser-session.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

const password = 'correct horse';

describe('the loss of a session or of the server', () => {
  let on: VisitedDashboard;
  eachWithVisits((visited) => {
    on = visited;
  });

  const emailOf = () => `owner-${on.caller.slug}@example.com`;
  const setPassword = async (page: Page) => {
    await on.show(page, '/account');
    await page.getByLabel('New password').fill(password);
    await page.getByLabel('The same again').fill(password);
    await page.getByRole('button', { name: 'Set password' }).click();
    await page.getByText('The password is set').waitFor();
  };
  const over = (page: Page) => page.getByRole('dialog', { name: 'Your session has ended' });
  const signInAgain = async (page: Page) => {
    await over(page).getByLabel('E-mail address').fill(emailOf());
    await over(page).getByLabel('Password').fill(password);
    await over(page).getByRole('button', { name: 'Sign in', exact: true }).click();
    await over(page).waitFor({ state: 'detached' });
  };
  const aliases = async () => (await listKeys(on.api.store, on.caller.account)).map(({ alias }) => alias);
  const create = (page: Page) => page.getByRole('button', { name: 'Create', exact: true }).click();
  const givePack = (total: number) =>
    addPack(on.api.store, on.caller.account, { id: 'p', title: 'P', total, purchased_at: on.api.store.clock.now() });

  it('a page keeps what was typed when the connection is back and the session has ended meanwhile', async () => {
    const { page, context } = await on.signIn();
    await setPassword(page);
    await on.show(page, '/keys');
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.getByLabel('Alias').fill('kept');
    await context.setOffline(true);
    await page.getByText('what you see may be old').waitFor();
    await context.clearCookies();
    await context.setOffline(false);
    await over(page).waitFor();
    await signInAgain(page);
    await create(page);
    await page.getByText('The secret of kept').waitFor();
  });

  it('a tab sends what was typed there after the same person has signed in again in another', async () => {
    const { page, context } = await on.signIn();
    await setPassword(page);
    await on.show(page, '/keys');
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.getByLabel('Alias').fill('kept');
    const second = await context.newPage();
    await context.clearCookies();
    await second.goto(`${on.api.dashboardUrl}/sign-in`);
    await second.getByLabel('E-mail address').fill(emailOf());
    await second.getByLabel('Password').fill(password);
    await second.getByRole('button', { name: 'Sign in', exact: true }).click();
    await second.getByRole('navigation', { name: 'Pages' }).waitFor();
    await create(page);
    await page.getByText('The secret of kept').waitFor();
    expect((await aliases()).filter((alias) => alias === 'kept')).to.have.length(1);
  });

  it('a tab sends nothing in the name of somebody else who has signed in in another one', async () => {
    const { page, context } = await on.signIn();
    await on.show(page, '/keys');
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.getByLabel('Alias').fill('stray');
    const second = await context.newPage();
    const secret = await invited(on.api.store, on.caller.account, 'owner', 'other@example.com');
    await second.goto(`${on.api.dashboardUrl}/sign-in#${secret}`);
    await second.getByRole('button', { name: 'Sign in' }).click();
    await second.getByRole('navigation', { name: 'Pages' }).waitFor();
    await create(page);
    await page.getByRole('alert').filter({ hasText: 'load it again' }).waitFor();
    expect(await aliases()).not.to.include('stray');
  });

  it('a view that was asked for without a session is shown once its person has signed in again', async () => {
    const { page, context } = await on.signIn();
    await setPassword(page);
    await on.show(page, '/keys');
    await context.clearCookies();
    await page.getByRole('link', { name: 'Billing' }).click();
    await over(page).waitFor();
    await signInAgain(page);
    await page.getByText('Credits left').waitFor();
    expect(await page.getByText('Sign in first').count()).to.equal(0);
  });

  it('a view is read anew as soon as the connection is back', async () => {
    const { page, context } = await on.signIn();
    await on.show(page, '/billing');
    const left = page.locator('.tiles .card').filter({ hasText: 'Left of packs' });
    await left.getByText('no pack yet').waitFor();
    await context.setOffline(true);
    await page.getByText('what you see may be old').waitFor();
    await givePack(500);
    await context.setOffline(false);
    await left.getByText('of 500').waitFor();
  });

  it('a page says that it may be old when the server cannot read it anew, and reads it when it can', async () => {
    const { page } = await on.signIn();
    await on.show(page, '/billing');
    const answer = { status: 503, contentType: 'application/json', body: '{"error":"Service Unavailable"}' };
    await page.route('**/api/billing', (route) => route.fulfill(answer));
    await page.getByRole('button', { name: 'Switch off' }).click();
    await page.getByText('what you see may be old').waitFor();
    await expectAccessible(page);
    await page.unroute('**/api/billing');
    await page.getByRole('button', { name: 'Try again' }).first().click();
    await page.getByRole('button', { name: 'Switch on' }).waitFor();
    await page.getByText('what you see may be old').waitFor({ state: 'detached' });
  });

  it('the list of jobs says that it may be old when its stream is refused and it cannot be read', async () => {
    const { page } = await on.signIn();
    let isAway = false;
    const answer = { status: 503, contentType: 'application/json', body: '{"error":"Service Unavailable"}' };
    await page.route(/api.jobs/, (route) => (isAway ? route.fulfill(answer) : route.continue()));
    await page.route('**/api/jobs/events*', (route) => route.fulfill(answer));
    await on.show(page, '/jobs');
    await page.getByText('No job yet').waitFor();
    expect(await page.getByText('what you see may be old').count()).to.equal(0);
    isAway = true;
    await page.getByText('what you see may be old').waitFor();
  });

  it('the sign-in asks for a password where the address has a mark that is no link', async () => {
    const guest = await on.open();
    // The address that “Skip to content” leaves.
    await guest.page.goto(`${on.api.dashboardUrl}/jobs#main`);
    await guest.page.getByLabel('Password').waitFor();
  });

  it('the sign-in offers other ways when a link is used up, and takes the next link that is pasted', async () => {
    const { page } = await on.open();
    const secret = await invited(on.api.store, on.caller.account, 'owner', 'late@example.com');
    const used = `${secret.slice(0, -1)}${secret.endsWith('A') ? 'B' : 'A'}`;
    await page.goto(`${on.api.dashboardUrl}/sign-in#${used}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').filter({ hasText: 'the link was used' }).waitFor();
    await page.getByLabel('Password').waitFor();
    await expectAccessible(page);
    await page.evaluate(`location.hash = ${JSON.stringify(secret)}`);
    await page.getByText('This link signs you in once').waitFor();
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  });
});
