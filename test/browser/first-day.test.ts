import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { setOffer } from '../../src/store/money/offers.ts';
import { expectAccessible, expectFitting, startChromium, visit } from '../support/browser.ts';
import { invited } from '../support/browser-session.ts';
import { freePort } from '../support/free-port.ts';
import { type Mailbox, startMailbox } from '../support/mailbox.ts';
import { paidEvent, sendEvent } from '../support/paid-event.ts';
import { makeService, type Service } from '../support/service.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { type StripeStandIn, startStripe } from '../support/stripe-stand-in.ts';
import { until } from '../support/until.ts';
import { photograph } from '../support/visited-dashboard.ts';

const email = 'ada@example.com';
const secret = 'whsec_test';

describe('the first day of a new owner', () => {
  const service: Service = makeService({ TRAWL_WORKERS: '1' });
  let [mailbox, stripe, films, browser]: [Mailbox, StripeStandIn, Source, Browser] = [null!, null!, null!, null!];
  let dashboard: string;
  before(async () => {
    [mailbox, stripe, films, browser] = await Promise.all([
      startMailbox(),
      startStripe(),
      startSource(),
      startChromium(),
    ]);
    const port = await freePort();
    dashboard = `http://127.0.0.1:${port}`;
    await service.start({
      ...{ TRAWL_DASHBOARD_PORT: String(port), TRAWL_SMTP_URL: mailbox.url, TRAWL_MAIL_FROM: 'trawl@example.com' },
      ...{ TRAWL_STRIPE_KEY: 'sk_test_1', TRAWL_STRIPE_URL: stripe.url, TRAWL_STRIPE_WEBHOOK_SECRET: secret },
      ...{ TRAWL_SELLER_NAME: 'Films Ltd', TRAWL_SELLER_ADDRESS: '1 Main Street', TRAWL_SELLER_TAX: 'VAT 0 %' },
    });
  });
  after(async () => {
    await browser.close();
    await service.close();
    await Promise.all([mailbox.stop(), stripe.stop(), films.stop()]);
  });

  const mailTo = async (subject: RegExp) => {
    const find = () => mailbox.mails.find(({ to, mail }) => to === email && subject.test(mail.subject ?? '')) ?? null;
    return (await until(find, 30, `a mail about ${subject}`))!.mail;
  };

  /** Lets the founder of an account invite the owner; returns the link in the mail. */
  const invite = async (account: string) => {
    const [link] = await service.withStore(async (store) => {
      await setOffer(store, { name: 'small', title: 'Small', credits: 50, price_cents: 990, currency: 'eur' });
      await setAccount(store, account, { name: 'Harbour Films' });
      return [await invited(store, account, 'owner', 'founder@example.com')];
    });
    const founder = await visit(browser, dashboard);
    await founder.page.goto(`${dashboard}/sign-in#${link}`);
    await founder.page.getByRole('button', { name: 'Sign in' }).click();
    await founder.page.getByRole('link', { name: 'People' }).click();
    await founder.page.getByLabel('E-mail address').fill(email);
    await founder.page.getByLabel('Role').selectOption('owner');
    await founder.page.getByRole('button', { name: 'Invite' }).click();
    await founder.page.getByText(`is on its way to ${email}`).waitFor();

    const [address] = /http:\S+\/sign-in#\S+/.exec((await mailTo(/invit/i)).text ?? '') ?? [];
    await founder.context.close();
    return address!;
  };
  const downloadByHand = async (page: Page) => {
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('link', { name: 'download a file' }).click();
    await page.getByLabel('Address of a video or sound').fill(`${films.url}/films/clip.mp4`);
    await page.getByRole('button', { name: 'Look at it first' }).click();
    await page.locator('.preview b').waitFor();
    await photograph(page, 'day-3-look');
    await page.getByRole('button', { name: 'Download', exact: true }).click();
    const file = page.locator('section').filter({ hasText: 'SHA-256' });
    await file.waitFor({ timeout: 360_000 });
    await photograph(page, 'day-4-file');
    await expectAccessible(page);
    const saved = page.waitForEvent('download');
    await file.getByRole('link', { name: 'Save the file' }).click();
    const content = readFileSync(await (await saved).path());
    expect(await file.textContent()).to.include(createHash('sha256').update(content).digest('hex'));
  };
  /** The stages come from a real worker. */
  const readTimeline = async (page: Page) => {
    await page.getByRole('link', { name: 'Jobs' }).click();
    await page.getByRole('table').getByRole('link').first().click();
    const told = page.locator('.timeline');
    for (const words of [
      'is accepted',
      'Reading the page took',
      'Downloading took',
      'Storing the file took',
      'is charged',
    ])
      await told.getByText(words).waitFor();
    await expectAccessible(page);
    await photograph(page, 'day-6-job');
    await page.setViewportSize({ width: 360, height: 780 });
    await expectFitting(page);
    await photograph(page, 'day-7-job-phone');
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.emulateMedia({ colorScheme: 'dark' });
    await photograph(page, 'day-8-job-dark');
    await page.emulateMedia({ colorScheme: 'light' });
  };
  const makeKey = async (page: Page) => {
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.getByLabel('Alias').fill('website');
    await page.getByLabel('24 hours').fill('500');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const secret = (await page.locator('dialog code').textContent())!;
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Done' }).click();
    const query = encodeURIComponent(`${films.url}/films/clip.mp4`);
    expect((await service.ask(secret, `/v1/media/metadata?query=${query}`)).status).to.equal(200);
    await page.reload();
    await page.getByRole('row').filter({ hasText: 'website' }).getByText('1 of 500').waitFor();
    await page.emulateMedia({ colorScheme: 'dark' });
    await photograph(page, 'day-9-keys-dark');
    await page.emulateMedia({ colorScheme: 'light' });
  };
  const buyPack = async (page: Page, context: BrowserContext, account: string) => {
    await context.route('https://checkout.example/**', (route) => route.fulfill({ body: 'the page of the provider' }));
    await page.getByRole('link', { name: 'Billing' }).click();
    await page.getByRole('button', { name: 'Buy' }).click();
    await page.getByText('the page of the provider').waitFor();
    // The provider sends an event again until it is taken.
    const isTaken = async () => (await sendEvent(dashboard, secret, paidEvent(account, 'first'))).ok;
    await until(isTaken, 30, 'the event of the payment is taken');
    await page.goto(`${dashboard}/billing`);
    const row = page.getByRole('row').filter({ hasText: 'Pack: 50 credits' });
    await row.waitFor();
    await page.locator('.chart canvas').waitFor();
    await photograph(page, 'day-5-invoice');
    const invoice = page.waitForEvent('download');
    await row.getByRole('link').click();
    expect(
      readFileSync(await (await invoice).path())
        .subarray(0, 5)
        .toString(),
    ).to.equal('%PDF-');
    const mail = await mailTo(/invoice/i);
    expect(mail.text).to.include('Films Ltd');
  };

  it('goes from the mail of an invitation to a file and to an invoice', async () => {
    const { account } = await service.aCustomer({ credits: 10 });
    const address = await invite(account);
    const { page, context, faults } = await visit(browser, dashboard);
    await page.goto(address);
    await photograph(page, 'day-1-link');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'Set one' }).waitFor();
    await photograph(page, 'day-2-overview');
    await page.getByRole('link', { name: 'Set one' }).click();
    await page.getByLabel('New password').fill('correct horse');
    await page.getByLabel('The same again').fill('correct horse');
    await page.getByRole('button', { name: 'Set password' }).click();
    await page.getByText('The password is set').waitFor();
    await downloadByHand(page);
    await readTimeline(page);
    await makeKey(page);
    await buyPack(page, context, account);
    // The file comes from the public API, and the checkout from the provider.
    const own = new RegExp(`^asks (${service.up().url}|https://checkout\\.example)/`);
    expect(faults.filter((fault) => !own.test(fault))).to.deep.equal([]);
    await context.close();
  });
});
