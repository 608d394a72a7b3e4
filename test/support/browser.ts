import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const { resolve } = createRequire(import.meta.url);
const axe = readFileSync(resolve('axe-core/axe.min.js'), 'utf8');
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Starts Debian's Chromium without a window; its own sandbox needs another user than root. `without`: arguments of Playwright that are left out. */
export function startChromium(without: string[] = []): Promise<Browser> {
  return chromium.launch({
    ignoreDefaultArgs: without,
    executablePath: '/usr/bin/chromium',
    chromiumSandbox: false,
    args: ['--disable-gpu', '--disable-dev-shm-usage', '--force-color-profile=srgb', '--font-render-hinting=none'],
  });
}

/** A window whose pages are listened to. */
export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Faults: errors and warnings of the console, dialogs of stored scripts, requests to another origin. */
  readonly faults: string[];
  /** Bytes of every answer so far. */
  bytes(): number;
}

export async function visit(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext({
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    reducedMotion: 'reduce',
    serviceWorkers: 'block',
    viewport: { width: 1280, height: 900 },
    ...options,
  });
  const page = await context.newPage();
  const faults: string[] = [];
  let bytes = 0;
  page.on('console', (message) => {
    // A refusal that the page shows is told of by the browser too.
    const isAnswer = message.text().startsWith('Failed to load resource');
    if (['error', 'warning'].includes(message.type()) && !isAnswer) faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) faults.push(`asks ${request.url()}`);
  });
  page.on('response', async (response) => {
    bytes +=
      Number(response.headers()['content-length'] ?? 0) || (await response.body().catch(() => Buffer.alloc(0))).length;
  });
  return { page, context, faults, bytes: () => bytes };
}

/** Fails with the first fault of accessibility that axe finds on a page. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(axe);
  // As text: the functions of a page see names that Node does not have.
  const found = await page.evaluate<{ id: string; nodes: { html: string }[] }[]>(
    `axe.run(document, { runOnly: ${JSON.stringify(rules)} }).then(({ violations }) => violations)`,
  );
  const words = found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`);
  expect(words).to.deep.equal([]);
}

/** Fails when a page is wider than its window, which a phone would have to scroll sideways. */
export async function expectFitting(page: Page): Promise<void> {
  // A phone makes its window as wide as what is too wide.
  const width = await page.evaluate<number>('Math.max(document.documentElement.scrollWidth, innerWidth)');
  expect(width, await page.title()).to.be.at.most(page.viewportSize()!.width);
}
