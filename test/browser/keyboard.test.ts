import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { makeSeal } from '../../src/base/seal.ts';
import { channels } from '../../src/store/keys.ts';
import { setOffer } from '../../src/store/money/offers.ts';
import { dueWebhooks } from '../../src/store/webhooks/due-webhooks.ts';
import { endWebhook } from '../../src/store/webhooks/end-webhook.ts';
import { takeWebhook } from '../../src/store/webhooks/take-webhook.ts';
import { testReceivers } from '../../src/webhooks/test-receivers.ts';
import type { ApiCaller } from '../support/api.ts';
import { invited } from '../support/browser-session.ts';
import { endJob } from '../support/job-steps.ts';
import { expectFocus, pressAt, tabTo, typeAt } from '../support/keyboard.ts';
import { startReceiverProxy } from '../support/receiver-proxy.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

const offer = { name: 'small', title: 'Small', credits: 50, price_cents: 500, currency: 'eur' };
const password = 'correct horse';

describe('the dashboard by the keyboard alone', () => {
  let on: VisitedDashboard;
  eachWithVisits((visited) => {
    on = visited;
  });

  const button = (page: Page, name: string, exact = true) => page.getByRole('button', { name, exact });
  /** Signs in by keyboard and goes to a page by the navigation. */
  const enter = async (pageName: string, of: Pick<ApiCaller, 'account'> = on.caller) => {
    const { page } = await on.signIn('owner', {}, of);
    await pressAt(page, page.getByRole('link', { name: pageName, exact: true }));
    await page.getByRole('heading', { level: 1, name: pageName }).waitFor();
    return page;
  };

  it('leads from the link to a password, out, and in again', async () => {
    const { page } = await on.open();
    const secret = await invited(on.api.store, on.caller.account, 'owner', 'keys@example.com');
    await page.goto(`${on.api.dashboardUrl}/sign-in#${secret}`);
    await pressAt(page, button(page, 'Sign in'));
    await pressAt(page, page.getByRole('link', { name: 'Set one' }));
    await typeAt(page, page.getByLabel('New password'), password);
    await typeAt(page, page.getByLabel('The same again'), password);
    await page.keyboard.press('Enter');
    await page.getByText('The password is set').waitFor();
    await pressAt(page, button(page, 'Sign out'));
    await typeAt(page, page.getByLabel('E-mail address'), 'keys@example.com');
    await typeAt(page, page.getByLabel('Password'), password);
    await page.keyboard.press('Enter');
    await page.getByRole('navigation', { name: 'Pages' }).waitFor();
    await page.getByRole('heading', { level: 1, name: on.caller.slug }).waitFor();
    // Who comes to a page skips its navigation.
    await page.reload();
    await page.getByRole('navigation', { name: 'Pages' }).waitFor();
    await page.keyboard.press('Tab');
    await expectFocus(page.getByRole('link', { name: 'Skip to content' }));
    await page.keyboard.press('Enter');
    await expectFocus(page.locator('main'));
  });

  it('makes, changes, rotates, deactivates and deletes a key; the focus returns to where each dialog came from', async () => {
    const page = await enter('Keys');
    await pressAt(page, button(page, 'Create a key'));
    await page.keyboard.press('Escape');
    await expectFocus(button(page, 'Create a key'));
    await page.keyboard.press('Enter');
    await typeAt(page, page.getByLabel('Alias'), 'films');
    await typeAt(page, page.getByLabel('24 hours'), '5');
    await pressAt(page, button(page, 'Create'), 'Space');
    const secret = (await page.locator('dialog code').textContent())!;
    expect((await on.api.get('/v1/usage', secret)).status).to.equal(200);
    await tabTo(page, button(page, 'Copy'));
    await pressAt(page, button(page, 'Done'));
    await expectFocus(button(page, 'Create a key'));
    const row = page.getByRole('row').filter({ hasText: 'films' });
    await row.getByText('0 of 5').waitFor();
    await pressAt(page, row.getByRole('button', { name: 'Deactivate' }));
    await row.getByRole('button', { name: 'Reactivate' }).waitFor();
    await expectFocus(row.getByRole('button', { name: 'Reactivate' }));
    await pressAt(page, page.getByRole('button', { name: 'Create a key' }));
    await typeAt(page, page.getByLabel('Alias'), 'unused');
    await page.keyboard.press('Enter');
    await pressAt(page, button(page, 'Done'));
    const unused = page.getByRole('row').filter({ hasText: 'unused' });
    await pressAt(page, unused.getByRole('button', { name: 'Edit' }));
    await typeAt(page, page.getByLabel('Category'), 'tests');
    await page.keyboard.press('Enter');
    await unused.getByText('tests').waitFor();
    await expectFocus(unused.getByRole('button', { name: 'Edit' }));
    page.on('dialog', (dialog) => void dialog.accept());
    await pressAt(page, unused.getByRole('button', { name: 'Rotate' }));
    await pressAt(page, button(page, 'Done'));
    const old = page.getByRole('row').filter({ hasText: '(rotated' });
    await pressAt(page, old.getByRole('button', { name: 'Delete' }));
    await old.waitFor({ state: 'detached' });
    await page.waitForFunction('document.activeElement === document.getElementById("main")');
  });

  it('opens a dialog again with Enter at once after Escape', async () => {
    const page = await enter('Keys');
    await pressAt(page, button(page, 'Create a key'));
    for (let n = 0; n < 30; n++) {
      await Promise.all([page.keyboard.press('Escape'), page.keyboard.press('Enter')]);
      await page.keyboard.type('films');
      expect(await page.getByLabel('Alias').inputValue()).to.equal('films');
    }
  });

  it('starts a job, filters the list, cancels it and starts it again', async () => {
    const page = await enter('Download');
    await typeAt(page, page.getByLabel('Address of a video or sound'), 'https://example.com/film.mp4');
    await page.keyboard.press('Enter');
    await pressAt(page, page.getByRole('link', { name: 'Your file' }));
    page.on('dialog', (dialog) => void dialog.accept());
    await pressAt(page, button(page, 'Cancel'));
    await page.getByText('It ends: Error (cancelled)').waitFor();
    await pressAt(page, page.getByRole('link', { name: 'Jobs', exact: true }));
    await pressAt(page, page.getByRole('link', { name: 'failed', exact: true }));
    await pressAt(page, page.getByRole('cell').getByRole('link', { name: 'https://example.com/film.mp4' }));
    await pressAt(page, button(page, 'Start it again'));
    await button(page, 'Cancel').waitFor();
    await page.goBack();
    await button(page, 'Start it again').waitFor();
  });

  it('searches the requests and takes them as CSV', async () => {
    await on.api.get('/v1/usage', on.caller.key);
    await on.api.get('/v1/jobs/none', on.caller.key);
    const page = await enter('Requests');
    await typeAt(page, page.getByLabel('Text'), 'usage');
    await page.keyboard.press('Enter');
    await page.waitForURL(/text=usage/);
    const saved = page.waitForEvent('download');
    await pressAt(page, page.getByRole('link', { name: 'CSV' }));
    expect((await saved).suggestedFilename()).to.equal('requests.csv');
  });

  it('switches the top-up and the alerts, and asks for a pack', async () => {
    await setOffer(on.api.store, offer);
    const page = await enter('Billing', await on.api.addCaller({ quota: 10, paid: true }));
    await pressAt(page, button(page, 'Buy'));
    await page.getByRole('alert').filter({ hasText: 'No payment provider is configured' }).waitFor();
    await tabTo(page, page.getByRole('combobox', { name: /^Pack/ }));
    await page.keyboard.press('ArrowDown');
    await pressAt(page, button(page, 'Save'));
    await page.getByText('Saved').waitFor();
    await pressAt(page, button(page, 'Switch off'));
    await button(page, 'Switch on').waitFor();
    await expectFocus(button(page, 'Switch on'));
  });

  it('sends a test to a receiver and reads what came back', async () => {
    const forwarder = await startReceiverProxy();
    const { store } = on.api;
    const seal = makeSeal({ secret: randomBytes(32) });
    const sending = { store, seal, proxy: forwarder.address, limitSeconds: 5, log: aLog().log };
    const tests = testReceivers(sending);
    const unsubscribe = await store.connection.subscribe(channels.receiverTests, tests.hear);
    forwarder.answer('hooks.example.com', 204, 500);
    const page = await enter('Webhooks');
    await typeAt(page, page.getByLabel('Address of the receiver'), 'http://hooks.example.com/trawl');
    await page.keyboard.press('Enter');
    await page.getByRole('status').filter({ hasText: 'The receiver answered 204' }).waitFor();
    await on.photograph(page, 'receiver-test');
    await pressAt(page, button(page, 'Send a test'));
    await page.getByRole('alert').filter({ hasText: 'The receiver answered 500' }).waitFor();
    const params = { query: 'https://example.com/film.mp4', webhook_url: 'http://nobody.example.com/' };
    const { json } = await on.api.get('/v1/video/download', on.caller.key, params);
    await on.show(page, `/jobs/${json.job_id}`);
    await pressAt(page, button(page, 'Send its receiver a test'));
    await page.getByRole('alert').filter({ hasText: 'The host took no connection' }).waitFor();
    await on.photograph(page, 'receiver-test-of-job');
    await Promise.all([unsubscribe(), tests.close(), forwarder.close()]);
  });

  it('makes and removes a signing secret, invites and removes a person', async () => {
    const page = await enter('Webhooks');
    page.on('dialog', (dialog) => void dialog.accept());
    await button(page, 'Make a secret').waitFor();
    expect(await button(page, 'Remove it').count()).to.equal(0);
    await pressAt(page, button(page, 'Make a secret'));
    await page.getByText('whsec_').waitFor();
    await pressAt(page, button(page, 'Done'));
    await expectFocus(button(page, 'Make a new secret'));
    await pressAt(page, button(page, 'Remove it'));
    await button(page, 'Remove it').waitFor({ state: 'detached' });
    await pressAt(page, page.getByRole('link', { name: 'People' }));
    await typeAt(page, page.getByLabel('E-mail address'), 'guest@example.com');
    await page.keyboard.press('Enter');
    const row = page.getByRole('row').filter({ hasText: 'guest@example.com' });
    await pressAt(page, row.getByRole('button', { name: 'Remove' }));
    await row.waitFor({ state: 'detached' });
    await pressAt(page, page.getByRole('link', { name: 'Audit log' }));
    await page.getByText('person.remove').waitFor();
  });

  it('looks at a film first, ends another session, and shows an operator another account', async () => {
    const page = await enter('Download');
    await typeAt(page, page.getByLabel('Address of a video or sound'), 'https://example.com/film.mp4');
    const asked = page.waitForRequest(/api.metadata$/);
    await pressAt(page, button(page, 'Look at it first'));
    expect((await asked).method()).to.equal('POST');
    const email = 'two-places@example.com';
    const visits = [await on.open(), await on.open()];
    for (const visit of visits) {
      const secret = await invited(on.api.store, on.caller.account, 'owner', email);
      await visit.page.goto(`${on.api.dashboardUrl}/sign-in#${secret}`);
      await pressAt(visit.page, button(visit.page, 'Sign in'));
      await visit.page.getByRole('navigation', { name: 'Pages' }).waitFor();
    }
    const here = visits[0]!.page;
    await pressAt(here, here.getByRole('link', { name: 'Your sign-in' }));
    await pressAt(here, button(here, 'End'));
    await button(here, 'End').waitFor({ state: 'detached' });
    const operator = await on.signIn('operator');
    await typeAt(operator.page, operator.page.getByLabel('Account shown'), on.caller.slug);
    await operator.page.keyboard.press('Enter');
    await operator.page.getByRole('heading', { level: 1, name: on.caller.slug }).waitFor();
  });

  it('sends the webhook of a job again', async () => {
    const { store } = on.api;
    const params = { query: 'https://example.com/film.mp4', webhook_url: 'https://example.com/hook' };
    const { json } = await on.api.get('/v1/video/download', on.caller.key, params);
    await endJob(store, json.job_id);
    const due = async () => (await dueWebhooks(store, 10_000)).due.find(({ id }) => id === json.job_id);
    const first = (await due())!;
    const { attempt } = (await takeWebhook(store, first, 15_000))!;
    await endWebhook(store, first, attempt, { verdict: 'delivered', status: 200 }, 5000);
    expect(await due()).to.equal(undefined);
    const page = await enter('Webhooks');
    await pressAt(page, button(page, 'Send again'));
    await until(async () => (await due()) !== undefined, 10, 'the webhook is due again');
  });
});
