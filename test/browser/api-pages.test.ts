import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { startApi, type TestApi } from '../support/api.ts';
import { expectAccessible, expectFitting, startChromium, visit } from '../support/browser.ts';

describe('the pages about the API in a browser', () => {
  let api: TestApi;
  let browser: Browser;
  before(async () => {
    api = await startApi();
    browser = await startChromium();
  });
  after(async () => {
    await browser.close();
    await api.stop();
  });

  const phone = { viewport: { width: 360, height: 780 }, hasTouch: true, isMobile: true };
  for (const [kind, options] of Object.entries({
    'on a phone': phone,
    'in the dark': { colorScheme: 'dark' as const },
  })) {
    it(`fit their window ${kind}, with an operation open, in the colours that its reader likes`, async () => {
      const { page, context, faults } = await visit(browser, api.url, options);
      const background = (of: string) => page.evaluate<string>(`getComputedStyle(${of}).backgroundColor`);
      await page.goto(`${api.url}/`);
      await expectFitting(page);
      await expectAccessible(page);
      const welcome = await background('document.body');
      await page.goto(`${api.url}/docs`);
      await page.locator('.opblock-summary-control').first().click();
      await page.locator('.opblock-body .parameters').first().waitFor();
      await expectFitting(page);
      const docs = await background('document.documentElement');
      const none = 'rgba(0, 0, 0, 0)';
      expect([welcome === none, docs === none]).to.deep.equal(kind === 'in the dark' ? [false, false] : [true, true]);
      expect(faults).to.deep.equal([]);
      await context.close();
    });
  }
});
