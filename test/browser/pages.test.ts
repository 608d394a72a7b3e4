import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { views as served } from '../../src/dashboard/page-files.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { addPack } from '../../src/store/money/add-pack.ts';
import { setOffer } from '../../src/store/money/offers.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { expectAccessible, expectFitting, startChromium, type Visit, visit } from '../support/browser.ts';
import { invited, openBrowser } from '../support/browser-session.ts';
import { until } from '../support/until.ts';

/** Views that one address shows whole; the one of a job needs its id, and the sign-in a person who is not signed in. */
const views = served.filter((view) => view !== '/sign-in' && !view.includes(':'));
const maxBytes = 150_000;
const hostile = 'https://example.com/<script>alert(1)</script>.mp4';

/** Where pictures of the pages are kept, when somebody wants to look at them. */
const pictures = process.env.PICTURES;

describe('the pages of the dashboard', function () {
  this.timeout(240_000);
  let api: TestApi;
  let browser: Browser;
  let caller: ApiCaller;
  const visits: Visit[] = [];
  before(async () => {
    api = await startApi({ TRAWL_AUTH_FAILURES: '1000000' });
    browser = await startChromium();
  });
  after(async () => {
    await browser.close();
    await api.stop();
  });
  beforeEach(async () => {
    caller = await api.addCaller({ credits: 100 });
  });
  afterEach(async () => {
    const faults = visits.flatMap(({ faults: found }) => found);
    await Promise.all(visits.splice(0).map(({ context }) => context.close()));
    expect(faults).to.deep.equal([]);
  });

  const open = async (options: Parameters<typeof visit>[2] = {}) => {
    const seen = await visit(browser, api.dashboardUrl, options);
    visits.push(seen);
    return seen;
  };
  const signIn = async (role: Parameters<typeof invited>[2] = 'owner', options: Parameters<typeof visit>[2] = {}) => {
    const seen = await open(options);
    const secret = await invited(api.store, role === 'operator' ? '' : caller.account, role, `${role}@example.com`);
    await seen.page.goto(`${api.dashboardUrl}/sign-in#${secret}`);
    await seen.page.getByRole('button', { name: 'Sign in' }).click();
    await seen.page.getByRole('navigation', { name: 'Pages' }).waitFor();
    return seen;
  };
  const show = async (page: Page, view: string) => {
    await page.goto(api.dashboardUrl + view);
    await page.getByRole('heading', { level: 1 }).waitFor();
    const waiting = page.getByRole('status').filter({ hasText: 'Loading' });
    const undrawn = page.locator('.chart:not(:has(canvas))');
    await until(async () => (await waiting.count()) + (await undrawn.count()) === 0, 10, `${view} is drawn`);
  };
  const photograph = async (page: Page, name: string) => {
    if (pictures !== undefined) await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
  };
  const startJobs = async () => {
    const own = openBrowser(api.dashboardUrl);
    await own.signIn(await invited(api.store, caller.account));
    const { json } = await own.ask('POST', '/api/jobs', { query: hostile });
    await own.ask('DELETE', `/api/jobs/${json.job_id}`);
    await own.ask('POST', '/api/jobs', { query: 'https://example.com/film.mp4' });
    return json.job_id as string;
  };

  /** Days on which the account had calls and charges. */
  const useCredits = async () => {
    for (let day = 0; day < 6; day++) {
      for (let n = 0; n < [3, 7, 2, 0, 9, 5][day % 6]!; n++)
        await api.get('/v1/media/metadata', caller.key, { query: `https://example.com/${n}` });
      api.store.advance(86_400_000);
    }
  };

  const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
  for (const [kind, options] of Object.entries({
    'a wide window': {},
    'a phone': phone,
    'the dark': { colorScheme: 'dark' as const },
  })) {
    it(`are shown whole in ${kind}, readable for everybody, in at most 150 KB each`, async () => {
      const jobId = await startJobs();
      const pack = { id: 'p', title: 'Small pack', total: 500, purchased_at: api.store.clock.now() };
      await addPack(api.store, caller.account, pack);
      await setAccount(api.store, caller.account, { name: 'Acme Films' });
      await api.get('/v1/usage', caller.key);
      await useCredits();
      const { page, bytes } = await signIn('owner', options);
      for (const view of [...views, `/jobs/${jobId}`]) {
        const before = bytes();
        await show(page, view);
        await expectFitting(page);
        await expectAccessible(page);
        expect(bytes() - before, `bytes of ${view}`).to.be.within(1, maxBytes);
        const name = view === '/' ? 'overview' : view.slice(1).replace(/\/.*/, '-one');
        await photograph(page, `${kind.split(' ').at(-1)}-${name}`);
      }
    });
  }

  it('let an owner make a key, see its secret once, use it, and find its calls', async () => {
    const { page } = await signIn();
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.getByLabel('Alias').fill('films');
    await page.getByLabel('24 hours').fill('5');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const secret = (await page.locator('dialog code').textContent())!;
    await expectAccessible(page);
    await photograph(page, 'secret');
    await page.getByRole('button', { name: 'Done' }).click();
    expect(await page.content()).not.to.include(secret);
    expect((await api.get('/v1/usage', secret)).status).to.equal(200);
    await page.reload();
    const row = page.getByRole('row').filter({ hasText: 'films' });
    await row.getByText('used, so it stays').waitFor();
    await row.getByRole('button', { name: 'Deactivate' }).click();
    await row.getByRole('button', { name: 'Reactivate' }).waitFor();
    expect((await api.get('/v1/usage', secret)).status).to.equal(401);
  });

  it('move by themselves while a job moves, and cancel it', async () => {
    const { page } = await signIn();
    await show(page, '/jobs');
    await page.getByText('No job yet').waitFor();
    await api.get('/v1/video/download', caller.key, { query: 'https://example.com/film.mp4' });
    await page.getByRole('link', { name: 'https://example.com/film.mp4' }).click();
    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('It ends: Error (cancelled)').waitFor();
    await page.goBack();
    await page.getByRole('cell', { name: 'Cancelled' }).waitFor();
  });

  it('show what a viewer may not change as text, and what an operator may see', async () => {
    const { page } = await signIn('viewer');
    await show(page, '/keys');
    expect(await page.getByRole('button', { name: 'Create a key' }).count()).to.equal(0);
    const operator = await signIn('operator');
    await operator.page.getByLabel('Account shown').fill(caller.slug);
    await operator.page.getByRole('button', { name: 'Show' }).click();
    await operator.page.getByRole('heading', { level: 1, name: caller.slug }).waitFor();
  });

  it('offer packs to an owner, and say why one cannot be bought', async () => {
    await setOffer(api.store, { name: 'small', title: 'Small', credits: 50, price_cents: 500, currency: 'eur' });
    const { page } = await signIn();
    await show(page, '/billing');
    await page.getByText('50 credits for €5.00').first().waitFor();
    await page.getByRole('button', { name: 'Buy' }).click();
    await page.getByRole('alert').filter({ hasText: 'No payment provider is configured' }).waitFor();
  });

  it('keep what is typed when the session ends', async () => {
    const { page, context } = await signIn();
    await show(page, '/people');
    await page.getByLabel('E-mail address').fill('kept@example.com');
    await context.clearCookies();
    await page.getByRole('button', { name: 'Invite' }).click();
    await page.getByText('what you have typed stays').waitFor();
    expect(await page.locator('main input[name=email]').inputValue()).to.equal('kept@example.com');
  });

  it('are used by the keyboard alone, from the link to a password', async () => {
    const { page } = await open();
    const secret = await invited(api.store, caller.account, 'owner', 'keys@example.com');
    await page.goto(`${api.dashboardUrl}/sign-in#${secret}`);
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Set one' }).focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('New password').focus();
    await page.keyboard.type('correct horse');
    await page.keyboard.press('Tab');
    await page.keyboard.type('correct horse');
    await page.keyboard.press('Enter');
    await page.getByText('The password is set').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('E-mail address').fill('keys@example.com');
    await page.getByLabel('Password').fill('correct horse');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Sign in' }).waitFor();
  });
});
