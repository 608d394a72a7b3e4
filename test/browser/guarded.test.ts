import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { expectAccessible } from '../support/browser.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

describe('the dashboard behind a proxy', () => {
  let on: VisitedDashboard;
  eachWithVisits((visited) => {
    on = visited;
  });

  const create = async (page: Page, alias: string) => {
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.getByLabel('Alias').fill(alias);
    await page.getByRole('button', { name: 'Create', exact: true }).click();
  };
  const told = (page: Page, hasText: string) => page.getByRole('alert').filter({ hasText });

  for (const [does, answer] of [
    ['leads to a sign-in of its own', { status: 302, headers: { location: 'https://sign-in.example/start' } }],
    ['answers 401 by itself', { status: 401, contentType: 'text/html', body: '<h1>401</h1>' }],
  ] as const) {
    it(`a page that a proxy ${does} asks for a sign-in there, and goes on after it`, async () => {
      const { page } = await on.signIn();
      await on.show(page, '/keys');
      const before = await listKeys(on.api.store, on.caller.account);
      await page.route('**/api/**', (route) => route.fulfill(answer));
      await create(page, 'kept');
      await told(page, 'Nothing was changed').waitFor();
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.getByRole('link', { name: 'Billing' }).click();
      await told(page, 'wants you to sign in there: do so in another tab').first().waitFor();
      await expectAccessible(page);
      await on.photograph(page, 'guarded');
      await page.unroute('**/api/**');
      await page.getByText('Credits left').waitFor();
      expect(await listKeys(on.api.store, on.caller.account)).to.deep.equal(before);
    });
  }

  for (const [kind, contentType, body] of [
    ['a page', 'text/html', '<h1>504 Gateway Time-out</h1>'],
    ['JSON', 'application/json', '{"status":504,"error":"Gateway Timeout"}'],
  ] as const) {
    it(`a change to which a proxy answers 504 by itself, with ${kind}, may have been made, and the page says so`, async () => {
      const { page } = await on.signIn();
      await on.show(page, '/keys');
      await page.route('**/api/keys', async (route) => {
        if (route.request().method() === 'GET') return route.continue();
        await route.fetch();
        await route.fulfill({ status: 504, contentType, body });
      });
      await create(page, 'made');
      await told(page, 'the change may have been made. Look before you send it again').waitFor();
      expect((await listKeys(on.api.store, on.caller.account)).map(({ alias }) => alias)).to.include('made');
    });
  }
});
