import { expect } from 'chai';
import { createKey } from '../../src/store/accounts/create-key.ts';
import { expectFitting } from '../support/browser.ts';
import { invited } from '../support/browser-session.ts';
import { endJob } from '../support/job-steps.ts';
import { completed, failed } from '../support/record.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

const film = 'https://example.com/film.mp4';

describe('the jobs on the pages of the dashboard', () => {
  let on: VisitedDashboard;
  eachWithVisits((visited) => {
    on = visited;
  });

  const start = async (query: string, path = '/v1/video/download', more = {}) =>
    (await on.api.get(path, on.caller.key, { query, ...more })).json.job_id as string;

  it('are all on the first page or on one of the older ones, also those that came while the first was open', async () => {
    for (let n = 0; n < 25; n++) await start(`${film}?old${n}`);
    const { page } = await on.signIn();
    await on.show(page, '/jobs');
    await page.getByRole('link', { name: `${film}?old24` }).waitFor();
    for (let n = 0; n < 25; n++) await start(`${film}?new${n}`);
    await page.getByRole('link', { name: `${film}?new24` }).waitFor();
    const seen = new Set<string>();
    const links = page.getByRole('table').getByRole('link');
    for (;;) {
      for (const name of await links.allTextContents()) seen.add(name);
      const older = page.getByRole('link', { name: 'Older jobs' });
      if ((await older.count()) === 0) break;
      const [first = ''] = await links.allTextContents();
      await older.click();
      await page.getByRole('link', { name: first, exact: true }).waitFor({ state: 'detached' });
      await links.first().waitFor();
    }
    expect([...seen].filter((name) => name.startsWith(film))).to.have.length(50);
  });

  it('say that the session has ended when they are asked for anew and it has', async () => {
    const { page, context } = await on.signIn();
    // A stream lasts for a minute, then the browser asks for another one.
    await page.route('**/api/jobs/events*', async (route) => {
      await context.clearCookies();
      await route.fulfill({ status: 401, contentType: 'application/json', body: '{"error":"Sign in first"}' });
    });
    await page.goto(`${on.api.dashboardUrl}/jobs`);
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
  });

  it('are read anew while their stream is refused', async () => {
    const { page } = await on.signIn();
    let asked = 0;
    await page.route('**/api/jobs/events*', async (route) => {
      asked += 1;
      const body = 'event: jobs\ndata: {"jobs":[],"next_cursor":null}\n\n';
      if (asked === 1) return route.fulfill({ contentType: 'text/event-stream', body });
      if (asked === 2) await start(`${film}?later`);
      await route.fulfill({ status: 503, body: '' });
    });
    await page.goto(`${on.api.dashboardUrl}/jobs`);
    await page.getByRole('link', { name: `${film}?later` }).waitFor();
  });

  it('of metadata have no file that could be gone', async () => {
    const id = await start(film, '/v1/media/metadata', { is_async: 'true' });
    await endJob(on.api.store, id, { ...completed, delivered: null });
    const { page } = await on.signIn();
    await on.show(page, `/jobs/${id}`);
    await page.getByText('its result is metadata, without a file').waitFor();
    expect(await page.getByText('its file is gone').count()).to.equal(0);
  });

  it('accounts, their people and their keys fit a phone whatever the length of their names', async () => {
    await endJob(on.api.store, await start(`${film}/404/${'a'.repeat(240)}.mp4`), failed);
    const key = { id: 'f'.repeat(8), hash: 'e'.repeat(64), alias: 'A'.repeat(100) };
    await createKey(on.api.store, on.caller.account, key);
    const email = `${'x'.repeat(40)}@${'y'.repeat(48)}.de`;
    const secret = await invited(on.api.store, on.caller.account, 'owner', email);
    const { page } = await on.open({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
    await page.goto(`${on.api.dashboardUrl}/sign-in#${secret}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('navigation', { name: 'Pages' }).waitFor();
    for (const view of ['/', '/requests', '/account', '/jobs', '/keys', '/people']) {
      await on.show(page, view);
      await expectFitting(page);
    }
    await on.show(page, '/requests');
    await page.locator('option').filter({ hasText: key.alias }).waitFor({ state: 'attached' });
    await expectFitting(page);
  });
});
