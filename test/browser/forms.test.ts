import { expect } from 'chai';
import type { Page, Route } from 'playwright-core';
import { createKey } from '../../src/store/accounts/create-key.ts';
import { findKey } from '../../src/store/accounts/read-keys.ts';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import { until } from '../support/until.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

const film = 'https://example.com/film.mp4';

describe('the forms of the dashboard', () => {
  let on: VisitedDashboard;
  eachWithVisits((visited) => {
    on = visited;
  });

  const jobsOfAccount = async () =>
    (await listJobs(on.api.store, on.caller.account, { status: undefined, limit: 10, after: null })).jobs;
  const keyOf = (alias: string) => findKey(on.api.store, on.caller.account, alias);
  const makeKey = (alias: string, expires: number | null) =>
    createKey(on.api.store, on.caller.account, { id: 'f'.repeat(8), alias, hash: 'e'.repeat(64), expires });
  const edit = async (page: Page, alias: string) => {
    await on.show(page, '/keys');
    await page.getByRole('row').filter({ hasText: alias }).getByRole('button', { name: 'Edit' }).click();
  };

  it('keep every field that was typed when the page is drawn anew: a key, a search, a name', async () => {
    const { page, context } = await on.signIn();
    await on.show(page, '/keys');
    await page.getByRole('button', { name: 'Create a key' }).click();
    const typed = { Alias: 'full', Category: 'films', 'Last day': '2099-01-01', '7 days': '9', '24 hours': '7' };
    for (const [label, value] of Object.entries(typed)) await page.getByLabel(label).fill(value);
    const shown = async (labels: readonly string[]) =>
      Promise.all(labels.map((label) => page.getByLabel(label).inputValue()));
    const lose = async () => {
      await context.setOffline(true);
      await page.getByText('what you see may be old').waitFor();
    };
    await lose();
    expect(await shown(Object.keys(typed))).to.deep.equal(Object.values(typed));
    await context.setOffline(false);
    await page.getByText('what you see may be old').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByText('The secret of full').waitFor();
    const { category, quotas } = await keyOf('full');
    expect([category, quotas.weekly, quotas.daily]).to.deep.equal(['films', 9, 7]);
    await on.show(page, '/requests');
    await page.getByLabel('Day (UTC)').fill('2030-01-02');
    await page.getByLabel('Text').fill('usage');
    await lose();
    expect(await shown(['Day (UTC)', 'Text'])).to.deep.equal(['2030-01-02', 'usage']);
  });

  it('leave the expiry of a key at its time of day when something else is changed', async () => {
    const expires = Date.parse('2099-12-04T03:00:00Z');
    await makeKey('timed', expires);
    const { page } = await on.signIn();
    await edit(page, 'timed');
    await page.getByLabel('Category').fill('films');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('cell', { name: 'films' }).waitFor();
    expect((await keyOf('timed')).expires).to.equal(expires);
    await edit(page, 'timed');
    await page.getByLabel('Last day').fill('');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect((await keyOf('timed')).expires).to.equal(null);
  });

  it('ask once when a button is clicked twice', async () => {
    const { page } = await on.signIn();
    await on.show(page, '/download');
    await page.getByLabel('Address of a video or sound').fill(film);
    const held: Route[] = [];
    await page.route('**/api/metadata', (route) => void held.push(route));
    await page.getByRole('button', { name: 'Look at it first' }).dblclick();
    await until(async () => held.length > 0, 10, 'the page asks for metadata');
    // A second request would have passed before the answer to this one.
    await page.evaluate('fetch("/api/session").then((answer) => answer.text())');
    expect(held).to.have.length(1);
    await held[0]!.continue();
    await page.locator('.preview b').waitFor();
  });

  it('start a job once whose answer was lost and that is asked for again, and say that this is so', async () => {
    const { page } = await on.signIn();
    await on.show(page, '/download');
    await page.getByLabel('Address of a video or sound').fill(film);
    const loseNext = (path: string) =>
      page.route(
        path,
        async (route) => {
          await route.fetch();
          await route.abort();
        },
        { times: 1 },
      );
    const start = () => page.getByRole('button', { name: 'Download', exact: true }).click();
    await loseNext('**/api/jobs');
    await start();
    await page.getByRole('alert').filter({ hasText: 'nothing is started or charged twice' }).waitFor();
    await start();
    await page.getByRole('link', { name: 'Your file' }).waitFor();
    expect(await jobsOfAccount()).to.have.length(1);
    const { id } = (await jobsOfAccount())[0]!;
    // The same again, after its success, is another job.
    await start();
    await until(async () => (await jobsOfAccount()).length === 2, 10, 'a second job');
    await on.show(page, `/jobs/${id}`);
    page.once('dialog', (dialog) => dialog.accept());
    await page.getByRole('button', { name: 'Cancel' }).click();
    const retry = page.getByRole('button', { name: 'Start it again' });
    await retry.waitFor();
    await loseNext('**/retry');
    await retry.click();
    await page.getByRole('alert').filter({ hasText: 'nothing is started or charged twice' }).waitFor();
    await retry.click();
    await page.waitForURL((url) => !url.pathname.endsWith(id));
    expect(await jobsOfAccount()).to.have.length(3);
  });

  it('do not say that nothing was lost of a change whose answer was', async () => {
    const { page } = await on.signIn();
    await on.show(page, '/people');
    await page.route('**/api/people', (route) => route.abort());
    await page.getByLabel('E-mail address').fill('lost@example.com');
    await page.getByRole('button', { name: 'Invite' }).click();
    await page.getByRole('alert').filter({ hasText: 'may have been made' }).waitFor();
  });

  it('refuse a part that ends at 0 in place of the whole film', async () => {
    const { page } = await on.signIn();
    await on.show(page, '/download');
    await page.getByLabel('Address of a video or sound').fill(film);
    await page.getByLabel('To (needed for live)').fill('0:00');
    for (const [from, reason] of Object.entries({ '0': 'max_duration must be', '1:30': 'end must be' })) {
      await page.getByLabel('From').fill(from);
      await page.getByRole('button', { name: 'Download', exact: true }).click();
      await page.getByRole('alert').filter({ hasText: reason }).waitFor();
    }
    expect(await jobsOfAccount()).to.deep.equal([]);
  });

  it('show what was looked at for the address it was read from alone', async () => {
    const { page } = await on.signIn();
    await on.show(page, '/download');
    const field = page.getByLabel('Address of a video or sound');
    await field.fill(film);
    await page.getByRole('button', { name: 'Look at it first' }).click();
    await page.locator('.preview b').waitFor();
    await field.fill('https://example.com/other.mp4');
    await page.locator('.preview').waitFor({ state: 'detached' });
  });

  it('offer no button to copy a secret where the browser copies nothing, and do not say that it was copied', async () => {
    const { page, context } = await on.signIn();
    const made = async (alias: string) => {
      await on.show(page, '/keys');
      await page.getByRole('button', { name: 'Create a key' }).click();
      await page.getByLabel('Alias').fill(alias);
      await page.getByRole('button', { name: 'Create', exact: true }).click();
      await page.getByText(`The secret of ${alias}`).waitFor();
    };
    await context.addInitScript('Navigator.prototype.writes = () => Promise.reject(new Error("no"))');
    await context.addInitScript(
      'Object.defineProperty(navigator, "clipboard", { configurable: true, value: { writeText: () => navigator.writes() } })',
    );
    await made('refused');
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByRole('button', { name: 'Not copied' }).waitFor();
    await context.addInitScript('Object.defineProperty(navigator, "clipboard", { value: undefined })');
    await made('plain');
    expect(await page.getByRole('button', { name: 'Copy' }).count()).to.equal(0);
  });
});
