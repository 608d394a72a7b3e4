import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { createKey } from '../../src/store/accounts/create-key.ts';
import { grantCredits } from '../../src/store/money/grant-credits.ts';
import { endJob, runJob } from '../support/job-steps.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

const phone = { viewport: { width: 360, height: 780 }, hasTouch: true, isMobile: true };
const most = 1_000_000_000_000;

/** Notes each text that a page draws on a canvas, and where it begins and ends. */
const noteDrawnText = `
globalThis.drawn = [];
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, x, ...more) {
  const { width } = this.measureText(text);
  const left = this.textAlign === 'right' ? x - width : this.textAlign === 'center' ? x - width / 2 : x;
  globalThis.drawn.push({ text, left, right: left + width, room: this.canvas.width });
  fillText.call(this, text, x, ...more);
};`;

describe('wide numbers and cells on the pages', () => {
  let on: VisitedDashboard;
  eachWithVisits((visited) => {
    on = visited;
  });

  const drawnOn = (page: Page) =>
    page.evaluate<{ text: string; left: number; right: number; room: number }[]>('globalThis.drawn');

  it('the axes of a chart show a million credits and a billion whole, each by a few characters', async () => {
    await grantCredits(on.api.store, on.caller.account, 9_999_900);
    const { page } = await on.signIn();
    await page.addInitScript(noteDrawnText);
    for (const label of ['10m', '1tn']) {
      await on.show(page, '/');
      const drawn = await drawnOn(page);
      expect(drawn.map(({ text }) => text.toLowerCase())).to.include(label);
      expect(drawn.filter(({ left, right, room }) => left < 0 || right > room)).to.deep.equal([]);
      await grantCredits(on.api.store, on.caller.account, most - 10_000_000);
    }
  });

  it('no number of a tile is broken in two on a phone', async () => {
    await grantCredits(on.api.store, on.caller.account, most - 100);
    const { page } = await on.signIn('owner', phone);
    for (const view of ['/', '/billing']) {
      await on.show(page, view);
      for (const number of await page.locator('.tiles b').all()) {
        const { height } = (await number.boundingBox())!;
        expect(height, `${view}: ${await number.textContent()}`).to.be.below(50);
      }
    }
  });

  it('all of a cell of a table stands beside its name on a phone, and nothing of it below the name', async () => {
    const ask = async (n: number) =>
      (await on.api.get('/v1/video/download', on.caller.key, { query: `https://example.com/${n}.mp4` })).json.job_id;
    await endJob(on.api.store, await ask(1));
    await runJob(on.api.store, await ask(2));
    await createKey(on.api.store, on.caller.account, {
      ...{ id: randomBytes(4).toString('hex'), hash: randomBytes(32).toString('hex'), alias: 'limited' },
      quotas: { total: 100, monthly: 50, weekly: 20, daily: 10 },
    });
    const { page } = await on.signIn('owner', phone);
    for (const view of ['/jobs', '/keys', '/requests', '/account']) {
      await on.show(page, view);
      const below = await page.evaluate<string[]>(`[...document.querySelectorAll('td > *')]
        .filter((part) => part.tagName !== 'BR')
        .filter((part) => part.getBoundingClientRect().left < part.parentElement.getBoundingClientRect().left + 80)
        .map((part) => part.textContent || part.tagName)`);
      expect(below, view).to.deep.equal([]);
    }
  });

  it('no column of a table is out of sight in the window of a tablet, upright or not', async () => {
    const query = 'https://example.com/film.mp4';
    const webhook_url = `https://hooks.example.com/${'x'.repeat(200)}`;
    const { json } = await on.api.get('/v1/video/download', on.caller.key, { query, webhook_url });
    await endJob(on.api.store, json.job_id);
    const { page } = await on.signIn();
    for (const width of [768, 834, 1009, 1024]) {
      await page.setViewportSize({ width, height: 1024 });
      for (const view of ['/keys', '/requests', '/webhooks', '/jobs', '/billing', '/account']) {
        await on.show(page, view);
        const hidden = await page.evaluate<number[]>(`[...document.querySelectorAll('.scroll')]
          .map((table) => table.scrollWidth - table.clientWidth).filter((pixels) => pixels > 0)`);
        expect(hidden, `${view} in ${width} px`).to.deep.equal([]);
      }
    }
  });
});
