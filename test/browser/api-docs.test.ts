import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { startApi, type TestApi } from '../support/api.ts';
import { startChromium, visit } from '../support/browser.ts';

describe('/docs', function () {
  // Chromium takes seconds to start, and more on a busy machine.
  this.timeout(100_000);
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

  it('/docs shows every operation in Chromium, and nothing breaks its policy', async () => {
    const { page, faults } = await visit(browser, api.url);
    await page.goto(`${api.url}/docs`);
    for (const shown of ['Start a video download', 'Show what became of the requests', 'A download has ended']) {
      await page.getByText(shown).first().waitFor();
    }
    expect(faults).to.deep.equal([]);
  });
});
