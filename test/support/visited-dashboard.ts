import { expect } from 'chai';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import type { PersonRole } from '../../src/model/person.ts';
import { type ApiCaller, startApi, type TestApi } from './api.ts';
import { startChromium, type Visit, visit } from './browser.ts';
import { invited } from './browser-session.ts';
import { until } from './until.ts';

/** A dashboard in Chromium, with a fresh account before each test. */
export interface VisitedDashboard {
  readonly api: TestApi;
  readonly caller: ApiCaller;
  /** Opens a window of its own, which nobody has signed in at; `url`: where its pages come from, if not from the dashboard. */
  open(options?: BrowserContextOptions, url?: string): Promise<Visit>;
  /** Signs a person in, of the account of this test or of another. */
  signIn(
    role?: PersonRole | 'operator',
    options?: BrowserContextOptions,
    of?: Pick<ApiCaller, 'account'>,
  ): Promise<Visit>;
  /** Opens a view and waits until it is drawn. */
  show(page: Page, view: string): Promise<void>;
  /** Takes a picture where somebody wants to look at it: in the folder PICTURES. */
  photograph(page: Page, name: string): Promise<void>;
}

/** Passes a dashboard in Chromium to the tests of a block; fails each whose pages had a fault. */
export function eachWithVisits(
  take: (visited: VisitedDashboard) => void,
  env: Readonly<Record<string, string>> = {},
): void {
  let [api, browser]: [TestApi | undefined, Browser | undefined] = [undefined, undefined];
  const visits: Visit[] = [];
  before(async () => {
    api = await startApi({ TRAWL_AUTH_FAILURES: '1000000', ...env });
    browser = await startChromium();
  });
  after(async () => {
    await browser?.close();
    await api?.stop();
  });
  beforeEach(async () => {
    const own = api!;
    const caller = await own.addCaller({ credits: 100 });
    const open: VisitedDashboard['open'] = async (options = {}, url = own.dashboardUrl) => {
      const seen = await visit(browser!, url, options);
      visits.push(seen);
      return seen;
    };
    const signIn: VisitedDashboard['signIn'] = async (role = 'owner', options = {}, of = caller) => {
      const seen = await open(options);
      const secret = await invited(
        own.store,
        role === 'operator' ? '' : of.account,
        role,
        `${role}-${caller.slug}@example.com`,
      );
      await seen.page.goto(`${own.dashboardUrl}/sign-in#${secret}`);
      await seen.page.getByRole('button', { name: 'Sign in' }).click();
      await seen.page.getByRole('navigation', { name: 'Pages' }).waitFor();
      return seen;
    };
    const show = async (page: Page, view: string) => {
      await page.goto(own.dashboardUrl + view);
      await drawn(page, view);
    };
    take({ api: own, caller, open, signIn, show, photograph });
  });
  afterEach(async () => {
    const faults = visits.flatMap(({ faults: found }) => found);
    await Promise.all(visits.splice(0).map(({ context }) => context.close()));
    expect(faults).to.deep.equal([]);
  });
}

/** Waits until a view shows what it asked for, charts included. */
async function drawn(page: Page, view: string): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  const waiting = page.getByRole('status').filter({ hasText: 'Loading' });
  const undrawn = page.locator('.chart:not(:has(canvas))');
  await until(async () => (await waiting.count()) + (await undrawn.count()) === 0, 10, `${view} is drawn`);
}

/** Keeps a picture of the whole page, where a folder for pictures is named. */
export async function photograph(page: Page, name: string): Promise<void> {
  const folder = process.env.PICTURES;
  if (folder !== undefined) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
}
