import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Locator, Page } from 'playwright-core';
import { createKey } from '../../src/store/accounts/create-key.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { endPurchase } from '../../src/store/money/end-purchase.ts';
import { setOffer } from '../../src/store/money/offers.ts';
import { aFilm } from '../support/api.ts';
import { expectFitting } from '../support/browser.ts';
import { endJob } from '../support/job-steps.ts';
import { completed } from '../support/record.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

const name = 'W'.repeat(100);
const email = `${'x'.repeat(40)}@${'y'.repeat(48)}.de`;
const windows = {
  phone: { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true },
  'wide window': {},
};

/** Returns the letters of the element that an expression gives as they are drawn, from left to right; marks of direction have no width. */
async function readDrawn(page: Page, element: string): Promise<string> {
  const drawn = await page.evaluate<string>(`(() => {
    const letters = [];
    const walker = document.createTreeWalker(${element}, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      for (let n = 0; n < walker.currentNode.length; n++) {
        const range = document.createRange();
        range.setStart(walker.currentNode, n);
        range.setEnd(walker.currentNode, n + 1);
        letters.push({ letter: range.toString(), left: range.getBoundingClientRect().left });
      }
    }
    return letters.sort((a, b) => a.left - b.left).map(({ letter }) => letter).join('');
  })()`);
  return drawn.replaceAll(/[\u2068\u2069]/g, '');
}

describe('long names on the pages', () => {
  let on: VisitedDashboard;
  eachWithVisits((visited) => {
    on = visited;
  });

  /** Fails when something in an element is wider than it. */
  const expectWhole = async (element: Locator) => {
    const { inner, outer } = await element.evaluate((found) => {
      const { scrollWidth, clientWidth } = found as unknown as { scrollWidth: number; clientWidth: number };
      return { inner: scrollWidth, outer: clientWidth };
    });
    expect(inner, (await element.getAttribute('aria-label')) ?? '').to.be.at.most(outer);
  };

  for (const [kind, options] of Object.entries(windows)) {
    it(`the longest names of accounts, packs, films, people and keys fit a ${kind}, in dialogs and notices, too`, async () => {
      on.api.inspect(() => ({ metadata: { ...aFilm, title: name, channel: name } }));
      await setAccount(on.api.store, on.caller.account, { name });
      await setOffer(on.api.store, { name: 'long', title: name, credits: 50, price_cents: 500, currency: 'eur' });
      const key = { id: randomBytes(4).toString('hex'), hash: randomBytes(32).toString('hex'), alias: name };
      await createKey(on.api.store, on.caller.account, key);
      const { json } = await on.api.get('/v1/video/download', on.caller.key, { query: 'https://example.com/a.mp4' });
      await endJob(on.api.store, json.job_id, { ...completed, metadata: { title: name.repeat(3) } });
      const { page } = await on.signIn('owner', options);
      for (const view of ['/', '/billing', '/jobs', '/keys', `/jobs/${json.job_id}`]) {
        await on.show(page, view);
        await expectFitting(page);
        for (const table of await page.locator('.scroll').all()) await expectWhole(table);
        expect((await page.locator('.who').boundingBox())!.height, view).to.be.below(400);
      }
      await on.show(page, '/people');
      await page.getByLabel('E-mail address').fill(email);
      await page.getByRole('button', { name: 'Invite' }).click();
      await page.getByText('Send this link to').waitFor();
      await expectFitting(page);
      await on.photograph(page, `long-${kind.split(' ')[0]}-invited`);
      await on.show(page, '/download');
      await page.getByLabel('Address of a video or sound').fill('https://example.com/film.mp4');
      await page.getByRole('button', { name: 'Look at it first' }).click();
      await page.locator('.preview b').waitFor();
      await expectFitting(page);
      await on.show(page, '/keys');
      page.on('dialog', (dialog) => void dialog.accept());
      const row = page.getByRole('row').filter({ hasText: name });
      await row.getByRole('button', { name: 'Edit' }).click();
      await expectWhole(page.getByRole('dialog'));
      await page.getByRole('button', { name: 'Cancel' }).click();
      await row.getByRole('button', { name: 'Rotate' }).click();
      await page.getByText('Copy it now').waitFor();
      await expectWhole(page.getByRole('dialog'));
      await on.photograph(page, `long-${kind.split(' ')[0]}-secret`);
    });

    it(`the address of a receiver as long as can be leaves the words of its button whole in a ${kind}`, async () => {
      const last = { attempts: 3, last_status: 503, next_at: null, last_at: '2026-03-04T12:00:00.000Z' };
      const url = `https://example.com/${'y'.repeat(2_000)}`;
      const webhooks = [{ job: randomUUID(), kind: 'job', url, status: 'failed', ...last }];
      const { page } = await on.signIn('owner', options);
      await page.route('**/api/webhooks?*', (asked) => asked.fulfill({ json: { webhooks, next_cursor: null } }));
      await on.show(page, '/webhooks');
      const { height } = (await page.getByRole('button', { name: 'Send again' }).boundingBox())!;
      // Two lines at most.
      expect(height).to.be.below(64);
      await expectFitting(page);
    });
  }

  it('the credits of a purchase stand behind its pack, also when that has a Hebrew name with a number', async () => {
    const { account } = on.caller;
    const pack = { pack_title: 'חבילה 10', pack_total: 5_000, price_cents: 990, currency: 'eur' };
    const purchase = {
      id: `${account}-1`,
      account,
      kind: 'offer',
      ...pack,
      customer: 'c',
      payment_method: 'pm',
    } as const;
    const seller = { name: '', address: '', tax: '' };
    await endPurchase(on.api.store, purchase, { verdict: 'paid', payment: `pi_${account}`, seller });
    const { page } = await on.signIn();
    await on.show(page, '/billing');
    const cell = `[...document.querySelectorAll('td')].find(({ textContent }) => textContent.endsWith(' 5,000 credits'))`;
    expect(await readDrawn(page, cell)).to.equal('10 הליבח: 5,000 credits');
  });

  it('the credits and the price of a pack stand behind its Hebrew name with a number in the list of the top-up', async () => {
    const buyer = await on.api.addCaller({ quota: 10, paid: true });
    const offer = { title: 'חבילה 10', credits: 5_000, price_cents: 990, currency: 'eur' } as const;
    await setOffer(on.api.store, { name: 'hebrew', ...offer });
    const { page } = await on.signIn('owner', {}, buyer);
    await on.show(page, '/billing');
    const option = page.locator('select[name="offer"] option[value="hebrew"]');
    await option.waitFor({ state: 'attached' });
    // The letters of an option cannot be measured, those of its text elsewhere in the page can.
    const copy = `Object.assign(document.body.appendChild(document.createElement('p')), { textContent: ${JSON.stringify(await option.textContent())} })`;
    expect(await readDrawn(page, copy)).to.equal('10 הליבח: 5,000 credits for €9.90');
  });
});
