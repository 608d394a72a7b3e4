import { expect } from 'chai';
import { views } from '../../src/dashboard/dashboard-views.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { endJob } from '../support/job-steps.ts';
import { completed, failed, theJob } from '../support/record.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

const film = 'https://example.com/film.mp4';
/** Views that show nothing of an account. */
const ofNoAccount = new Set(['/sign-in', '/service', '/account']);

describe('long and empty lists on the pages of the dashboard', () => {
  let on: VisitedDashboard;
  eachWithVisits((visited) => {
    on = visited;
  });

  const start = async (caller = on.caller) =>
    (await on.api.get('/v1/video/download', caller.key, { query: film })).json.job_id as string;

  it('the overview counts the jobs that have ended, however many wait behind them', async () => {
    const caller = await on.api.addCaller({ credits: 200 });
    const [good, bad] = [await start(caller), await start(caller)];
    await endJob(on.api.store, good, completed);
    await endJob(on.api.store, bad, failed);
    const body = { endpoint: 'video', items: Array.from({ length: 100 }, () => ({ query: film })) };
    expect((await on.api.call('POST', '/v1/batches', { key: caller.key, body })).status).to.equal(202);
    const { page } = await on.signIn('owner', {}, caller);
    await on.show(page, '/');
    await page.getByText('of the last 2 jobs').waitFor();
    await page.getByText('This content is private').waitFor();
  });

  it('the overview of an account that has cancelled its jobs does not say that none has ended', async () => {
    await cancelJob(on.api.store, await theJob(on.api.store, await start()));
    const { page } = await on.signIn();
    await on.show(page, '/');
    await page.getByText('the newest ones that have ended were cancelled').first().waitFor();
    expect(await page.getByText('no job has ended yet').count()).to.equal(0);
  });

  it('a page of a search that has looked through a part of the list does not say that nothing fits', async () => {
    const { page } = await on.signIn();
    for (const [view, route, list] of [
      ['/jobs?status=NotFound', '**/api/jobs?*', 'jobs'],
      ['/requests?status=5xx', '**/api/requests?*', 'requests'],
      ['/webhooks?failed=true', '**/api/webhooks?*', 'webhooks'],
    ] as const) {
      await page.route(route, (asked) => asked.fulfill({ json: { [list]: [], next_cursor: 'older' } }));
      await on.show(page, view);
      await page.getByText('None of those that were looked through fits; older ones may.').waitFor();
    }
  });

  it('an operator who has chosen no account is asked to choose one, and is told nothing of any', async () => {
    const { page } = await on.signIn('operator');
    for (const view of views.filter((one) => !ofNoAccount.has(one) && !one.includes(':'))) {
      await on.show(page, view);
      const words = await page.locator('main').textContent();
      expect(words, view).to.match(/Choose an account to look at\.\s*$/);
      expect(words, view).not.to.match(/Only owners|Nobody yet|No .* yet/);
    }
    await on.show(page, '/service');
    await page.getByRole('cell', { name: 'operational' }).first().waitFor();
  });

  it('Billing says that no mail comes where the service has no mail server', async () => {
    await setAccount(on.api.store, on.caller.account, { alerts: true });
    const { page } = await on.signIn();
    await on.show(page, '/billing');
    await page.getByText('This service has no mail server yet, so no mail comes.').waitFor();
  });
});
