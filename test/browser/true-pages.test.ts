import { expect } from 'chai';
import type { Route } from 'playwright-core';
import { createKey } from '../../src/store/accounts/create-key.ts';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { setOffer } from '../../src/store/money/offers.ts';
import { readTopup, setTopup } from '../../src/store/money/set-topup.ts';
import { invited } from '../support/browser-session.ts';
import { beginJob, endJob } from '../support/job-steps.ts';
import { aPlan, completed } from '../support/record.ts';
import { until } from '../support/until.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

const film = 'https://example.com/film.mp4';
const offer = { name: 'small', title: 'Small', credits: 50, price_cents: 500, currency: 'eur' };

describe('what the pages of the dashboard tell', () => {
  let on: VisitedDashboard;
  eachWithVisits((visited) => {
    on = visited;
  });

  const start = async (query: string, more = {}) =>
    (await on.api.get('/v1/video/download', on.caller.key, { query, ...more })).json.job_id as string;

  it('a slow answer to an earlier question leaves the view that was asked for last as it is', async () => {
    await start(film);
    const { page } = await on.signIn();
    await on.show(page, '/jobs?status=Error');
    const held: Route[] = [];
    await page.route('**/api/jobs?*status=NotFound*', (route) => void held.push(route));
    await page.getByRole('link', { name: 'not found' }).click();
    await until(async () => held.length === 1, 10, 'the list of jobs that were not found');
    await page.getByRole('link', { name: 'Jobs', exact: true }).click();
    await page.getByRole('link', { name: film }).waitFor();
    const answered = page.waitForResponse(/status=NotFound/);
    await held[0]!.continue();
    await (await answered).finished();
    // The page has taken it when a later answer is there.
    await page.evaluate('fetch("/api/session").then((answer) => answer.text())');
    expect(await page.getByRole('link', { name: film }).count()).to.equal(1);
  });

  it('jobs move on a list with a filter, too', async () => {
    const job = await beginJob(on.api.store, await start(film));
    const { page } = await on.signIn();
    await on.show(page, '/jobs?status=Running');
    await noteProgress(on.api.store, job, 1, { progress: 40, stage: 'download', speed_bytes: 2e6, eta_seconds: 9 });
    await page.getByText('40 % download').waitFor();
    await endJob(on.api.store, job.id, completed);
    await page.getByText('No job has this status').waitFor();
  });

  it('a job whose film has an empty title has a link with its address', async () => {
    const id = await start(film);
    await endJob(on.api.store, id, { ...completed, metadata: { title: ' ' } });
    const { page } = await on.signIn();
    await on.show(page, '/jobs');
    await page.getByRole('link', { name: film }).click();
    await page.getByRole('heading', { level: 1, name: film }).waitFor();
  });

  it('the ledger leads from a charged call that had no job to a page that says so', async () => {
    await on.api.get('/v1/media/metadata', on.caller.key, { query: film });
    const { page } = await on.signIn();
    await on.show(page, '/billing');
    await page.getByRole('row').filter({ hasText: 'charge' }).getByRole('link').click();
    await page.getByText('A call for metadata that was answered at once had none.').waitFor();
    expect(await page.getByRole('button', { name: 'Try again' }).count()).to.equal(0);
  });

  it('an overdraft has moved no credit, because it took none from any balance', async () => {
    const buyer = await on.api.addCaller({ quota: 1, credits: 0 });
    const { json } = await on.api.get('/v1/video/download', buyer.key, { query: film });
    await aPlan(on.api.store, buyer.plan, { quota: 0 });
    await endJob(on.api.store, json.job_id, completed);
    const { page } = await on.signIn('owner', {}, buyer);
    await on.show(page, '/billing');
    const row = page.getByRole('row').filter({ hasText: 'overdraft' });
    await row.getByRole('cell', { name: '0', exact: true }).waitFor();
  });

  it('“Copied” is said of the link that was copied, and not of the next one', async () => {
    const { page, context } = await on.signIn();
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await on.show(page, '/people');
    const invite = async (email: string) => {
      await page.getByLabel('E-mail address').fill(email);
      await page.getByRole('button', { name: 'Invite' }).click();
      await page.getByText(`Send this link to ${email}`).waitFor();
    };
    await invite('first@example.com');
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    await invite('second@example.com');
    await page.getByRole('button', { name: 'Copy', exact: true }).waitFor({ timeout: 2000 });
  });

  it('the link of an invitation leaves the page with its person', async () => {
    const { page } = await on.signIn();
    await on.show(page, '/people');
    page.on('dialog', (dialog) => void dialog.accept());
    await page.getByLabel('E-mail address').fill('wrong@example.com');
    await page.getByRole('button', { name: 'Invite' }).click();
    await page.getByText('Send this link to wrong@example.com').waitFor();
    await page.getByRole('row').filter({ hasText: 'wrong@' }).getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('row').filter({ hasText: 'wrong@' }).waitFor({ state: 'detached' });
    expect(await page.getByText('Send this link to').count()).to.equal(0);
  });

  it('the page asks before an invitation takes the role of somebody who has one', async () => {
    await invited(on.api.store, on.caller.account, 'owner', 'partner@example.com');
    const { page } = await on.signIn();
    await on.show(page, '/people');
    const questions: string[] = [];
    page.on('dialog', (dialog) => {
      questions.push(dialog.message());
      void dialog.dismiss();
    });
    await page.getByLabel('E-mail address').fill(' Partner@example.com');
    await page.getByRole('button', { name: 'Invite' }).click();
    await until(async () => questions.length > 0, 5, 'a question');
    expect(questions[0]).to.include('partner@example.com is owner now');
    await page
      .getByRole('row')
      .filter({ hasText: 'partner@example.com' })
      .getByText('owner', { exact: true })
      .waitFor();
  });

  it('the sentence of a refusal stays beside its person while others are removed', async () => {
    for (const name of ['a', 'b', 'c']) await invited(on.api.store, on.caller.account, 'member', `${name}@example.com`);
    const { page } = await on.signIn();
    await on.show(page, '/people');
    page.on('dialog', (dialog) => void dialog.accept());
    const row = (name: string) => page.getByRole('row').filter({ hasText: new RegExp(`^${name}@example.com`) });
    const answer = { status: 503, contentType: 'application/json', body: '{"error":"Service Unavailable"}' };
    await page.route('**/api/people/b%40example.com', (route) => route.fulfill(answer));
    await row('b').getByRole('button', { name: 'Remove' }).click();
    await row('b').getByRole('alert').waitFor();
    await row('a').getByRole('button', { name: 'Remove' }).click();
    await row('a').waitFor({ state: 'detached' });
    expect(await row('b').getByRole('alert').count()).to.equal(1);
    expect(await row('c').getByRole('alert').count()).to.equal(0);
  });

  it('a threshold of the top-up that its list does not have stays when something else is changed', async () => {
    const buyer = await on.api.addCaller({ quota: 10, paid: true });
    await setOffer(on.api.store, offer);
    await setTopup(on.api.store, buyer.account, { threshold_percent: '12' });
    const { page } = await on.signIn('owner', {}, buyer);
    await on.show(page, '/billing');
    const card = page.locator('section').filter({ hasText: 'Automatic top-up' }).last();
    await card.getByLabel('At most in a month').fill('1500');
    expect(await card.getByRole('combobox', { name: /^Below/ }).inputValue()).to.equal('12');
    await card.getByRole('button', { name: 'Save' }).click();
    await card.getByText('Saved').waitFor();
    const kept = { threshold_percent: '12', monthly_cap_cents: '1500' };
    expect(await readTopup(on.api.store, buyer.account)).to.include(kept);
  });

  it('a time in the past is not named as the next one at which the top-up can buy', async () => {
    const buyer = await on.api.addCaller({ quota: 10, paid: true });
    await setTopup(on.api.store, buyer.account, {
      ...{ enabled: '1', threshold_percent: '10', pack_title: 'Small', pack_total: '50', price_cents: '500' },
      ...{ currency: 'eur', customer: 'cus_1', payment_method: 'pm_1' },
      last_purchase_at: String(Date.now() - 90 * 86_400_000),
    });
    const { page } = await on.signIn('owner', {}, buyer);
    await on.show(page, '/billing');
    await page.getByText('Below 10 % of the quota').waitFor();
    expect(await page.getByText('next possible').count()).to.equal(0);
  });

  it('a page tells how long ago something was while it stays open', async () => {
    const { page } = await on.signIn();
    await page.clock.install();
    await on.show(page, '/account');
    const row = page.getByRole('row').filter({ hasText: 'this one' });
    await row.locator('time').first().waitFor();
    await page.clock.fastForward('10:00');
    await row
      .getByText(/1\d minutes ago/)
      .first()
      .waitFor();
  });

  it('a file that cannot be written because the session has ended leads to the sign-in', async () => {
    const { page, context } = await on.signIn();
    await on.show(page, '/requests');
    await context.clearCookies();
    await page.getByRole('link', { name: 'CSV' }).click();
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
  });

  it('the overview names no day on which credits end that are used up', async () => {
    const poor = await on.api.addCaller({ credits: 1 });
    await on.api.get('/v1/media/metadata', poor.key, { query: film });
    const { page } = await on.signIn('owner', {}, poor);
    await on.show(page, '/');
    const tile = page.locator('.tiles .card').filter({ hasText: 'Credits left' });
    await until(async () => /rate|used up/.test((await tile.textContent()) ?? ''), 20, 'a rate');
    expect(await tile.textContent()).not.to.include('until');
  });

  it('a time is told in whole days, not as yesterday or tomorrow, which 35 hours are not', async () => {
    on.api.store.advanceToNoon();
    const hours = 35 * 3_600_000;
    const ends = { alias: 'ends', hash: 'a'.repeat(64), id: 'a'.repeat(8), expires: on.api.store.clock.now() + hours };
    await createKey(on.api.store, on.caller.account, ends);
    await start(film);
    const { page } = await on.signIn();
    await on.show(page, '/keys');
    await page.getByText('ends in 1 day').waitFor();
    // In Berlin this is the night after the next day.
    on.api.store.advance(hours);
    await on.show(page, '/jobs');
    await page.getByRole('row').filter({ hasText: film }).getByText('1 day ago').waitFor();
  });

  it('ages and ends are those of the service where the clock of the browser is hours ahead or behind', async () => {
    const soon = on.api.store.clock.now() + 1_800_000;
    const key = { alias: 'soon', hash: 'b'.repeat(64), id: 'b'.repeat(8), expires: soon };
    await createKey(on.api.store, on.caller.account, key);
    for (const hours of [5, -5]) {
      const { page } = await on.signIn();
      await page.clock.setSystemTime(on.api.store.clock.now() + hours * 3_600_000);
      await on.show(page, '/keys');
      const row = page.getByRole('row').filter({ hasText: 'soon' });
      await row.getByText(/ends in (30|29) minutes/).waitFor();
      await row.getByText(/now|seconds? ago/).waitFor();
    }
  });

  it('the fields of the search show the search that the address names, also one that their lists do not have', async () => {
    const { page } = await on.signIn();
    await on.show(page, '/requests?status=404&key=gone');
    await page.getByText('No request fits').waitFor();
    expect(await page.getByLabel('Status').inputValue()).to.equal('404');
    expect(await page.getByLabel('Key').inputValue()).to.equal('gone');
    await page.getByLabel('Status').selectOption('5xx');
    await page.getByRole('link', { name: 'Requests' }).click();
    await until(async () => (await page.getByLabel('Status').inputValue()) === '', 5, 'no status');
    expect(await page.getByLabel('Key').inputValue()).to.equal('');
  });

  it('a page of which a part was lost on the way says so in place of nothing', async () => {
    const { page, faults } = await on.open();
    await page.route('**/jobs.js', (route) => route.abort());
    await page.goto(`${on.api.dashboardUrl}/`);
    await page.getByText('If this stays, load the page again').waitFor();
    await page.unroute('**/jobs.js');
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.getByText('If this stays').count()).to.equal(0);
    faults.splice(0);
  });

  it('a job whose film has a title that nobody can see has a link with its address', async () => {
    for (const title of ['\u200b\u2060', '\u3164', '\u202e']) {
      const query = `${film}?${encodeURIComponent(title)}`;
      await endJob(on.api.store, await start(query), { ...completed, metadata: { title } });
      const { page } = await on.signIn();
      await on.show(page, '/jobs');
      await page.getByRole('link', { name: query }).click();
      await page.getByRole('heading', { level: 1, name: query }).waitFor();
    }
  });
});
