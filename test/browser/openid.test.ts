import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { startChromium, visit } from '../support/browser.ts';
import { invited } from '../support/browser-session.ts';
import { type IdentityProvider, startIdentityProvider } from '../support/identity-provider.ts';

const email = 'ada@example.com';

describe('the sign-in with OpenID Connect on the pages', () => {
  let [provider, api, browser]: [IdentityProvider, TestApi, Browser] = [null!, null!, null!];
  before(async () => {
    provider = await startIdentityProvider();
    api = await startApi({
      TRAWL_OIDC_ISSUER: provider.issuer,
      TRAWL_OIDC_CLIENT_ID: provider.clientId,
      TRAWL_OIDC_CLIENT_SECRET: [...provider.secrets][0]!,
    });
    provider.open(`${api.dashboardUrl}/api/sign-in/openid/back`, { ada: { email, email_verified: true } });
    provider.become('ada');
    browser = await startChromium();
  });
  after(async () => {
    await browser.close();
    await api.stop();
    await provider.stop();
  });

  it('OpenID Connect leads to the view that was asked for, and opens a tab of its own where a session has ended in the middle of something', async () => {
    const callers = [await api.addCaller(), await api.addCaller()];
    for (const { account } of callers) await invited(api.store, account, 'owner', email);
    const { page, context } = await visit(browser, api.dashboardUrl);
    await page.goto(`${api.dashboardUrl}/keys`);
    await page.getByRole('link', { name: 'Sign in with your organisation' }).click();
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
    // The provider is a way in: no password is needed beside it.
    expect(await page.getByText('no password or passkey').count()).to.equal(0);
    for (const { slug, account } of callers) {
      const chooser = page.locator('.who select');
      if ((await chooser.inputValue()) !== slug) {
        const loaded = page.waitForEvent('load');
        await chooser.selectOption(slug);
        await loaded;
      }
      await page.goto(`${api.dashboardUrl}/keys`);
      await page.getByRole('button', { name: 'Create a key' }).click();
      await page.getByLabel('Alias').fill('kept');
      await context.clearCookies({ name: 'trawl' });
      await page.getByRole('button', { name: 'Create', exact: true }).click();
      const over = page.getByRole('dialog', { name: 'Your session has ended' });
      const opened = context.waitForEvent('page');
      await over.getByRole('link', { name: 'Sign in with your organisation' }).click();
      const tab = await opened;
      await tab.getByRole('navigation', { name: 'Pages' }).waitFor();
      await tab.close();
      // Chromium without a window tells no page that it has the focus again.
      await page.evaluate('window.dispatchEvent(new Event("focus"))');
      await over.waitFor({ state: 'detached' });
      await page.getByRole('button', { name: 'Create', exact: true }).click();
      await page.getByText('The secret of kept').waitFor();
      expect((await listKeys(api.store, account)).map(({ alias }) => alias)).to.include('kept');
      await page.getByRole('button', { name: 'Done' }).click();
    }
    await context.close();
  });

  it('the page says why a sign-in with OpenID Connect failed', async () => {
    const { page, context } = await visit(browser, api.dashboardUrl);
    const known = [...provider.secrets];
    provider.secrets.clear();
    await page.goto(`${api.dashboardUrl}/sign-in`);
    await page.getByRole('link', { name: 'Sign in with your organisation' }).click();
    await page.getByRole('alert').filter({ hasText: 'did not answer as it should' }).waitFor();
    for (const secret of known) provider.secrets.add(secret);
    await page.goto(`${api.dashboardUrl}/api/sign-in/openid/back?code=x&state=y`);
    await page.getByRole('alert').filter({ hasText: 'begin again' }).waitFor();
    await page.goto(`${api.dashboardUrl}/sign-in?failed=other`);
    await page.getByText('That sign-in failed.').waitFor();
    expect(await page.getByText('undefined').count()).to.equal(0);
    await context.close();
  });
});
