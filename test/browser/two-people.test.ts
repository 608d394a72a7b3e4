import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { createKey } from '../../src/store/accounts/create-key.ts';
import { findKey } from '../../src/store/accounts/read-keys.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { setOffer } from '../../src/store/money/offers.ts';
import { readTopup, setTopup } from '../../src/store/money/set-topup.ts';
import { startChromium, visit } from '../support/browser.ts';
import { invited } from '../support/browser-session.ts';
import { until } from '../support/until.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

const offer = { name: 'small', title: 'Small', credits: 50, price_cents: 500, currency: 'eur' };

describe('two people and two tabs', () => {
  let on: VisitedDashboard;
  eachWithVisits((visited) => {
    on = visited;
  });
  let kept: Browser | undefined;
  after(() => kept?.close());

  it('the dialog of a key changes what was changed there, and nothing that somebody else has changed meanwhile', async () => {
    const quotas = { daily: 7, weekly: 9 };
    const { account } = on.caller;
    await createKey(on.api.store, account, { id: 'ab'.repeat(4), alias: 'shared', hash: 'cd'.repeat(32), quotas });
    const { page } = await on.signIn();
    await on.show(page, '/keys');
    await page.getByRole('row').filter({ hasText: 'shared' }).getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('spinbutton', { name: '7 days' }).fill('');
    await setKey(on.api.store, account, 'shared', { category: 'films', quotas: { daily: 5 } });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const key = await findKey(on.api.store, account, 'shared');
    expect(key.category).to.equal('films');
    expect(key.quotas).to.deep.include({ daily: 5, weekly: null });
  });

  it('saving the cap of a top-up does not switch it on again after a declined card has switched it off meanwhile', async () => {
    const buyer = await on.api.addCaller({ quota: 10, paid: true });
    const { store } = on.api;
    await setOffer(store, offer);
    await setTopup(store, buyer.account, {
      ...{ enabled: '1', threshold_percent: '10', pack_title: 'Small', pack_total: '50', price_cents: '500' },
      ...{ currency: 'eur', customer: 'cus_1', payment_method: 'pm_1' },
    });
    const { page } = await on.signIn('owner', {}, buyer);
    await on.show(page, '/billing');
    await page.getByLabel('At most in a month').fill('1500');
    await setTopup(store, buyer.account, { enabled: '0' });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Nothing is bought by itself').waitFor();
    expect(await readTopup(store, buyer.account)).to.include({ enabled: '0', monthly_cap_cents: '1500' });
    expect(await page.getByLabel('Buy a pack when little is left').isChecked()).to.equal(false);
  });

  it('signing out leads to the sign-in, too, when the session was ended in another tab before', async () => {
    const { page, context } = await on.signIn();
    await on.show(page, '/keys');
    const second = await context.newPage();
    await on.show(second, '/keys');
    await second.getByRole('button', { name: 'Sign out' }).click();
    await second.waitForURL(/sign-in$/);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL(/sign-in$/);
  });

  it('the list of accounts names the one that an operator looks at who has accounts of their own', async () => {
    const own = [await on.api.addCaller(), await on.api.addCaller()];
    const { page } = await on.signIn('operator');
    const email = `operator-${on.caller.slug}@example.com`;
    for (const { account } of own) await invited(on.api.store, account, 'owner', email);
    await setAccount(on.api.store, on.caller.account, { name: 'Looked at' });
    await on.show(page, '/');
    await page.getByLabel('Account shown').fill(on.caller.slug);
    const loaded = page.waitForEvent('load');
    await page.getByRole('button', { name: 'Show' }).click();
    await loaded;
    await page.getByRole('heading', { level: 1, name: 'Looked at' }).waitFor();
    expect(await page.locator('.who select').inputValue()).to.equal(on.caller.slug);
  });

  it('going back after a sign-out shows nothing of the account, where the browser has kept the page', async () => {
    // Browsers keep pages as they were left, which Playwright switches off.
    kept = await startChromium(['--disable-back-forward-cache']);
    const { page } = await visit(kept, on.api.dashboardUrl);
    const secret = await invited(on.api.store, on.caller.account, 'owner', 'gone@example.com');
    await page.goto(`${on.api.dashboardUrl}/sign-in#${secret}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'People' }).click();
    const person = page.getByRole('cell', { name: 'gone@example.com' });
    await person.waitFor();
    // Only a page that was kept still has its listeners.
    await page.evaluate('addEventListener("pageshow", ({ persisted }) => sessionStorage.setItem("kept", persisted))');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Password').waitFor();
    await page.evaluate('history.back()');
    await until(async () => page.url().endsWith('/people'), 10, 'the page before');
    await page.getByLabel('Password').waitFor();
    expect(await person.count()).to.equal(0);
    expect(await page.evaluate('sessionStorage.getItem("kept")')).to.equal('true');
  });
});
