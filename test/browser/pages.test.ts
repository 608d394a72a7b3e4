import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { views as served } from '../../src/dashboard/dashboard-views.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { addPack } from '../../src/store/money/add-pack.ts';
import { setOffer } from '../../src/store/money/offers.ts';
import { expectAccessible, expectFitting } from '../support/browser.ts';
import { signedInAt } from '../support/browser-session.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

/** Views that one address shows whole; the one of a job needs its id, and the sign-in a person who is not signed in. */
const views = served.filter((view) => view !== '/sign-in' && !view.includes(':'));
const maxBytes = 150_000;
const hostile = 'https://example.com/<script>alert(1)</script>.mp4';

describe('the pages of the dashboard', () => {
  let on: VisitedDashboard;
  eachWithVisits((visited) => {
    on = visited;
  });

  const startJobs = async () => {
    const own = await signedInAt(on.api, on.caller.account);
    const { json } = await own.ask('POST', '/api/jobs', { query: hostile });
    await own.ask('DELETE', `/api/jobs/${json.job_id}`);
    await own.ask('POST', '/api/jobs', { query: 'https://example.com/film.mp4' });
    return json.job_id as string;
  };

  /** Days on which the account had calls and charges. */
  const useCredits = async () => {
    for (let day = 0; day < 6; day++) {
      for (let n = 0; n < [3, 7, 2, 0, 9, 5][day % 6]!; n++)
        await on.api.get('/v1/media/metadata', on.caller.key, { query: `https://example.com/${n}` });
      // The last calls are of this hour.
      if (day < 5) on.api.store.advance(86_400_000);
    }
  };

  const phone = { viewport: { width: 360, height: 780 }, hasTouch: true, isMobile: true };
  for (const [kind, options] of Object.entries({
    'a wide window': {},
    'a phone': phone,
    'the dark': { colorScheme: 'dark' as const },
  })) {
    it(`are shown whole in ${kind}, readable for everybody, in at most 150 KB each`, async () => {
      const jobId = await startJobs();
      const pack = { id: 'p', title: 'Small pack', total: 500, purchased_at: on.api.store.clock.now() };
      await addPack(on.api.store, on.caller.account, pack);
      await setAccount(on.api.store, on.caller.account, { name: 'Acme Films' });
      await on.api.get('/v1/usage', on.caller.key);
      await useCredits();
      const guest = await on.open(options);
      await on.show(guest.page, '/sign-in');
      await expectFitting(guest.page);
      await expectAccessible(guest.page);
      expect(guest.bytes(), 'bytes of /sign-in').to.be.within(1, maxBytes);
      await on.photograph(guest.page, `${kind.split(' ').at(-1)}-sign-in`);
      const { page, bytes } = await on.signIn('owner', options);
      // Times on the pages are near those of the account.
      await page.clock.setSystemTime(on.api.store.clock.now());
      for (const view of [...views, `/jobs/${jobId}`]) {
        const before = bytes();
        await on.show(page, view);
        await expectFitting(page);
        await expectAccessible(page);
        expect(bytes() - before, `bytes of ${view}`).to.be.within(1, maxBytes);
        const name = view === '/' ? 'overview' : view.slice(1).replace(/\/.*/, '-one');
        await on.photograph(page, `${kind.split(' ').at(-1)}-${name}`);
      }
      const operator = await on.signIn('operator', options);
      for (const view of ['/', '/service']) {
        await on.show(operator.page, view);
        await expectFitting(operator.page);
        await expectAccessible(operator.page);
      }
      await on.photograph(operator.page, `${kind.split(' ').at(-1)}-operator`);
    });
  }

  /** Buttons on each page that a role sees, beside those of every page. */
  const buttonsOf = async (page: Page) => {
    const shown: Record<string, string[]> = {};
    for (const view of views) {
      await on.show(page, view);
      const names = await page.locator('main button').allTextContents();
      shown[view] = [...new Set(names)].sort();
    }
    return shown;
  };
  /** Browsers keep no passkeys for an address. */
  const ownSignIn = ['Set password'];
  const ofViewers: Record<string, string[]> = {
    ...Object.fromEntries(views.map((view) => [view, []])),
    '/requests': ['Search'],
    '/account': ownSignIn,
  };
  const ofMembers: Record<string, string[]> = {
    ...ofViewers,
    '/download': ['Download', 'Look at it first'],
    '/keys': ['Create a key', 'Deactivate', 'Delete', 'Edit', 'Rotate'],
    '/webhooks': ['Make a secret', 'Send a test'],
  };
  const ofOwners: Record<string, string[]> = {
    ...ofMembers,
    '/billing': ['Buy', 'Save', 'Store a card', 'Switch off'],
    '/people': ['Invite', 'Remove'],
  };

  it('are never JSON for whoever follows a wrong link, and always for a program', async () => {
    const { page } = await on.signIn();
    for (const path of ['/nowhere', '/keys/', '/jobs/a/b']) {
      expect((await page.goto(on.api.dashboardUrl + path))?.status(), path).to.equal(404);
      await page.getByRole('heading', { level: 1, name: 'Not found' }).waitFor();
      const asked = await fetch(on.api.dashboardUrl + path);
      expect([asked.status, await asked.json()], path).to.deep.equal([404, { error: 'Not Found' }]);
    }
    await page.getByRole('link', { name: 'To the overview' }).click();
    await page.getByRole('heading', { level: 1, name: on.caller.slug }).waitFor();
    expect((await page.goto(`${on.api.dashboardUrl}/api/nowhere`))?.headers()['content-type']).to.match(/json/);
  });

  it('offer each role what it may change, and nothing else', async () => {
    await setOffer(on.api.store, { name: 'small', title: 'Small', credits: 50, price_cents: 500, currency: 'eur' });
    const buyer = await on.api.addCaller({ quota: 10, paid: true });
    const shown: Record<string, unknown> = {};
    for (const role of ['viewer', 'member', 'owner'] as const) {
      const { page } = await on.signIn(role, {}, buyer);
      shown[role] = await buttonsOf(page);
    }
    expect(shown).to.deep.equal({ viewer: ofViewers, member: ofMembers, owner: ofOwners });
  });

  it('show what a viewer may not change as text, and what an operator may see', async () => {
    const { page } = await on.signIn('viewer');
    await on.show(page, '/keys');
    expect(await page.getByRole('button', { name: 'Create a key' }).count()).to.equal(0);
    for (const name of ['People', 'Audit log'])
      expect(await page.getByRole('link', { name }).count(), name).to.equal(0);
    const operator = await on.signIn('operator');
    await operator.page.getByLabel('Account shown').fill(on.caller.slug);
    await operator.page.getByRole('button', { name: 'Show' }).click();
    await operator.page.getByRole('heading', { level: 1, name: on.caller.slug }).waitFor();
    expect(await page.getByRole('link', { name: 'Service' }).count()).to.equal(0);
    await operator.page.getByRole('link', { name: 'Service' }).click();
    await operator.page.getByRole('cell', { name: 'operational' }).first().waitFor();
    await expectFitting(operator.page);
    await expectAccessible(operator.page);
    await on.photograph(operator.page, 'service');
  });

  it('offer packs to an owner, and say why one cannot be bought', async () => {
    await setOffer(on.api.store, { name: 'small', title: 'Small', credits: 50, price_cents: 500, currency: 'eur' });
    const { page } = await on.signIn();
    await on.show(page, '/billing');
    await page.getByText('50 credits for €5.00').first().waitFor();
    await page.getByRole('button', { name: 'Buy' }).click();
    await page.getByRole('alert').filter({ hasText: 'No payment provider is configured' }).waitFor();
  });

  it('/docs shows every operation, and nothing breaks its policy', async () => {
    const { page } = await on.open({}, on.api.url);
    await page.goto(`${on.api.url}/docs`);
    for (const shown of ['Start a video download', 'Show what became of the requests', 'A download has ended']) {
      await page.getByText(shown).first().waitFor();
    }
  });
});
