import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { startApi, type TestApi } from '../support/api.ts';
import { expectAccessible, expectFitting, startChromium, visit } from '../support/browser.ts';
import { invited } from '../support/browser-session.ts';

describe('passkeys in a browser', function () {
  this.timeout(120_000);
  let api: TestApi;
  let browser: Browser;
  before(async () => {
    api = await startApi({ TRAWL_DASHBOARD_URL: 'http://localhost:0', TRAWL_AUTH_FAILURES: '1000000' });
    browser = await startChromium();
  });
  after(async () => {
    await browser.close();
    await api.stop();
  });

  it('are added, named, used to sign in, and kept while nothing else signs their person in', async () => {
    const { page, context, faults } = await visit(browser, api.dashboardUrl);
    const devtools = await context.newCDPSession(page);
    await devtools.send('WebAuthn.enable');
    await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true },
        ...{ isUserVerified: true, automaticPresenceSimulation: true },
      },
    });
    const { account } = await api.addCaller();
    await page.goto(`${api.dashboardUrl}/sign-in#${await invited(api.store, account, 'owner', 'ada@example.com')}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'Set one' }).click();
    await page.getByLabel('Name of the new passkey').fill('<b>laptop');
    await page.keyboard.press('Enter');
    await page.getByText('The passkey is added').waitFor();
    expect(await page.getByText('no password or passkey').count()).to.equal(0);
    const row = page.getByRole('row').filter({ hasText: '<b>laptop' });
    await row.getByRole('button', { name: 'Rename' }).click();
    await page.getByLabel('New name').fill('laptop');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('row').filter({ hasText: 'laptop' }).getByText('never').waitFor();
    await page.getByLabel('Name of the new passkey').fill('again');
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByText('This device has a passkey of yours already').waitFor();
    await expectFitting(page);
    await expectAccessible(page);
    if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/passkeys.png`, fullPage: true });

    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in with a passkey' }).waitFor();
    await expectAccessible(page);
    if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/sign-in.png`, fullPage: true });
    await page.getByRole('button', { name: 'Sign in with a passkey' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Your sign-in' }).click();
    page.on('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Remove' }).click();
    await page.getByText('Nothing else signs you in').waitFor();
    await context.close();
    expect(faults).to.deep.equal([]);
  });
});
