import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { setOffer } from '../../src/store/money/offers.ts';
import { setTopup } from '../../src/store/money/set-topup.ts';
import { expectAccessible, expectFitting } from '../support/browser.ts';
import { invited } from '../support/browser-session.ts';
import { beginJob } from '../support/job-steps.ts';
import { pressAt } from '../support/keyboard.ts';
import { eachWithMailSender, type MailSender } from '../support/mail-sender.ts';
import { completed, holder } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import { type StripeStandIn, startStripe } from '../support/stripe-stand-in.ts';
import { aBuyer, buyDue, seller, spend } from '../support/topups.ts';
import { until } from '../support/until.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

const film = 'https://example.com/film.mp4';
const hostile = '<img src=x onerror=alert(1)><script>alert(2)</script>';
const offer = { name: 'small', title: 'Small', credits: 50, price_cents: 500, currency: 'eur' };
const env: Record<string, string> = {
  ...{ TRAWL_STRIPE_KEY: 'sk_test_1', TRAWL_STRIPE_WEBHOOK_SECRET: 'whsec_test' },
  // Browsers keep passkeys for a name, not for an address.
  TRAWL_DASHBOARD_URL: 'http://localhost:0',
};

describe('what people do on the dashboard', () => {
  let on: VisitedDashboard;
  let stripe: StripeStandIn;
  before(async () => {
    stripe = await startStripe();
    env.TRAWL_STRIPE_URL = stripe.url;
  });
  after(() => stripe.stop());
  eachWithVisits((visited) => {
    on = visited;
  }, env);
  let sender: MailSender;
  eachWithMailSender(
    () => on.api.store,
    (given) => {
      sender = given;
    },
  );

  it('a job moves on the list and on its own page; a title that is a script is text', async () => {
    const { page } = await on.signIn();
    await on.show(page, '/jobs');
    await page.getByText('No job yet').waitFor();
    const { json } = await on.api.get('/v1/video/download', on.caller.key, { query: film });
    await page.getByRole('link', { name: film }).waitFor();
    const job = await beginJob(on.api.store, json.job_id);
    await noteProgress(on.api.store, job, 1, { progress: 40, stage: 'download', speed_bytes: 2e6, eta_seconds: 9 });
    await page.getByText('40 % download · 2.0 MB/s · 9 s left').waitFor();
    const other = await on.signIn('viewer');
    await on.show(other.page, `/jobs/${job.id}`);
    await other.page.getByText('40 % download').waitFor();
    expect(await other.page.getByRole('button', { name: 'Cancel' }).count()).to.equal(0);
    await settleJob(on.api.store, holder, job, { ...completed, metadata: { title: hostile } });
    for (const seen of [page, other.page]) {
      await seen.getByText(hostile).waitFor();
      await seen.getByRole('link', { name: 'Save the file' }).last().waitFor();
      expect(await seen.locator('img[src=x]').count()).to.equal(0);
      await expectAccessible(seen);
    }
  });

  it('the page says what is used up: the quota of the key, the key, the credits', async () => {
    const { page } = await on.signIn();
    const start = async () => {
      await page.getByRole('button', { name: 'Download', exact: true }).click();
      await page.getByRole('button', { name: 'Download', exact: true }).waitFor();
    };
    await on.show(page, '/download');
    await page.getByLabel('Address of a video or sound').fill(film);
    await page.getByLabel('Quality, at most').selectOption('480p');
    await page.getByLabel('From').fill('1:05');
    await page.getByLabel('To (').fill('1:10');
    await start();
    await page.getByRole('link', { name: 'Your file' }).click();
    await page.getByText(film).last().waitFor();
    const { jobs } = await listJobs(on.api.store, on.caller.account, { status: undefined, limit: 2, after: null });
    expect(jobs[0]?.args).to.include({ query: film, video_quality: '480p', start: 65, end: 70 });
    await on.show(page, '/keys');
    const row = page.getByRole('row').filter({ hasText: 'by hand' });
    await row.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('24 hours').fill('1');
    await page.getByRole('button', { name: 'Save' }).click();
    await row.getByText('1 of 1').waitFor();
    await on.show(page, '/download');
    await page.getByLabel('Address of a video or sound').fill(film);
    await start();
    await page.getByRole('alert').filter({ hasText: 'has reached its quota' }).waitFor();
    expect(await page.getByText('Your session has ended').count()).to.equal(0);
    await expectAccessible(page);
    await on.photograph(page, 'quota-reached');
    const poor = await on.signIn('owner', {}, await on.api.addCaller({ credits: 0 }));
    await on.show(poor.page, '/download');
    await poor.page.getByLabel('Address of a video or sound').fill(film);
    await poor.page.getByRole('button', { name: 'Download', exact: true }).click();
    await poor.page.getByRole('alert').filter({ hasText: 'No credit is left' }).waitFor();
  });

  it('an owner switches the top-up on with a pack and a cap, and off again', async () => {
    const buyer = await on.api.addCaller({ quota: 10, paid: true });
    await setOffer(on.api.store, offer);
    const { page } = await on.signIn('owner', {}, buyer);
    await on.show(page, '/billing');
    const card = page.locator('section').filter({ hasText: 'Automatic top-up' }).last();
    await card.getByLabel('Buy a pack when little is left').check();
    await card.getByRole('combobox', { name: /^Pack/ }).selectOption('small');
    await card.getByRole('button', { name: 'Save' }).click();
    await card.getByRole('alert').filter({ hasText: 'a payment method' }).waitFor();
    await page.getByRole('button', { name: 'Store a card' }).waitFor();
    await setTopup(on.api.store, buyer.account, { customer: 'cus_1', payment_method: 'pm_card_visa' });
    await card.getByRole('combobox', { name: /^Below/ }).selectOption('20');
    await card.getByText('With 10 credits of the plan and a pack of 50: when fewer than 12 credits are left').waitFor();
    await card.getByLabel('At most in a month').fill('1500');
    await card.getByText('€15.00 a month', { exact: true }).waitFor();
    await card.getByRole('button', { name: 'Save' }).click();
    await page.getByText('A card is stored.').waitFor();
    await page.getByRole('button', { name: 'Store another card' }).waitFor();
    await card
      .getByText('Below 20 % of the quota and one pack it buys 50 credits for €5.00, at most €15.00 a month.')
      .waitFor();
    await on.show(page, '/billing');
    const packs = card.getByRole('combobox', { name: /^Pack/ });
    await packs.waitFor();
    expect(await packs.locator('option').allTextContents()).to.deep.equal(['\u2068Small\u2069: 50 credits for €5.00']);
    await card.getByText('on', { exact: true }).waitFor();
    await expectAccessible(page);
    await on.photograph(page, 'topup');
    await card.getByLabel('Buy a pack when little is left').uncheck();
    await card.getByRole('button', { name: 'Save' }).click();
    await card.getByText('Nothing is bought by itself').waitFor();
    expect(stripe.charges).to.have.length(0);
  });

  it('an owner without a paid plan reads that the top-up needs one, in place of its form', async () => {
    await setOffer(on.api.store, offer);
    const { page } = await on.signIn();
    await on.show(page, '/billing');
    await page.getByText('needs a paid plan. Plans are given by the operator').waitFor();
    expect(await page.getByLabel('Buy a pack when little is left').count()).to.equal(0);
    await expectAccessible(page);
  });

  it('an owner whose card is declined sees the top-up off and why, and has a mail', async () => {
    const { store } = on.api;
    const buyer = await aBuyer(store, { payment_method: 'pm_card_chargeDeclined' });
    const { page } = await on.signIn('owner', {}, { account: buyer.accountId });
    await on.show(page, '/billing');
    const card = page.locator('section').filter({ hasText: 'Automatic top-up' }).last();
    await card.getByText('Below 30 % of the quota and one pack it buys 10 credits for €9.90').waitFor();
    await spend(store, buyer, 5);
    await buyDue({ store, seller, metrics: sender.metrics, log: aLog().log }, stripe.url);
    await sender.send();
    const declined = sender.box.mails.filter(({ mail }) => mail.subject?.includes('was declined and is now disabled'));
    expect(declined.map(({ to }) => to)).to.deep.equal([`owner-${on.caller.slug}@example.com`]);
    await on.show(page, '/billing');
    await card.getByText('Nothing is bought by itself').waitFor();
    await card.getByText('was declined, which switched it off: Your card was declined.').waitFor();
    await page.getByRole('row').filter({ hasText: 'Auto: 10 credits' }).getByText('declined').first().waitFor();
    expect(await card.getByLabel('Buy a pack when little is left').isChecked()).to.equal(false);
    await expectAccessible(page);
    await on.photograph(page, 'topup-declined');
    expect(stripe.charges).to.have.length(0);
  });

  it('the CSV file has the lines of the search, and nothing else', async () => {
    for (const path of ['/v1/usage', '/v1/jobs/none', '/v1/usage']) await on.api.get(path, on.caller.key);
    const { page } = await on.signIn('viewer');
    const hasLines = async () => {
      await on.show(page, '/requests?status=4xx');
      return (await page.getByRole('row').count()) === 2;
    };
    await until(hasLines, 10, 'the line of the refused call');
    const saved = page.waitForEvent('download');
    await page.getByRole('link', { name: 'CSV' }).click();
    const [head, ...lines] = readFileSync(await (await saved).path(), 'utf8')
      .trimEnd()
      .split('\r\n');
    expect(head).to.equal('at,endpoint,status,duration_ms,ip,credits,key');
    expect(lines).to.have.length(1);
    expect(lines[0]).to.match(/^\d{4}-\d\d-\d\dT[\d:.]+Z,GET \/v1\/jobs\/\{id\},40\d,\d+,127\.0\.0\.1,0,k/);
  });

  it('a link to a view opens it after the sign-in, and the back button goes from view to view', async () => {
    const { page } = await on.signIn();
    await on.show(page, '/account');
    await page.getByLabel('New password').fill('correct horse');
    await page.getByLabel('The same again').fill('correct horse');
    await page.getByRole('button', { name: 'Set password' }).click();
    await page.getByText('The password is set').waitFor();
    const guest = await on.open();
    await guest.page.goto(`${on.api.dashboardUrl}/requests?status=4xx&text=usage`);
    await guest.page.getByLabel('E-mail address').fill(`owner-${on.caller.slug}@example.com`);
    await guest.page.getByLabel('Password').fill('correct horse');
    await guest.page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await guest.page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor();
    expect(await guest.page.getByLabel('Status').inputValue()).to.equal('4xx');
    expect(await guest.page.getByLabel('Text').inputValue()).to.equal('usage');
    for (const name of ['Keys', 'Jobs']) await guest.page.getByRole('link', { name, exact: true }).click();
    await guest.page.goBack();
    await guest.page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
    await guest.page.goBack();
    await guest.page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor();
    expect(await guest.page.getByLabel('Status').inputValue()).to.equal('4xx');
  });

  it('what is typed into a dialog outlasts the session, and is sent after the next sign-in', async () => {
    const { page, context } = await on.signIn();
    await on.show(page, '/account');
    await page.getByLabel('New password').fill('correct horse');
    await page.getByLabel('The same again').fill('correct horse');
    await page.getByRole('button', { name: 'Set password' }).click();
    await page.getByText('The password is set').waitFor();
    await on.show(page, '/keys');
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.getByLabel('Alias').fill('kept');
    await context.clearCookies();
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const over = page.getByRole('dialog', { name: 'Your session has ended' });
    await over.waitFor();
    await expectAccessible(page);
    // Somebody who closes the question meets it again.
    await page.keyboard.press('Escape');
    await over.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await over.getByLabel('E-mail address').fill(`owner-${on.caller.slug}@example.com`);
    await over.getByLabel('Password').fill('correct horse');
    await over.getByRole('button', { name: 'Sign in', exact: true }).click();
    await over.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByText('The secret of kept').waitFor();
  });

  it('the page says that it is offline, keeps what is typed, and goes on by itself', async () => {
    const { page, context } = await on.signIn();
    await on.show(page, '/people');
    await page.getByLabel('E-mail address').fill('kept@example.com');
    await context.setOffline(true);
    await page.getByText('what you see may be old').waitFor();
    await page.getByRole('button', { name: 'Invite' }).click();
    await page.getByRole('alert').filter({ hasText: 'cannot be reached' }).waitFor();
    await expectAccessible(page);
    await on.photograph(page, 'offline');
    await context.setOffline(false);
    await page.getByText('what you see may be old').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Invite' }).click();
    await page.getByRole('cell', { name: 'kept@example.com' }).waitFor();
  });

  it('a passkey is added, named, used to sign in, and kept while nothing else signs its person in', async () => {
    const { page, context } = await on.open();
    const devtools = await context.newCDPSession(page);
    await devtools.send('WebAuthn.enable');
    await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true },
        ...{ isUserVerified: true, automaticPresenceSimulation: true },
      },
    });
    const link = await invited(on.api.store, on.caller.account, 'owner', `passkey-${on.caller.slug}@example.com`);
    await page.goto(`${on.api.dashboardUrl}/sign-in#${link}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'Set one' }).click();
    await page.getByLabel('Name of the new passkey').fill('<b>laptop');
    await page.keyboard.press('Enter');
    await page.getByText('The passkey is added').waitFor();
    const row = page.getByRole('row').filter({ hasText: '<b>laptop' });
    await pressAt(page, row.getByRole('button', { name: 'Rename' }));
    await page.getByLabel('New name').fill('laptop');
    await page.keyboard.press('Enter');
    await page.getByRole('row').filter({ hasText: 'laptop' }).getByText('never').waitFor();
    await page.getByLabel('Name of the new passkey').fill('again');
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByText('This device has a passkey of yours already').waitFor();
    await expectFitting(page);
    await expectAccessible(page);
    await on.photograph(page, 'passkeys');

    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in with a passkey' }).waitFor();
    await expectAccessible(page);
    await on.photograph(page, 'sign-in');
    await page.getByRole('button', { name: 'Sign in with a passkey' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: on.caller.slug }).waitFor();
    expect(await page.getByText('no password or passkey').count()).to.equal(0);
    await page.getByRole('link', { name: 'Your sign-in' }).click();
    page.on('dialog', (dialog) => void dialog.accept());
    await pressAt(page, page.getByRole('button', { name: 'Remove' }));
    await page.getByText('Nothing else signs you in').waitFor();
  });
});
