import { expect } from 'chai';
import type { Route } from 'playwright-core';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { invited } from '../support/browser-session.ts';
import { until } from '../support/until.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

describe('surprises of the pages', () => {
  let on: VisitedDashboard;
  eachWithVisits((visited) => {
    on = visited;
  });

  it('a key that is pressed at the list of accounts opens it, and the account changes on a choice alone', async () => {
    const { page } = await on.signIn();
    const email = `owner-${on.caller.slug}@example.com`;
    for (const name of ['Beta', 'Gamma']) {
      const { account } = await on.api.addCaller();
      await setAccount(on.api.store, account, { name });
      await invited(on.api.store, account, 'owner', email);
    }
    await on.show(page, '/keys');
    const moves: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/api/session/account')) moves.push(request.url());
    });
    const chooser = page.locator('.who select');
    const shown = await chooser.inputValue();
    await chooser.focus();
    for (const key of ['ArrowDown', 'ArrowUp', 'End', 'g']) {
      await page.keyboard.press(key);
      await page.keyboard.press('Escape');
      expect(await chooser.inputValue(), key).to.equal(shown);
    }
    await page.evaluate('fetch("/api/session").then((answer) => answer.text())');
    expect(moves).to.deep.equal([]);
    const loaded = page.waitForEvent('load');
    const other = shown === (await chooser.locator('option').first().getAttribute('value')) ? 'ArrowDown' : 'ArrowUp';
    for (const key of ['ArrowDown', other, 'Enter']) await page.keyboard.press(key);
    await loaded;
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(await chooser.inputValue()).not.to.equal(shown);
  });

  it('a view is read anew by the same search and by the link of the page that is shown', async () => {
    const { page } = await on.signIn();
    await on.show(page, '/requests?text=usage');
    await page.getByText('No request fits').waitFor();
    const length = await page.evaluate<number>('history.length');
    await on.api.get('/v1/usage', on.caller.key);
    const rows = page.getByRole('table', { name: 'Requests' }).getByRole('row');
    const search = async () => {
      await page.getByRole('button', { name: 'Search' }).click();
      return (await rows.count()) === 2;
    };
    await until(search, 10, 'the line of the call');
    expect(await page.evaluate<number>('history.length')).to.equal(length);
    await on.show(page, '/people');
    await invited(on.api.store, on.caller.account, 'viewer', 'new@example.com');
    await page.getByRole('link', { name: 'People' }).click();
    await page.getByRole('cell', { name: 'new@example.com' }).waitFor();
  });

  it('going back after a sign-in by a link leads to the page before it, and not to a second sign-in', async () => {
    const { page } = await on.open();
    await on.show(page, '/sign-in');
    const secret = await invited(on.api.store, on.caller.account, 'owner', 'back@example.com');
    await page.goto(`${on.api.dashboardUrl}/icon.svg`);
    await page.goto(`${on.api.dashboardUrl}/sign-in#${secret}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('navigation', { name: 'Pages' }).waitFor();
    await page.goBack();
    expect(page.url()).to.equal(`${on.api.dashboardUrl}/icon.svg`);
  });

  it('a page says that the server cannot be reached when an answer does not come, and goes on by itself', async () => {
    const { page } = await on.signIn();
    let asked = 0;
    await page.route('**/api/keys', async (route) => {
      asked += 1;
      if (asked > 1) await route.continue();
    });
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByText('The server cannot be reached').first().waitFor();
    await page.getByRole('button', { name: 'Create a key' }).waitFor();
  });

  it('a file whose link is clicked twice is asked for once', async () => {
    const { page } = await on.signIn();
    await on.show(page, '/requests');
    const held: Route[] = [];
    await page.route('**/api/requests.csv*', (route) => void held.push(route));
    await page.getByRole('link', { name: 'CSV' }).dblclick();
    await until(async () => held.length > 0, 10, 'the page asks for the file');
    await page.evaluate('fetch("/api/session").then((answer) => answer.text())');
    expect(held).to.have.length(1);
    const saved = page.waitForEvent('download');
    await held[0]!.continue();
    expect((await saved).suggestedFilename()).to.equal('requests.csv');
  });

  it('the live region of a download by hand has its status, and no percent that changes every second', async () => {
    const { page } = await on.signIn();
    await on.show(page, '/download');
    await page.getByLabel('Address of a video or sound').fill('https://example.com/film.mp4');
    await page.getByRole('button', { name: 'Download', exact: true }).click();
    const live = page.locator('[aria-live]');
    await live.getByText('waiting').waitFor();
    expect(await live.getByText('It waits for a free worker').count()).to.equal(0);
  });

  it('going back leads to the place of a long list at which it was left, and a link to the top of its view', async () => {
    const ask = (n: number) =>
      on.api.get('/v1/video/download', on.caller.key, { query: `https://example.com/${n}.mp4` });
    for (let n = 0; n < 20; n++) await ask(n);
    const phone = { viewport: { width: 360, height: 780 }, hasTouch: true, isMobile: true };
    const { page } = await on.signIn('owner', phone);
    await on.show(page, '/jobs');
    const link = page.getByRole('link', { name: 'https://example.com/3.mp4' });
    await link.scrollIntoViewIfNeeded();
    const scrolled = () => page.evaluate<number>('scrollY');
    const left = await scrolled();
    expect(left).to.be.above(1000);
    await link.click();
    await page.getByText('What happened').waitFor();
    expect(await scrolled()).to.be.below(300);
    await page.goBack();
    await until(async () => Math.abs((await scrolled()) - left) < 20, 10, `the place ${left}`);
    // A place that was left by the button of the browser is not known; the one before it would be a wrong one.
    await page.evaluate('scrollTo(0, 0)');
    await page.goForward();
    await page.getByText('What happened').waitFor();
    await page.goBack();
    await link.waitFor();
    await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
    expect(await scrolled()).to.be.below(300);
    await page.getByRole('link', { name: 'Jobs', exact: true }).click();
    await page.getByRole('link', { name: 'Billing' }).click();
    await page.getByText('Packs on offer').waitFor();
    expect(await scrolled()).to.be.below(300);
  });
});
