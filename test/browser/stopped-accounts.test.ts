import { expect } from 'chai';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { setOffer } from '../../src/store/money/offers.ts';
import type { ApiCaller } from '../support/api.ts';
import { aBuyer } from '../support/topups.ts';
import { eachWithVisits, type VisitedDashboard } from '../support/visited-dashboard.ts';

const film = 'https://example.com/film.mp4';
const unpaid = 'An invoice is unpaid: calls that cost a credit answer 402. Ask the operator.';
const suspended = 'The account is suspended: every call answers 403. Ask the operator.';
const buys = /it buys 10 credits/;

describe('the pages of an account that is stopped', () => {
  let on: VisitedDashboard;
  let buyer: Pick<ApiCaller, 'account'>;
  eachWithVisits((visited) => {
    on = visited;
  });
  beforeEach(async () => {
    buyer = { account: (await aBuyer(on.api.store)).accountId };
  });

  it('say why a download by hand is refused, and Billing names the unpaid invoice that the refusal sends its reader to', async () => {
    const { page } = await on.signIn('owner', {}, buyer);
    const askFor = async (sentence: string) => {
      await on.show(page, '/download');
      await page.getByLabel('Address of a video or sound').fill(film);
      await page.getByRole('button', { name: 'Download', exact: true }).click();
      await page.getByRole('alert').filter({ hasText: sentence }).waitFor();
    };
    await on.show(page, '/billing');
    expect(await page.getByText(unpaid).count()).to.equal(0);
    await setAccount(on.api.store, buyer.account, { invoice: 'unpaid' });
    await askFor('an invoice is unpaid: see Billing');
    await on.show(page, '/billing');
    await page.getByText(unpaid).waitFor();
    await setAccount(on.api.store, buyer.account, { invoice: 'paid', suspended: true });
    await askFor('The account is suspended');
    for (const view of ['/', '/billing']) {
      await on.show(page, view);
      await page.getByText(suspended).waitFor();
    }
  });

  it('do not say that the automatic top-up buys when it does not: without a paid plan, with an unpaid invoice, suspended, beyond the cap', async () => {
    await setOffer(on.api.store, { name: 'auto', title: 'Auto', credits: 10, price_cents: 990, currency: 'eur' });
    const capped = await aBuyer(on.api.store, { monthly_cap_cents: '989' });
    const { plan } = await setAccount(on.api.store, buyer.account, {});
    const stops = [
      [{ plan: null }, 'It buys nothing: the account has no paid plan.'],
      [{ plan, invoice: 'unpaid' }, 'It buys nothing while an invoice is unpaid.'],
      [{ invoice: 'paid', suspended: true }, 'It buys nothing while the account is suspended.'],
    ] as const;
    const { page } = await on.signIn('owner', {}, buyer);
    await on.show(page, '/billing');
    await page.getByText(buys).waitFor();
    for (const [change, sentence] of stops) {
      await setAccount(on.api.store, buyer.account, change);
      await on.show(page, '/billing');
      await page.getByText(sentence).waitFor();
      expect(await page.getByText(buys).count(), sentence).to.equal(0);
    }
    const other = await on.signIn('owner', {}, { account: capped.accountId });
    await on.show(other.page, '/billing');
    await other.page
      .getByText('at most €9.89 a month. It buys nothing now, because another pack would pass this cap.')
      .waitFor();
  });
});
